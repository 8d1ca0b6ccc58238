"""More ranks or threads than cores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from whywait.analysis.counters.counters import Counters
from whywait.analysis.findings.slow_calls import FIGURES as OF_CALLS
from whywait.analysis.findings.slow_calls import Slow
from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "few_cores"
TITLE = "More ranks or threads than cores"
DOCUMENT = """\
Ranks or threads of a node that have something to do hardly ever run at the same time, although they would if each had a
core: pieces of work that nothing can have interrupted, since they are short, run on more than a number of them less
than a tenth as often as they would by chance. Or calls are slow (five times what they need and more) while a number of
other locations compute, hardly ever more, and less often while calls are fast; calls of collective operations with a
root do not count, since ranks can wait in them for others of a tree. They share cores, so a call takes as long as
its partner has to wait for one. The sentence says how many compute at the same time, if more do in at most 5% of the
time in which any does; otherwise what has been found. Run with at most one rank or thread per core, or check the
binding (OMP_PROC_BIND, OMP_PLACES); measurements of a shared core say little about the program. The loss is the excess
of all calls but those of collective operations with a root, the runtime of threads, and the waiting that these pass on.
It is certain, and said before all findings, where ranks of a node may use fewer cores than they are, which recordings
of `whywait record` tell, and where the counter `core` (`whywait record --counters core`) saw more locations of a node
than cores; `ru_nivcsw` counts how often a core went to another thread, also because MPI yielded it.
"""
FIGURES = Figures(
    OF_CALLS,
    most=("count", "how many of them compute at the same time, or run, hardly ever more"),
    locations=("count", "all ranks or threads of the node"),
    more=("share", "the part of the time of the focus in which more than `most` of them are in own code"),
    observed=("share", "the part of the time in which more than `most` of them surely run"),
    expected=("share", "the part of the time in which they would by chance"),
    slow=("share", "the part of the time of slow calls in which at least `most` others compute"),
    fast=("share", "the same of other calls"),
    rank=("name", "the first rank of the node"),
    nodes=("count", "the number of other nodes of which the same holds"),
    cores=("count", "the cores on which they were seen: at most the highest less the lowest number, plus one"),
    switches=("count", "how often the core of one went to another thread, in the whole run: `ru_nivcsw`"),
    sharing=("count", "the ranks of a node that may use `allowed` cores"),
    allowed=("count", "the cores that these ranks may use, as the kernel says"),
    host=("name", "the name of the node"),
)

# What a recording says of a node; see properties in rust/recording/src/finish.rs.
_SHARE = re.compile(r"(\d+) ranks with (\d+) threads may use (\d+) of (\d+) cores on (.*)")
# More than this share of the time in which any location computes is not hardly ever.
_HARDLY = 0.05
# What samples of a node show of it.
_SAMPLE = 1e-4


def detect(run: Run) -> Found:
    """Yield the excess of all calls, if locations of a node share cores."""
    nodes = [*(run.result.facts.get("few_cores") or []), *run.reasons("crowded")]
    # What never runs together says more than who computes meanwhile.
    nodes = list({node["location"]: node for node in reversed(nodes)}.values())
    seen, shared = _seen_cores(run), shared_cores(run.result.facts)
    bearers = [one for one in run.slow() if not run.is_rooted(run.region(one.callpath).name)]
    slow = Slow(run, bearers)
    if not (nodes or seen or shared) or slow.loss <= 0:
        return
    nodes = seen or nodes or [{"location": 0, "locations": share["ranks"], "most": share["cores"]} for share in shared]
    node = max(nodes, key=lambda one: one["locations"])
    sentence = (certainly(run) or _who(run, node, len(nodes) - 1)) + " "
    if switches := Counters(run.result).get("ru_nivcsw"):
        sentence += FIGURES.say(
            "The core of one of them went to another thread {switches} times. ", switches=round(switches.total)
        )
    yield run.finding(
        NAME,
        sentence + slow.words() + ".",
        "Run with at most one rank or thread per core, or check the binding: measurements of a shared core say little "
        "about the program.",
        slow.loss,
        evidence={
            "nodes": nodes,
            "together": _together(run, node),
            "seen": seen,
            "shared": shared,
            **slow.evidence(),
        },
        merged=slow.callpaths(),
    )
    slow.take()


def certainly(run: Run) -> Words | None:
    """Return who shares cores, if the kernel says so."""
    if seen := _seen_cores(run):
        return _who(run, seen[0], 0)
    shared = shared_cores(run.result.facts)
    return _allowed(shared) if shared else None


def shared_cores(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes, as a recording tells them, on which more ranks than cores may run."""
    found = []
    for line in str(facts.get("cores", "")).splitlines():
        if match := _SHARE.fullmatch(line):
            ranks, threads, cores, online = map(int, match.groups()[:4])
            share = {"host": match[5], "ranks": ranks, "threads": threads, "cores": cores, "online": online}
            found += [share] if ranks > cores else []
    return found


