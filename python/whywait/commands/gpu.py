"""Show the work of accelerators, and the waiting between hosts and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import Progress, add_top, add_verb
from whywait.commands.results import TRACE, add_clocks, clock_choices, open_trace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_NAME, _NUMBER = -28, 12


def _end_of_path(names: int) -> Column:
    """Return the column of the last names of a call path."""
    return Column("", 0, lambda one: "/".join(one["callpath"][-names:]) if one["callpath"] else "(outside)")


_RANK = Column("Host waits", _NAME, "rank {rank}".format_map)
_DEVICES = (
    Column("Device", _NAME, lambda one: one["name"][: -_NAME - 1]),
    Column("rank", _NUMBER, "rank"),
    Column("kernels", _NUMBER, "kernels"),
    Column("busy", _NUMBER, "busy", "sec"),
    Column("of the run", _NUMBER, lambda one: f"{100 * one['share']:.1f}%"),
    Column("starved", _NUMBER, "starved", "sec"),
    Column("in MPI", _NUMBER, "mpi_starved", "sec"),
    Column("latency", _NUMBER, "latency", "sec"),
    Column("queued", _NUMBER, "queued", "sec"),
)
_KERNELS = (
    Column("Kernel on", _NAME, lambda one: one["device"][: -_NAME - 1]),
    Column("count", _NUMBER, "count"),
    Column("total", _NUMBER, "total", "sec"),
    _end_of_path(1),
)
_WAITS = (
    _RANK,
    Column("count", _NUMBER, "count"),
    Column("waiting", _NUMBER, "waiting", "sec"),
    Column("completion", _NUMBER, "completion", "sec"),
    _end_of_path(2),
)
_STARVING = (
    _RANK._replace(title="Host starves a device"),
    Column("time", _NUMBER, "starving", "sec"),
    _end_of_path(2),
)


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "gpu",
        "show how busy accelerators were, and who waited for whom",
        "Show how busy accelerators were and what they ran, where the host waited for them, and what the host did "
        "while they were idle.",
        "whywait gpu traces.otf2",
        run,
        operands={"trace": TRACE},
    )
    add_clocks(parser)
    parser.add_argument(
        "--gpu-efficiency",
        metavar="NAME[*NAME]",
        help="counters of streams, contexts, devices or nodes whose product is the efficiency of a kernel; NAME also "
        "stands for NAME:device=N (default: sm_efficiency*warp_execution_efficiency, or an upper bound from the "
        "geometry of launches, or how busy devices are)",
    )
    add_top(parser, "how many rows to show per table")


def run(options: argparse.Namespace) -> Answer:
    """Return the work of accelerators, and the waiting between hosts and devices."""
    import whywait

    with Progress() as progress:
        result = whywait.analyze(open_trace(options.trace), causes=False, progress=progress, **clock_choices(options))
    names = [name.strip() for name in options.gpu_efficiency.split("*")] if options.gpu_efficiency else []
    found = result.gpu().summary(names)
    return Answer(found, lambda _: _lines(found, options.top), results=[result])


def _lines(found: dict[str, Any], count: int) -> Iterator[Line]:
    if not found["devices"]:
        yield [("This run has no accelerators.", "")]
        return
    shown = found["devices"]
    if len(shown) > count:
        shown = sorted(shown, key=lambda one: -one["starved"])[:count]
    yield from table(shown, _DEVICES)
    if left := len(found["devices"]) - len(shown):
        yield [(f"and {left} that were starved less", "dim")]
    yield from _imbalance(found)
    yield []
    yield from table(found["kernels"][:count], _KERNELS)
    yield []
    yield from table(found["synchronizations"][:count], _WAITS)
    if found["starving"]:
        yield []
        yield from table(found["starving"][:count], _STARVING)
    for name, text in (
        ("unmatched_launches", "launches without a kernel"),
        ("unmatched_kernels", "kernels without a launch"),
        ("clock_violations", "kernels that seem to end behind the call that awaits them"),
    ):
        if found[name]:
            yield [(f"{found[name]} {text}", "dim")]


_SOURCES = {
    "counters": "by counters of their efficiency",
    "geometry": "by the geometry of launches, an upper bound of their efficiency",
    "busy": "by how busy devices were",
}


def _imbalance(found: dict[str, Any]) -> Iterator[Line]:
    """Yield the load imbalance over devices, and over processes with their devices."""
    adjusts = found["efficiency_source"] != "none"
    shown = False
    for name, adjusted, text, number in (
        ("imbalance", "imbalance_adjusted", "Imbalance of busy devices", len(found["devices"])),
        ("load_imbalance_gpu", "load_imbalance_gpu_adjusted", "Load imbalance of hosts and devices",
         len(found["processes"])),
    ):  # fmt: skip
        if found[name] is not None and number > 1:
            shown = True
            more = f"; adjusted: {100 * found[adjusted]:.2f}%" if adjusts and found[adjusted] is not None else ""
            yield [(f"{text}: {100 * found[name]:.2f}%{more}", "")]
    if shown and adjusts:
        yield [(f"(adjusted: kernels count {_SOURCES[found['efficiency_source']]})", "dim")]
    elif shown:
        yield [("(not adjusted: the efficiency of kernels is not known)", "dim")]
