"""Predict the optimized form of synthetic programs, and compare the predictions with it."""

from __future__ import annotations

import itertools
import os
import tempfile
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.analysis.focus import focused
from whywait.analysis.runs.deviation import deviations
from whywait.api.analyze import analyze
from whywait.api.whatif import whatif
from whywait.hypotheses import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from whywait.api.result import Result

#: The deviations of the same predictions in Jül-4297 (experiments 5.1 and 5.2), percent of the run.
#: Functions for which Jül-4297 (5.2.2) says what the change saves, by workload.
FUNCTIONS = {"xns": ("ewdscatter2", "ewdgather1")}
PUBLISHED = {"lb-coll": "< 0.003%", "lb-p2p": "very close", "sweep": "-", "xns": "< 3%"}


def predict(
    workloads: Mapping[str, tuple[str, str]],
    ranks: Sequence[int],
    iterations: int,
    *,
    seed: int,
    progress: Callable[[str, float], object] | None = None,
) -> Iterator[dict[str, Any]]:
    """Predict the optimized form of workloads, and compare the predictions with it.

    Parameters
    ----------
    workloads
        By name: the option of ``whywait whatif`` that predicts the optimized form, and its value.
    ranks
        The numbers of processes.
    iterations
        The number of iterations of each run.
    seed
        The seed of the traces.
    progress
        Called with the name of the workload and the share that is done.

    Yields
    ------
    dict
        ``workload``, ``ranks``, ``measured``, ``predicted``, ``optimized`` (lengths, s), ``identity`` and ``deviation``
        (percent of the measured and the optimized run), ``ticks`` (by how many the prediction is off) and
        ``published`` (the deviation in Jül-4297). ``identity_parts`` and ``deviation_parts`` are the same deviations of
        the processor time (``time``) and of its parts ``computation``, ``communication`` and ``waiting`` (percent of
        the processor time of the measured and the optimized run; null if that is zero). ``error_estimate`` is that of
        the simulation (s; null if unknown), and ``holds`` whether the prediction is no further off (null likewise).
        ``functions``: for each of `FUNCTIONS`, what it takes less in the optimized run (``measured``) and in the
        simulated one (``predicted``), over all processes (s): its ``time``, ``communication``, and ``computation``.
    """
    what = list(itertools.product(workloads, ranks))
    for number, (workload, count) in enumerate(what):
        if progress:
            progress(workload, number / len(what))
        with tempfile.TemporaryDirectory(prefix="whywait-bench-") as directory:
            results = []
            for name, balanced in (("plain", False), ("optimized", True)):
                path = os.path.join(directory, name)  # noqa: PTH118
                _native.generate(workload, path, ranks=count, iterations=iterations, seed=seed, balanced=balanced)
                results.append(analyze(path))
            plain, optimized = results
            same, changed = whatif(plain), whatif(plain, [parse(*workloads[workload])])
            lengths = [same.before, same.after, changed.after, float(optimized.facts["length"])]
            measured, identical, predicted, truth = lengths
            estimate = changed.error_estimate.total
            yield {
                "workload": workload,
                "ranks": count,
                "measured": measured,
                "predicted": predicted,
                "optimized": truth,
                "identity": 100 * (identical - measured) / measured,
                "deviation": 100 * (predicted - truth) / truth,
                "ticks": round((predicted - truth) * plain.facts["resolution"]),
                "published": PUBLISHED[workload],
                "identity_parts": _parts(plain, same.result),
                "deviation_parts": _parts(optimized, changed.result),
                "error_estimate": estimate,
                "functions": {
                    name: _saved(name, plain, optimized, changed.result) for name in FUNCTIONS.get(workload, ())
                },
                "holds": None if estimate is None else abs(predicted - truth) <= estimate,
            }


def _saved(function: str, plain: Result, optimized: Result, simulated: Result) -> dict[str, dict[str, float]]:
    """Return what a function takes less in the optimized and in the simulated run, by kind of time."""
    before, *after = (_times(function, result) for result in (plain, optimized, simulated))
    return {
        name: {kind: before[kind] - times[kind] for kind in before}
        for name, times in zip(("measured", "predicted"), after, strict=True)
    }


def _times(function: str, result: Result) -> dict[str, float]:
    """Return the time in a function: of all, of calls of MPI, and the rest."""
    rows = [row for row in result.severities("time").to_pylist() if function in row["callpath"]]
    time = sum(row["value"] for row in rows)
    calls = sum(row["value"] for row in rows if row["callpath"][-1].startswith("MPI_"))
    return {"time": time, "communication": calls, "computation": time - calls}


def _parts(reference: Result, result: Result) -> dict[str, float | None]:
    """Return by how many percent of the processor time each part of it deviates."""
    found = deviations(focused(reference).profile, focused(result).profile)
    return {name: part.percent for name, part in found.items()}