def _allowed(shared: list[dict[str, Any]]) -> Words:
    """Return which ranks may use fewer cores than they are."""
    tightest = max(shared, key=lambda share: share["ranks"] / share["cores"])
    numbers = {"sharing": tightest["ranks"], "allowed": tightest["cores"]}
    said = FIGURES.say(f"{{sharing}} ranks share {{allowed}} core{'s' * (tightest['cores'] != 1)}", **numbers)
    if others := len(shared) - 1:
        said += FIGURES.say(" of {host}", host=tightest["host"])
        nodes = "{nodes} other nodes" if others > 1 else "another node"
        said += FIGURES.say(f", and more ranks than cores are on {nodes}", nodes=others)
    return said + "."


def _who(run: Run, node: dict[str, Any], others: int) -> Words:
    """Return who shares cores, and what says so."""
    places = run.result.places
    what = "threads" if run.threads > 1 else "ranks"
    where = Words("")
    if others:
        where = FIGURES.say(" on the node of rank {rank}", rank=str(places.rank[node["location"]]))
        where += FIGURES.say(" (and on {nodes} other nodes)" if others > 1 else " (and on another)", nodes=others)
    if "cores" in node:
        said = FIGURES.say(f"The {{locations}} {what}", locations=node["locations"]) + where
        cores = "core" if node["cores"] == 1 else "cores"
        return said + FIGURES.say(f" ran on {{cores}} {cores}, as the kernel says.", cores=node["cores"])
    shares = _together(run, node)
    computes = sum(shares[1:])
    for most in range(1, len(shares) - 1):
        more = sum(shares[most + 1 :])
        if more <= _HARDLY * computes:
            said = FIGURES.say(
                f"Hardly ever more than {{most}} of the {{locations}} {what}", most=most, locations=node["locations"]
            )
            verb = "computes" if most == 1 else "compute"
            # What no sample saw can still have been.
            more = max(more, _SAMPLE)
            return said + where + FIGURES.say(f" {verb} at the same time ({{more}}): they share cores.", more=more)
    numbers = {"most": node["most"], "locations": node["locations"]}
    if "observed" in node:
        said = FIGURES.say(f"Short pieces of work ran on more than {{most}} of the {{locations}} {what}", **numbers)
        chance = FIGURES.say(
            " in {observed} of the time, where chance would have it in {expected}: they share cores.",
            observed=node["observed"],
            expected=node["expected"],
        )
        return said + where + chance
    said = FIGURES.say(f"Of {{locations}} {what}", locations=node["locations"]) + where
    verb = "other computes" if node["most"] == 1 else "others compute"
    return said + FIGURES.say(
        f", {{most}} {verb} in {{slow}} of the time of slow calls, hardly ever more, and in {{fast}} of that of other "
        "calls: they share cores.",
        most=node["most"],
        slow=node["slow"],
        fast=node["fast"],
    )


def _together(run: Run, node: dict[str, Any]) -> list[float]:
    """Return the shares of the time in which none of a node's locations computes, one does, and so on, if known."""
    known = run.result.facts.get("computing_together") or []
    return next((list(one["shares"]) for one in known if one["location"] == node["location"]), [])


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
    return [{"location": int(counted["location"][0].as_py()), "locations": counted.num_rows, "cores": cores}]


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
