"""A device is idle because its host does something else first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from whywait.analysis.findings.blame import late_hosts
from whywait.analysis.findings.compile_once import LEAST as COMPILES
from whywait.analysis.findings.copies import is_copy
from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.host_bound import idle as idle_for_hosts
from whywait.analysis.findings.small_kernels import small
from whywait.analysis.findings.words import Figures, Words, devices, seconds

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "device_starved"
TITLE = "Starved device"
DOCUMENT = """\
A device is idle for at least a tenth of the time, because a host that launches its kernels computes, waits for
something whose cause is not known, or is about to launch. Launch earlier, or do the work of the host meanwhile. Or the
calls of one call path (an allocation or a memset) keep it idle for a twentieth of the time: do them once, before the
kernels, or let kernels run meanwhile. The loss is time of devices, not of CPUs.
"""
FIGURES = Figures(
    place=("name", "what the hosts do most meanwhile, by call path"),
    devices=("name", "the devices of the run"),
    idle=("s", "the time of devices that are idle because of it, or for all such reasons"),
    there=("s", "the part of it because of `place`"),
)

_LEAST, _LEAST_CALLS = 0.1, 0.05
_ROWS = frozenset({"starved.host", "starved.loading", "starved.gc", "starved.compile", "latency"})
# While hosts wait for other ranks.
_WAITS = "starved.comm"
# Calls of one call path that keep devices idle.
_CALLS = frozenset({"starved.call", "starved.alloc", "starved.sync"})


def detect(run: Run) -> Found:
    """Yield what the hosts do most while their devices are idle."""
    lines, total = run.device_lines, run.device_time
    yield from _calls(run)
    # What bounds the run as a whole is another finding, and of small kernels, the latency has another reason.
    # What hosts wait for is the reason that findings about waiting name, if causes are known.
    rows = _ROWS | (frozenset() if run.result.has_causes else {_WAITS})
    rows -= ({"latency"} if small(run) is not None else frozenset()) | _found(run)
    idle = _without_late_ranks(run, [line for line in lines if line["row"] in rows])
    loss = sum(line["time"] for line in idle)
    if not total or loss < _LEAST * total:
        return
    times = Counter[int | None]()
    for line in idle:
        times[line["callpath"]] += line["time"]
    [(callpath, time)] = times.most_common(1)
    place = Words("Each launch")
    if callpath is not None:
        place = FIGURES.say(f"On the host{'s' * (run.ranks > 1)}, {{place}}", place=run.place(callpath))
    which, are = devices({line["device"] for line in lines})
    there = FIGURES.say(", {there} of it there", there=time) if seconds(time) != seconds(loss) else Words("")
    yield run.finding(
        NAME,
        place
        + FIGURES.say(f" keeps {{devices}} waiting, which {are} idle for {{idle}}", devices=which, idle=loss)
        + there
        + ".",
        "Launch kernels earlier, or do this work while they run.",
        loss,
        callpath=callpath,
        base="device",
        evidence={row: sum(line["time"] for line in idle if line["row"] == row) for row in sorted(rows)},
    )


def _without_late_ranks(run: Run, idle: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return lines of idle devices without what those of late ranks idle longer than others: that is their lateness."""
    found = list(idle)
    for callpath, ranks in late_hosts(run).items():
        here = sorted((line for line in idle if line["callpath"] == callpath), key=lambda line: -float(line["time"]))
        rest = here[len(ranks) :]
        usual = sum(line["time"] for line in rest) / len(rest) if rest else 0.0
        for line in here[: len(ranks)]:
            found[found.index(line)] = line | {"time": min(line["time"], usual)}
    return found


def _found(run: Run) -> frozenset[str]:
    """Return the rows that other rules name."""
    found = {"starved.compile"} if in_rows(run, "starved.compile") > COMPILES * run.device_time else set()
    return frozenset(found | {"starved.host", "latency"} if idle_for_hosts(run) is not None else found)


def _calls(run: Run) -> Found:
    """Yield device calls that keep devices waiting."""
    times = Counter[int]()
    for line in run.device_lines:
        if line["row"] in _CALLS and line["callpath"] is not None and not is_copy(run, line):
            times[line["callpath"]] += line["time"]
    which, are = devices({line["device"] for line in run.device_lines})
    for callpath, loss in sorted(times.items(), key=lambda one: (-one[1], one[0])):
        if loss < _LEAST_CALLS * run.device_time:
            continue
        yield run.finding(
            NAME,
            FIGURES.say(
                f"{{place}} keeps {{devices}} waiting, which {are} idle for {{idle}}.",
                place=run.place(callpath),
                devices=which,
                idle=loss,
            ),
            "Call it once, before the kernels, or let kernels run meanwhile.",
            loss,
            callpath=callpath,
            base="device",
            evidence={"calls": loss},
        )


def changes(run: Run, finding: Finding) -> Proposed:
    """Yield making the host faster."""
    if finding.callpath is not None and not run.region(finding.callpath).is_library:
        yield run.changes.faster(finding.callpath, 0.75)
        yield run.changes.faster(finding.callpath, 0.0)
