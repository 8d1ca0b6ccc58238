"""The statistics file of a Cube report, from which CubeGUI draws box plots and lists the most severe waits.

Quartiles are exact. Each process of a collective operation counts as a wait of its own. So it does in Scalasca's
statistics, but Scalasca's list of the most severe waits adds up all processes of an operation.

*Source*: specification.md#statistics-of-wait-states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from whywait.analysis.statistics import describe, of_metrics, worst_of_callpaths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from whywait.model.result import ResultData

_HEAD = (
    "PatternName               Count      Mean    Median      Minimum      Maximum      Sum     Variance    "
    "Quartil25    Quartil75\n"
)
_WORST = 5
# Readers expect a variance and quartiles only for at least this many waits.
_WITH_VARIANCE, _WITH_QUARTILES = 2, 5


def write_stat(result: ResultData, path: Path) -> None:
    """Write the statistics of all wait states.

    Parameters
    ----------
    result
        The result.
    path
        The file; overwritten if it exists.
    """
    with path.open("w", encoding="ascii") as out:
        out.write(_HEAD)
        native = result.tables.wait_states
        callpath, waiting = native["callpath"].to_numpy(), native["waiting"].to_numpy()
        for metric, rows in of_metrics(result.profile.metrics, native):
            of = describe(lengths := waiting[rows])
            names = ["minimum", "maximum", "sum", *["variance"] * (of["count"] >= _WITH_VARIANCE)]
            names += ["quartile25", "quartile75"] * (of["count"] >= _WITH_QUARTILES)
            values = " ".join(f"{of[name]:.10f}" for name in names)
            out.write(f"{metric:<26}{of['count']:>10} {of['mean']:.7f} {of['median']:.7f} {values}\n")
            worst = rows[worst_of_callpaths(callpath[rows], lengths, _WORST)]
            out.writelines(_severe(result, native.take(pa.array(worst))))
            out.write("\n")


def _severe(result: ResultData, waits: pa.Table) -> Iterator[str]:
    for wait in waits.to_pylist():
        rank = result.places.rank[wait["location"]]
        yield f"- cnode {wait['callpath']} enter: {wait['enter']:.10f} exit: {wait['leave']:.10f} "
        yield f"duration: {wait['waiting']:.10f} rank: {rank}\n"
