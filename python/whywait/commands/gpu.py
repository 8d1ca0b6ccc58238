"""Show the work of accelerators, and the waiting between hosts and devices."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import Progress, add_verb, positive, print_json
from whywait.commands.results import TRACE, open_trace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_NAME, _NUMBER = 28, 12


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
    parser.add_argument(
        "--gpu-efficiency",
        metavar="NAME[*NAME]",
        help="counters of streams, contexts, devices or nodes whose product is the efficiency of a kernel; NAME also "
        "stands for NAME:device=N (default: sm_efficiency*warp_execution_efficiency, or an upper bound from the "
        "geometry of launches, or how busy devices are)",
    )
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many rows to show per table (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the work of accelerators, and the waiting between hosts and devices."""
    import whywait
    from whywait.report.terminal import show

    with Progress() as progress:
        result = whywait.analyze(open_trace(options.trace), causes=False, progress=progress)
    names = [name.strip() for name in options.gpu_efficiency.split("*")] if options.gpu_efficiency else []
    found = result.gpu().summary(names)
    if options.json:
        print_json(found)
    else:
        show(_lines(found, options.top), sys.stdout)
    return 0


def _lines(found: dict[str, Any], count: int) -> Iterator[Line]:
    from whywait.report.terminal import seconds

    if not found["devices"]:
        yield [("This run has no accelerators.", "")]
        return

    def row(name: str, *numbers: str, path: str = "") -> Line:
        cells = "".join(f"{number:>{_NUMBER}}" for number in numbers)
        return [(f"{name[: _NAME - 1]:{_NAME}}{cells}" + (f"  {path}" if path else ""), "")]

    def head(name: str, *names: str) -> Line:
        return [(row(name, *names)[0][0], "bold")]

    yield head("Device", "rank", "kernels", "busy", "of the run", "starved", "in MPI", "latency", "queued")
    shown = found["devices"]
    if len(shown) > count:
        shown = sorted(shown, key=lambda one: -one["starved"])[:count]
    for one in shown:
        times = (seconds(one[name]) for name in ("starved", "mpi_starved", "latency", "queued"))
        share = f"{100 * one['share']:.1f}%"
        yield row(one["name"], str(one["rank"]), str(one["kernels"]), seconds(one["busy"]), share, *times)
    if left := len(found["devices"]) - len(shown):
        yield [(f"and {left} that were starved less", "dim")]
    yield from _imbalance(found)
    yield []
    yield head("Kernel on", "count", "total")
    for one in found["kernels"][:count]:
        yield row(one["device"], str(one["count"]), seconds(one["total"]), path=one["callpath"][-1])
    yield []
    yield head("Host waits", "count", "waiting", "completion")
    for one in found["synchronizations"][:count]:
        times = (seconds(one[name]) for name in ("waiting", "completion"))
        yield row(f"rank {one['rank']}", str(one["count"]), *times, path="/".join(one["callpath"][-2:]))
    if found["starving"]:
        yield []
        yield head("Host starves a device", "time")
        for one in found["starving"][:count]:
            path = "/".join(one["callpath"][-2:]) if one["callpath"] else "(outside)"
            yield row(f"rank {one['rank']}", seconds(one["starving"]), path=path)
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
