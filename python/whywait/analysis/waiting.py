"""Where the time goes, and how much of it is waiting: one account for every headline, whose lines add up.

*Waiting* is the sum of all wait states, each time counted once (`whywait.model.metrics.MetricTree.waiting`). Not in it:

* *completion*, what an operation takes once all have come. Nobody is late, so there is nobody to blame, and better
  balance saves none of it. It is communication.
* *idle threads*, which have nothing to do because the program is not parallel enough. They wait for no one in
  particular; what they cost stands beside the waiting.
* *idle devices*, which wait for the host. No thread spends that time; what it costs stands with that of idle threads.
* *hosts that wait for their device*, where devices wait for each other: they pass on what the device waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.causes import IDLE, IDLE_OF, UNATTRIBUTED, cost_classes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.metrics import Metric, MetricTree
    from whywait.model.profile import Profile

# The display order of the parts.
PARTS = (
    "computation",
    "devices",
    "io",
    "communication",
    "completion",
    "threads",
    "overhead",
    "idle_threads",
    "waiting",
)
# The part of each branch of the execution but computation; all others are devices.
_PART_OF = {
    **dict.fromkeys(("mpi", "shmem", "armci", "pgas", "ccl"), "communication"),
    **dict.fromkeys(("omp_time", "pthread_time"), "threads"),
    "io": "io",
}


def account(profile: Profile, charged: Profile | None = None) -> dict[str, Any]:
    """Split the time, and the waiting in it, into parts.

    Parameters
    ----------
    profile
        The severities of a run, or of a part of it: then with what causes in the part cost the waits in it.
    charged
        The same with all that is paid for the waits in the part, if it is one.

    Returns
    -------
    dict
        All in seconds. ``time`` is the sum of ``parts``: ``computation``, ``devices``, ``io``, ``communication``
        (without waiting and completion), ``completion``, ``threads`` (what managing and synchronizing them takes,
        without waiting), ``overhead`` (of the measurement), ``idle_threads`` and ``waiting``. ``waiting`` once more,
        with its ``share`` of the time, is the sum of ``wait_states`` (by name, those that occur), and that of ``known``
        (what delay costs explain), ``elsewhere`` (what they explain by causes outside of the part) and ``unknown``
        (what nobody is to blame for, and waits whose causes are not sought: at the end of the run, in scans, and for
        the locks of threads). ``charged`` is what delay costs pay for in all: what is known, and more where tasks run
        at barriers. Where causes were not looked for these are None. ``unexplained`` is by how much wait states exceed
        all that they are shared out among (None if that was not looked for). ``idle_costs`` are the delay costs of what
        is ``idle`` (``threads``, ``devices``, or ``threads and devices``), which is no waiting.

    Notes
    -----
    A cause lies in a part of the time if its call path runs there on that location.

    With the cost model of Scalasca, delay costs at barriers in which threads run tasks pay for all time until the last
    thread arrives, while the wait states are without the tasks. Then all of the waiting is known, and no more.
    """
    metrics = profile.metrics
    total = {metric.name: profile.total(metric.name) for metric in metrics}
    states = {metric.name: total[metric.name] for metric in _waits(metrics) if total[metric.name]}
    waiting = sum(states.values())
    time = total.get("time", 0.0)
    causes = dict.fromkeys(("known", "elsewhere", "unknown", "charged", "idle_costs", "idle"))
    return {
        "time": time,
        "parts": _parts(metrics, total),
        "waiting": waiting,
        "share": waiting / time if time else 0.0,
        "wait_states": states,
        **(_causes(profile, charged or profile, waiting) if "critical_path" in metrics else causes),
        "unexplained": total.get("wait_unexplained"),
    }


def _causes(profile: Profile, charged: Profile, waiting: float) -> dict[str, Any]:
    paid, known = (sum(_costs(one, of_idle=False)) for one in (charged, profile))
    elsewhere = paid - known
    known = min(known, waiting)
    elsewhere = min(elsewhere, waiting - known)
    return {
        "known": known,
        "elsewhere": elsewhere,
        "unknown": waiting - known - elsewhere,
        "charged": paid,
        "idle_costs": sum(_costs(profile, of_idle=True)),
        "idle": _idle(profile),
    }


def _idle(profile: Profile) -> str:
    """Return the name of what is idle."""
    paid = [kind.name for kind in cost_classes(profile.metrics) if sum(map(profile.total, kind.metrics)) > 0]
    return " and ".join(word for name, word in IDLE_OF.items() if name in paid) or "threads"


def _costs(profile: Profile, *, of_idle: bool) -> Iterator[float]:
    """Yield the attributed costs of each class: of idle threads, or of waiting."""
    for kind in cost_classes(profile.metrics):
        if kind.name != UNATTRIBUTED and (kind.name in IDLE) is of_idle:
            yield from (profile.total(name) for name in kind.metrics)


def _parts(metrics: MetricTree, total: dict[str, float]) -> dict[str, float]:
    """Sum the branches of the time by category."""
    parts = dict.fromkeys(PARTS, 0.0)
    for metric in metrics.children("execution"):
        part = "computation" if metric.name == "comp" else _PART_OF.get(metric.name, "devices")
        parts[part] += total[metric.name]
    for kernels in metrics.children("comp"):
        parts["computation"] -= total[kernels.name]
        parts["devices"] += total[kernels.name]
    for name, part in (("overhead", "overhead"), ("omp_idle_threads", "idle_threads")):
        parts[part] += total.get(name, 0.0)
    for metric in metrics:
        if metric.kind == "completion":
            parts["completion"] += total[metric.name]
            parts[_part(metrics, metric.name)] -= total[metric.name]
    for metric in _waits(metrics):
        parts[_part(metrics, metric.name)] -= total[metric.name]
        parts["waiting"] += total[metric.name]
    return parts


def _waits(metrics: MetricTree) -> list[Metric]:
    """Return the wait states that count."""
    passed_on = {"gpu_host_wait"} if "ccl" in metrics else set()
    return [metric for metric in metrics.waiting if metric.name not in passed_on]


def _part(metrics: MetricTree, wait: str) -> str:
    """Return the part of the time that a wait state lies in."""
    if metrics[wait].paradigm == "gpu":
        return "devices"
    return _PART_OF.get(metrics.path(wait)[2].name, "threads")
