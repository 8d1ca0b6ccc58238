"""The results directory and its files."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.analysis.account import pieces as account_pieces
from whywait.analysis.counters.counters import with_counters
from whywait.analysis.counters.queues import levels
from whywait.analysis.focus import cost_names, focused
from whywait.analysis.iterations import known_iterations
from whywait.analysis.proposals.prices import SMALL, priced_findings
from whywait.analysis.proposals.prices import table as price_table
from whywait.analysis.stored_factors import stored_factors
from whywait.model import tables
from whywait.model.clocks import CLOCK_TABLES
from whywait.model.schema import schema_of
from whywait.report.cube import write_cube
from whywait.report.stat import write_stat
from whywait.store.dataset import Writer, is_own
from whywait.store.files import SUMMARY, refuse_other
from whywait.store.staging import StagedDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from os import PathLike
    from pathlib import Path

    import pyarrow as pa

    from whywait.analysis.stored_factors import Factors
    from whywait.model.dataset import Dataset
    from whywait.model.result import ResultData
    from whywait.model.timeline import Timeline
    from whywait.store.staging import Staging


_STATISTICS = "report.stat"


def write_all(
    result: ResultData,
    directory: Path,
    summarize: Callable[[], dict[str, Any]],
    *,
    transfers: bool = False,
    picture: Callable[[], tuple[Timeline | None, Mapping[str, str]]] | None = None,
    factors: Factors = "longest",
    counters: bool | Sequence[str] = False,
    iterations: str | int | None = None,
    source: str | PathLike[str] | None = None,
    force: bool = False,
) -> list[Path]:
    """Write all files of a result; see `whywait.Result.write`.

    Parameters
    ----------
    result, directory, transfers, factors, counters, iterations, source, force
        As in `whywait.Result.write`.
    summarize
        A function that returns the summary, as `whywait.analysis.summary.summarize` does.
    picture
        A function that returns the timeline and its blocks for an HTML report; None for no report.
    """
    if not force:
        refuse_other(directory, result.tables.trace)
    if picture is not None and not result.is_profile:
        priced_findings(result, simulate=result.facts.get("events", 0) <= SMALL)
    with StagedDirectory(directory, is_own) as staging:
        writer = Writer(staging, result)
        # The core draws the timeline and Arrow writes the long tables, while this thread computes the rest.
        with ThreadPoolExecutor(3) as beside:
            # What several threads need is there before they start.
            waits = beside.submit(lambda: result.tables.wait_states)
            _ = result.tree, result.places, result.profile
            waits.result()
            drawn = beside.submit(picture or _no_timeline)
            written = beside.submit(_write_long_tables, writer, result, drawn, transfers=transfers, counters=counters)
            described = beside.submit(_write_cube, result, staging)
            writer.definitions()
            if (loop := known_iterations(result, iterations)) is not None:
                writer.table("iterations", loop)
            _write_communication(writer, result.tables)
            if result.has_causes:
                _write_factors(writer, result.tables, factors)
            summary = summarize()
            staging.path(SUMMARY).write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
            if picture is not None:
                from whywait.report.html import write_html

                write_html(result, staging.path("report.html"), summary, drawn.result()[1], iterations, source)
            described.result()
            written.result()
        writer.manifest(directory, summary)
    # Files for people come first; the order in which the threads finish is arbitrary.
    first = ("report.cubex", _STATISTICS, "report.html", SUMMARY)
    return sorted(staging.files, key=lambda file: (file.name not in first, file.name))


def _write_cube(result: ResultData, staging: Staging) -> None:
    """Write the Cube report and the statistics that it refers to."""
    write_cube(result, staging.path("report.cubex"), statistics=_STATISTICS)
    write_stat(result, staging.path(_STATISTICS))


def _no_timeline() -> tuple[None, dict[str, str]]:
    return None, {}


def _write_long_tables(
    writer: Writer,
    result: ResultData,
    drawn: Future[tuple[Timeline | None, Mapping[str, str]]],
    *,
    transfers: bool,
    counters: bool | Sequence[str],
) -> None:
    """Write the tables that grow with the length of the run or the number of locations."""
    tree, locations, dataset = result.tree, result.places, result.tables
    waits = tables.wait_state_pieces(tree, locations, dataset.wait_states)
    if counters:
        writer.table(
            "wait_states", with_counters(result, tables.table(tables.WAIT_STATES, waits), "enter", "leave", counters)
        )
    else:
        writer.pieces("wait_states", tables.WAIT_STATES, waits)
    if result.has_causes:
        path = tables.named_pieces(tree, locations, dataset.critical_path, tables.CRITICAL_PATH)
        if counters:
            writer.table(
                "critical_path", with_counters(result, tables.table(tables.CRITICAL_PATH, path), "from", "to", counters)
            )
        else:
            writer.pieces("critical_path", tables.CRITICAL_PATH, path)
    if transfers:
        _write_named(writer, result, "transfers", dataset.transfers)
    # Reports made later, without the events, take the timeline from these tables.
    if (timeline := drawn.result()[0]) is not None:
        writer.timeline(timeline)
    _write_tables(writer, result)


def _write_tables(writer: Writer, result: ResultData) -> None:
    """Write the tables of call paths and locations."""
    tree, locations, dataset = result.tree, result.places, result.tables
    stored = [metric.name for metric in result.profile.metrics if not metric.derived]
    derived = [metric.name for metric in result.profile.metrics if metric.derived]
    for name, metrics in (("severities", stored), ("derived", derived)):
        writer.pieces(name, tables.SEVERITIES, tables.severity_pieces(result.profile, locations, metrics))
    if not result.is_profile:
        writer.pieces("account", schema_of("account"), account_pieces(result, dataset.account))
        if dataset.device_account.num_rows:
            _write_named(writer, result, "device_account", dataset.device_account)
        if dataset.io.num_rows:
            _write_named(writer, result, "io", dataset.io)
        if dataset.facts.get("samples"):
            _write_named(writer, result, "samples", dataset.samples)
            _write_named(writer, result, "profile", dataset.function_times)
            _write_named(writer, result, "delay_functions", dataset.function_costs)
        writer.table("network", dataset.network)
        if "clocks" in dataset.facts:
            for name in CLOCK_TABLES:
                writer.table(name, dataset.clock_table(name))
        found = priced_findings(result)
        writer.table("findings", found.table(tree))
        if dataset.prices.num_rows:
            writer.table("prices", price_table(found))
    if dataset.queue_levels is not None:
        writer.table("queue_levels", levels(result))
    if (part := focused(result)).focus.window is not None:
        divided = result.in_window
        names = [metric.name for metric in part.profile.metrics if metric.name in divided]
        writer.pieces("focus", tables.CELLS, tables.severity_pieces(part.profile, locations, names))
        if dataset.focus_costs is not None:
            costs = tables.severity_pieces(part.charged, locations, cost_names(result.profile))
            writer.pieces("focus_costs", tables.CELLS, costs)
    if dataset.counters.num_rows:
        writer.table("counters", dataset.counters)
        _write_named(writer, result, "counter_cells", dataset.counter_cells)


def _write_named(writer: Writer, result: ResultData, name: str, numbers: pa.Table) -> None:
    """Write a table of the dataset with names of call paths and locations, piece by piece."""
    schema = schema_of(name)
    writer.pieces(name, schema, tables.named_pieces(result.tree, result.places, numbers, schema))


def _write_factors(writer: Writer, dataset: Dataset, which: Factors) -> None:
    """Write the causes of each wait, unless they are unknown."""
    try:
        intervals, factors = stored_factors(dataset, which)
    except _native.UsageError:
        return
    writer.table("intervals", intervals)
    writer.table("factors", factors)


def _write_communication(writer: Writer, dataset: Dataset) -> None:
    """Write the communication matrix, if it is known."""
    try:
        pairs, sizes = dataset.communication()
    except _native.UsageError:
        return
    writer.table("communication", pairs)
    writer.table("message_sizes", sizes)
