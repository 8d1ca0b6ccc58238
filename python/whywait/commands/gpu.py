"""Show the work of accelerators, and the waiting between hosts and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import RESULT, add_analysis, add_focus, asked_focus
from whywait.report.terminal import seconds
from whywait.report.values import quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_NAME, _NUMBER = -28, 12


_END_OF_PATH = Column("", 0, lambda one: "/".join(one["callpath"][-2:]) if one["callpath"] else "(outside)")
_RANK = Column("Host waits", _NAME, "rank {rank}".format_map)
_DEVICE = Column("Device", _NAME, lambda one: one["device"][: -_NAME - 1])


def _share(*names: str) -> Any:
    """Return the text of rows of the account of a device, whose names begin with one of these."""

    def text(one: dict[str, Any]) -> str:
        whole = sum(one["account"].values())
        part = sum(time for row, time in one["account"].items() if row.startswith(names))
        return f"{100 * part / whole:.1f}%" if whole else "-"

    return text


_DEVICES = (
    Column("Device", _NAME, lambda one: one["name"][: -_NAME - 1]),
    Column("rank", _NUMBER, "rank"),
    Column("kernels", _NUMBER, "kernels"),
    Column("busy", _NUMBER, "busy", "sec"),
    Column("of the time", _NUMBER, lambda one: f"{100 * one['share']:.1f}%"),
    Column("starved", _NUMBER, "starved", "sec"),
    Column("in MPI", _NUMBER, "mpi_starved", "sec"),
    Column("latency", _NUMBER, "latency", "sec"),
    Column("queued", _NUMBER, "queued", "sec"),
)
# What the time of a device is divided into, of which a run has a few.
_ROWS = (
    Column("kernels", _NUMBER, _share("busy.kernel")),
    Column("waits", _NUMBER, _share("comm.wait")),
    Column("transfers", _NUMBER, _share("comm.transfer", "comm.excess")),
    Column("unmatched", _NUMBER, _share("comm.unmatched")),
    Column("unseen", _NUMBER, _share("comm.unseen")),
    Column("copies", _NUMBER, _share("busy.copy")),
    Column("latency", _NUMBER, _share("latency")),
    Column("host: work", _NUMBER, _share("starved.host", "starved.gc", "starved.compile")),
    Column("loads", _NUMBER, _share("starved.loading")),
    Column("host waits", _NUMBER, _share("starved.comm")),
    Column("library", _NUMBER, _share("starved.library")),
    Column("device call", _NUMBER, _share("starved.alloc", "starved.sync", "starved.call")),
    Column("other dev.", _NUMBER, _share("starved.other_device")),
    Column("profiler", _NUMBER, _share("profiler")),
    Column("before", _NUMBER, _share("before_first")),
    Column("after", _NUMBER, _share("after_last")),
    Column("unknown", _NUMBER, _share("unknown")),
)
_COMMUNICATION = (
    Column("Communication", _NAME, lambda one: one["name"][: -_NAME - 1]),
    Column("total", _NUMBER, "communication", "sec"),
    Column("hidden", _NUMBER, "communication_hidden", "sec"),
    Column("of it", _NUMBER, lambda one: f"{100 * one['communication_hidden'] / one['communication']:.1f}%"),
    Column("exposed", _NUMBER, lambda one: seconds(one["communication"] - one["communication_hidden"])),
)
_KERNELS = (
    _DEVICE._replace(title="Kernel on"),
    Column("count", _NUMBER, "count"),
    Column("total", _NUMBER, "total", "sec"),
    Column("starved", _NUMBER, "starved", "sec"),
    Column("latency", _NUMBER, "latency", "sec"),
    Column("queued", _NUMBER, "queued", "sec"),
    Column("for others", _NUMBER, "stream_wait", "sec"),
    Column("", 0, "kernel"),
)
_COPIES = (
    _DEVICE._replace(title="Copies on"),
    Column("count", _NUMBER, "count"),
    Column("total", _NUMBER, "total", "sec"),
    Column("bytes", _NUMBER, lambda one: "-" if one["bytes"] is None else quantity(one["bytes"], "bytes")),
    Column("per second", _NUMBER, lambda one: "-" if one["rate"] is None else quantity(one["rate"], "bytes")),
    Column("", 0, "direction"),
)
_WAITS = (
    _RANK,
    Column("count", _NUMBER, "count"),
    Column("waiting", _NUMBER, "waiting", "sec"),
    Column("completion", _NUMBER, "completion", "sec"),
    _END_OF_PATH,
)
_STARVING = (
    _RANK._replace(title="Host starves a device"),
    Column("time", _NUMBER, "starving", "sec"),
    _END_OF_PATH,
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
        operands={"result": RESULT},
    )
    add_analysis(parser)
    add_focus(parser)
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
    names = [name.strip() for name in options.gpu_efficiency.split("*")] if options.gpu_efficiency else []
    focus, found = asked_focus(options, lambda result: result.gpu().summary(names, focus=options.focus.name))
    return Answer(found, lambda _: _lines(found, options.top), focus=focus)


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
    if any(one["account"] for one in shown):
        yield []
        some = [column for column in _ROWS if any(column.text(one) != "0.0%" for one in shown)]
        yield from table(shown, (_DEVICES[0], *some))
        yield from _efficiencies(found)
    if communicating := [one for one in shown if one["communication"]]:
        yield []
        yield from table(communicating, _COMMUNICATION)
    yield from _layers(found)
    yield []
    yield from table(found["kernels"][:count], _KERNELS)
    if found["copies"]:
        yield []
        yield from table(found["copies"][:count], _COPIES)
    for one in shown:
        for name, text in _OVERLAPS:
            if one[name]:
                yield [(f"{one['name']} {text} for {seconds(one[name])}", "dim")]
    if found["synchronizations"]:
        yield []
        yield from table(found["synchronizations"][:count], _WAITS)
    if found["starving"]:
        yield []
        yield from table(found["starving"][:count], _STARVING)
    yield from _lost(found)


_OVERLAPS = (("streams_overlap", "ran several streams at once"), ("copies_overlap", "copied beside a kernel"))


def _lost(found: dict[str, Any]) -> Iterator[Line]:
    """Yield what does not fit together, with the first place."""
    if lost := found["lost"]:
        where = f"rank {lost[0]['rank']} at {lost[0]['enter']:.6f} s"
        yield [(f"{len(lost)} launches without a kernel, first: {where}", "dim")]
    if alone := found["unlaunched"]:
        text = f"{len(alone)} kernels without a launch, first: {alone[0]['kernel']} at {alone[0]['begin']:.6f} s"
        yield [(text, "dim")]
    if number := found["clock_violations"]:
        yield [(f"{number} kernels that seem to end behind the call that awaits them", "dim")]


_EFFICIENCIES = (
    ("device_load_balance", "load balance"),
    ("device_communication_efficiency", "communication"),
    ("device_orchestration_efficiency", "orchestration"),
)


def _efficiencies(found: dict[str, Any]) -> Iterator[Line]:
    """Yield the efficiencies of devices and hosts."""
    if (values := found["efficiencies"]) is None:
        return
    parts = " x ".join(f"{100 * values[name]:.1f}% {text}" for name, text in _EFFICIENCIES)
    yield [(f"Device parallel efficiency: {100 * values['device_parallel_efficiency']:.1f}% = {parts}", "")]
    if (host := values.get("device_offload_efficiency")) is not None:
        yield [(f"Device offload efficiency of the host: {100 * host:.1f}%", "")]


def _layers(found: dict[str, Any]) -> Iterator[Line]:
    """Yield what each layer of devices uses of what the one above does."""
    if len(found["layers"]) > 1:
        parts = ", ".join(
            f"{one['layer']} {100 * one['efficiency']:.1f}% (-{seconds(one['lost'])})" for one in found["layers"]
        )
        yield [(f"Used by layer: {parts}", "")]


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
