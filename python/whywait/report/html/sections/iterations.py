"""The iterations of the main loop, if one is found in the events or the stored tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from whywait.analysis.iterations import assess, counted, kinds, known_iterations
from whywait.model.names import short_name
from whywait.report.html import blocks, places

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData
    from whywait.report.html.sections import Report

# Up to this number, the parts and shares of iterations are written unrounded. More of them only serve a picture.
_EXACT = 10_000
# Maximum number of wait states with values per iteration.
_KINDS = 6


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the loop, and one row per iteration."""
    result = report.result
    if (table := known_iterations(result, report.loop)) is None:
        return
    found = assess(result, table)
    counting = counted(result, kinds(table))
    shown = [kind for kind in found["wait_states"] if kind in counting][:_KINDS]
    names = [short_name(name) for name in found["callpath"]]
    labels = result.profile.metrics.labels(shown)
    values = table["value"].to_pylist() if found["parameter"] else []
    # A parameter that counts from 0 repeats the iteration number.
    if values == [str(number) for number in range(len(values))]:
        values = []
    about = {"names": names, "kinds": list(labels.items()), "values": values}
    yield "iterations", blocks.document({**found, **about})
    yield "iterations-rows", blocks.columns(_rows(result, table, shown))


def _rows(result: ResultData, table: pa.Table, shown: list[str]) -> dict[str, npt.NDArray[Any]]:
    def numbers(name: str) -> npt.NDArray[np.float64]:
        values: npt.NDArray[np.float64] = table[name].fill_null(np.nan).to_numpy()
        return values

    # Mean waiting time per thread, so that it is a part of the duration.
    threads = np.count_nonzero(result.places.works) / max(1, int(np.unique(result.places.rank).size))
    each = 1 / np.maximum(table["ranks"].to_numpy() * threads, 1)
    rows: dict[str, npt.NDArray[Any]] = {name: numbers(name) for name in ("begin", "end", "duration")}
    rows["computation"] = np.nan_to_num(numbers("parallel_efficiency")) * numbers("duration")
    # A rank that runs ahead waits in the time of another iteration.
    rows["waiting"] = np.minimum(numbers("waiting") * each, rows["duration"] - rows["computation"])
    rows["critical_path"] = numbers("critical_path")
    rows["slowest"] = table["slowest_rank"].to_numpy()
    rows["critical_rank"] = table["critical_rank"].fill_null(-1).to_numpy()
    for name in ("parallel_efficiency", "load_balance", "communication_efficiency"):
        rows[name] = numbers(name).astype(np.float32)
    for number, kind in enumerate(shown):
        rows[f"kind-{number}"] = (numbers(kind) * each).astype(np.float32)
    if table.num_rows <= _EXACT:
        return rows
    # The page looks for the longest iterations, and shows them where they are.
    exact = ("begin", "end", "duration")
    return {
        name: places.rounded(values) if values.dtype.kind == "f" and name not in exact else values
        for name, values in rows.items()
    }
