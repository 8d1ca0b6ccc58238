"""Predict the optimized form of synthetic programs, and compare the predictions with it."""

from __future__ import annotations

import itertools
import os
import tempfile
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.api.analyze import analyze
from whywait.api.whatif import whatif
from whywait.hypotheses import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

#: The deviations of the same predictions in Jül-4297 (experiments 5.1 and 5.2), percent of the run.
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
        ``published`` (the deviation in Jül-4297).
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
                results.append(analyze(path, causes=False))
            plain, optimized = results
            same, changed = whatif(plain), whatif(plain, [parse(*workloads[workload])])
            lengths = [same.before, same.after, changed.after, float(optimized.facts["length"])]
            measured, identical, predicted, truth = lengths
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
            }
