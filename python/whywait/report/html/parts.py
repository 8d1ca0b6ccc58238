"""What several pages say of a run: the parts of its time, and its efficiencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whywait.analysis.efficiency.efficiency import as_estimates, efficiencies, is_simulated
from whywait.model.metrics import Term
from whywait.report.html import shades
from whywait.report.html.formulas import Factors, Formulas, combine
from whywait.report.html.places import running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from whywait.model.metrics import Metric, MetricTree
    from whywait.model.result import ResultData

#: Maximum number of points in bars and curves over ranks.
POINTS = 512
# Parts below this share of the time are shown together.
_SMALL = 0.004
_PARTS_OF_FAMILY = 5

# The families of the stacked bar, in its order, and a metric that represents each.
_FAMILIES = {
    "work": "execution",
    "devices": "execution",
    "io": "io",
    "threads": "omp_time",
    "communication": "mpi",
    "overhead": "overhead",
    "idle": "omp_idle_threads",
    "waiting": "time",
}
_LIBRARIES = {
    "mpi": "communication",
    "shmem": "communication",
    "armci": "communication",
    "pgas": "communication",
    "omp_time": "threads",
    "pthread_time": "threads",
    "openacc_time": "devices",
    "opencl_time": "devices",
    "cuda_time": "devices",
    "hip_time": "devices",
    "io": "io",
}
_HOST_WAIT = "gpu_host_wait"


def _occurs(result: ResultData, name: str) -> bool:
    """Return whether a run has anything of a metric."""
    return name in result.profile.metrics and result.profile.total(name) > 0


class Part(NamedTuple):
    """A part of the time: a branch of the metric tree without its wait states, or one of these.

    Attributes
    ----------
    metric
        The branch, or the wait state.
    label
        The display name, meaningful without context.
    family
        work, devices, threads, communication, overhead, idle or waiting.
    factors
        The factors of the stored metrics it consists of.
    """

    metric: str
    label: str
    family: str
    factors: Factors


def parts(result: ResultData, formulas: Formulas) -> list[dict[str, Any]]:
    """Split the time into parts that a newcomer understands; the parts add up to the total time.

    Returns
    -------
    list of dict
        ``metric``, ``label``, ``about`` (what it is), ``family`` (work, devices, io, threads, communication, overhead,
        idle or waiting), ``shade`` (0 to 4), ``value`` and ``ranks``: the means of at most 512 groups of neighboring
        locations that run something.
    """
    if not _occurs(result, "time"):
        return []
    found = []
    for part in all_parts(result.profile.metrics, formulas):
        values = formulas.by_location(part.factors)
        if values.sum() > 0:
            found.append((part, values))
    least = _SMALL * result.profile.total("time")
    curves: list[tuple[str, str, str, int, npt.NDArray[np.float64]]] = []
    for family, metric in _FAMILIES.items():
        inside = sorted((one for one in found if one[0].family == family), key=lambda one: -one[1].sum())
        large = sum(values.sum() >= least for _, values in inside[:_PARTS_OF_FAMILY])
        # A single small part is kept; several are summed up.
        shown = inside if len(inside) - large == 1 else inside[:large]
        shade = shades.of_wait if family == "waiting" else shades.of_metric
        curves.extend((part.metric, part.label, family, shade(part.metric), values) for part, values in shown)
        if rest := inside[len(shown) :]:
            total = np.sum([values for _, values in rest], axis=0)
            curves.append((metric, f"Other {family}", family, shades.OTHERS, total))
    ran = running(result.places)
    return [
        {
            "metric": metric,
            "label": label,
            "about": result.profile.metrics[metric].description,
            "family": family,
            "shade": shade,
            "value": float(each.sum()),
            "ranks": coarse(each[ran]),
        }
        for metric, label, family, shade, each in curves
    ]


def all_parts(metrics: MetricTree, formulas: Formulas) -> Iterator[Part]:
    """Yield all parts of the time, whatever their share."""
    labels = metrics.labels(metric.name for metric in metrics.waiting if formulas[metric.name])
    for metric, family in _branches(metrics):
        if family == "communication":
            # The rest outside of its branches, such as calls that query the time.
            branches = metrics.children(metric.name)
            others = combine([(1, formulas[metric.name]), *((-1, formulas[branch.name]) for branch in branches)])
            yield Part(metric.name, f"{metric.display_name} other", family, others)
        else:
            branches = [metric]
        for branch in branches:
            yield from _branch(metrics, formulas, branch, family, labels)
    if _HOST_WAIT in metrics:
        # A host that waits for a busy device loses nothing.
        yield Part(_HOST_WAIT, metrics[_HOST_WAIT].display_name, "devices", formulas[_HOST_WAIT])


def _branch(
    metrics: MetricTree, formulas: Formulas, metric: Metric, family: str, labels: Mapping[str, str]
) -> Iterator[Part]:
    below = {one.name for one in _below(metrics, metric.name)}
    waits = [wait for wait in metrics.waiting if wait.name in below]
    inside = [formulas[wait.name] for wait in waits]
    if family == "devices" and _HOST_WAIT in metrics:
        # One metric covers all libraries: take its share in calls of this one.
        inside.append(formulas.masked(Term(1, _HOST_WAIT, mask=metric.name.removesuffix("_time"))))
    own = combine([(1, formulas[metric.name]), *((-1, factors) for factors in inside)])
    yield Part(metric.name, _label(metrics, metric), family, own)
    for wait in waits:
        yield Part(wait.name, labels.get(wait.name, wait.display_name), "waiting", formulas[wait.name])


def _branches(metrics: MetricTree) -> Iterator[tuple[Metric, str]]:
    """Yield metrics that add up to the time, with their families."""
    for metric in metrics.children("execution"):
        yield metric, _LIBRARIES.get(metric.name, "work")
    for name, family in (("overhead", "overhead"), ("omp_idle_threads", "idle")):
        if name in metrics:
            yield metrics[name], family


def _below(metrics: MetricTree, name: str) -> Iterator[Metric]:
    for child in metrics.children(name):
        yield child
        yield from _below(metrics, child.name)


def _label(metrics: MetricTree, metric: Metric) -> str:
    """Return a name that is meaningful without context: that of a branch includes its library."""
    if metric.parent in _LIBRARIES:
        library, name = metrics[metric.parent].display_name, metric.display_name
        return f"{library} {name if name[1:2].isupper() or '/' in name else name.lower()}"
    return metric.display_name


def coarse(values: npt.NDArray[np.float64]) -> list[float]:
    """Return means of neighbors, to limit the number of points in a picture."""
    width = -(-values.size // POINTS)
    starts = np.arange(0, values.size, width)
    sizes = np.diff(np.append(starts, values.size))
    return [float(f"{value:.6g}") for value in np.add.reduceat(values, starts) / sizes]


def efficiency_rows(result: ResultData, focus: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the efficiencies of the focus, None if the run does not communicate."""
    if not any(_occurs(result, library) for library in ("mpi", "shmem", "armci", "pgas")):
        return None
    found = efficiencies(result, focus["callpath"], window=focus["window"])
    if not is_simulated(found):
        found = as_estimates(found)
    return [{"name": one.name, **one.as_dict()} for one in found]
