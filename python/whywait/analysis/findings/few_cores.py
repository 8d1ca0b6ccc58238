"""More ranks or threads than cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.counters import Counters
from whywait.analysis.findings.slow_calls import passed_on, slow_loss, slowest_kind, take_slow
from whywait.analysis.findings.words import percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "few_cores"
TITLE = "More ranks or threads than cores"
DOCUMENT = """\
Ranks or threads of a node that have something to do never run at the same time, although they would if each had a core:
for a number of them, this happens less than a tenth as often as it would by chance. Or calls are slow (five times what
they need and more) while a number of other locations compute, hardly ever more, and less often while calls are fast.
They share cores, so a call takes as long as its partner has to wait for one. Run with at most one rank or thread per
core, or check the binding (OMP_PROC_BIND, OMP_PLACES); measurements of a shared core say little about the program. The
loss is the excess of all calls, the runtime of threads, and the waiting that these pass on. If the trace has the
counter `core` (`whywait record --counters core`), it is certain where more locations of a node than cores were seen;
`ru_nivcsw` counts how often a core went to another thread, also because MPI yielded it.
"""


def detect(run: Run) -> Iterator[Finding]:
    """Yield the excess of all calls, if locations of a node share cores."""
    nodes = [*(run.result.facts.get("few_cores") or []), *run.reasons("crowded")]
    # What never runs together says more than who computes meanwhile.
    nodes = list({node["location"]: node for node in reversed(nodes)}.values())
    seen = _seen_cores(run)
    bearers = run.slow()
    loss = slow_loss(bearers)
    if not (nodes or seen) or loss <= 0:
        return
    nodes = nodes or seen
    node = max(nodes, key=lambda one: one["locations"])
    places = run.result.places
    threaded = bool(places.thread[places.works].max(initial=0))
    what = "threads" if threaded else "ranks"
    where = "" if len(nodes) == 1 else f" on the node of rank {places.rank[node['location']]}"
    more = "" if len(nodes) == 1 else f" (and on {len(nodes) - 1} other nodes)"
    sentence = (
        f"At most {node['most']} of the {node['locations']} {what}{where} ran at the same time{more}: they share cores."
        if not seen
        else f"The {seen[0]['locations']} {what}{where} ran on {_cores(seen[0]['most'])}{more}, as the kernel says."
    )
    if switches := Counters(run.result).get("ru_nivcsw"):
        sentence += f" The core of one of them went to another thread {switches.total:,.0f} times."
    excess = sum(time for row, time in run.losses.account.times.items() if row.endswith(".excess"))
    kind = slowest_kind(run)
    if excess and kind is not None:
        sentence += (
            f" Library calls take {seconds(excess)} longer than the fastest 5% of their kind "
            f"({percent(float(str(kind['excess'])) / excess)} of it in {kind['region']})."
        )
    if (waiting := passed_on(bearers)) > excess:
        sentence += f" Others wait {seconds(waiting)} for such calls."
    yield run.finding(
        NAME,
        sentence,
        "Run with at most one rank or thread per core, or check the binding: measurements of a shared core say little "
        "about the program.",
        loss,
        evidence={"nodes": nodes, "seen": seen, "excess": excess, "kind": kind},
        merged=sorted(bearer.callpath for bearer in bearers),
    )
    take_slow(bearers)


def _cores(number: int) -> str:
    return f"{number} core{'s' * (number != 1)}"


def _seen_cores(run: Run) -> list[dict[str, int]]:
    """Return the node of the run, if the counter `core` saw fewer cores than locations that count it; else nothing."""
    counter = Counters(run.result).get("core")
    if counter is None or not counter.samples:
        return []
    holders = {row["parent"] for row in run.result.tables.system.to_pylist() if row["kind"] == "group"}
    counted = counter.by_location()
    # Which numbers between the lowest and the highest were seen is not known, so this is an upper bound.
    cores = int((counter.maximum or 0) - (counter.minimum or 0)) + 1
    # Nodes number their cores alike.
    if len(holders) > 1 or counted.num_rows <= cores:
        return []
    return [{"location": int(counted["location"][0].as_py()), "locations": counted.num_rows, "most": cores}]


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
