"""The causes of a wait state as a tree of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from whywait.analysis.explain import SMALL, unexplained
from whywait.model.metrics import JOINS, is_inferred
from whywait.model.names import short_name
from whywait.report.suspects import suspects
from whywait.report.terminal import path, seconds
from whywait.report.values import quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from whywait.report.terminal import Line

_TIME = 10
# Own code that explains less of a wait is not worth a word, in seconds.
_BRIEF = 1e-3
# Counters with a relative difference below this are called the same.
_SAME = 0.1


def explanation_lines(
    explained: dict[str, Any], labels: Mapping[str, str], width: int, *, unicode: bool
) -> Iterator[Line]:
    """Yield the explanation of a wait state, line by line.

    Parameters
    ----------
    explained
        What `whywait.Result.explain` returned.
    labels
        The display name of each kind of wait state.
    width
        The number of columns.
    unicode
        Whether to use characters beyond ASCII.
    """
    kind = labels[explained["kind"]]
    head = f"{kind}: {who(explained)} at {explained['enter']:.6f} s"
    yield [(head.ljust(width - _TIME), "bold"), (seconds(explained["waiting"]).rjust(_TIME), "")]
    writer = _Writer(labels, width - _TIME, unicode=unicode, least=SMALL * explained["waiting"])
    yield from writer.below(explained, explained["waiting"], "")


def untraced_line(explained: Mapping[str, Any], untraced: Collection[int], own: Collection[str]) -> str:
    """Return what to know of own code that is blamed for a wait, where it may contain calls that are not traced.

    Parameters
    ----------
    explained
        What `whywait.Result.explain` returned.
    untraced
        The ranks that complete requests in such calls.
    own
        The names of regions that are own code.

    Returns
    -------
    str
        A sentence; empty if no such code explains more than `_BRIEF`.
    """
    ranks = sorted(set(_blamed(explained, own)) & set(untraced))
    if not ranks:
        return ""
    names = ", ".join(map(str, ranks))
    who, do = (f"Rank {names}", "completes") if len(ranks) == 1 else (f"Ranks {names}", "complete")
    return f"{who} {do} requests in calls that are not traced, such as MPI_Test: their time may be part of this work."


def _blamed(node: Mapping[str, Any], own: Collection[str]) -> Iterator[int]:
    """Yield the ranks whose own code explains some of a wait."""
    if any(
        work["explains"] > _BRIEF and work["callpath"][-1:] and work["callpath"][-1] in own for work in node["work"]
    ):
        yield node["cause_rank"]
    for wait in node["waits"]:
        yield from _blamed(wait, own)


def who(node: Mapping[str, Any], prefix: str = "") -> str:
    """Return the display name of a wait's location, or of its cause's location with the prefix ``cause_``."""
    thread = f".{node[prefix + 'thread']}" if node[prefix + "thread"] else ""
    return f"rank {node[prefix + 'rank']}{thread}"


def differences(counters: Mapping[str, Mapping[str, float]]) -> str:
    """Return how the counters of the same work differ between the delaying and the waiting process.

    Parameters
    ----------
    counters
        By counter, the values of the ``cause`` and the ``waiter``.

    Returns
    -------
    str
        Such as ``the same PAPI_TOT_INS, 3 times the PAPI_L2_TCM``: differences up to a tenth count as the same.
        Empty if there is nothing to compare.
    """
    ratios = _ratios(counters)
    same = [name for name, ratio in ratios.items() if abs(ratio - 1) <= _SAME]
    texts = [f"{ratios[name]:.3g} times the {name}" for name in _most_different(ratios)]
    names = " and ".join(same) if len(same) < 3 else f"{', '.join(same[:-1])}, and {same[-1]}"
    return ", ".join([f"the same {names}", *texts] if same else texts)


def rates(counters: Mapping[str, Mapping[str, float]], waiter: str) -> list[str]:
    """Return the counters per second of the same work, where the delaying and the waiting process differ.

    Parameters
    ----------
    counters
        By counter, the growth per second of the ``cause`` and the ``waiter``.
    waiter
        What to call the waiting process.

    Returns
    -------
    list of str
        Such as ``PAPI_TOT_INS per second: 1.20 G, rank 0: 3.10 G``, largest relative difference first; without those
        that differ by up to a tenth.
    """
    return [
        f"{name} per second: {quantity(sides['cause'], 'occ')}, {waiter}: {quantity(sides['waiter'], 'occ')}"
        for name, sides in ((name, counters[name]) for name in _most_different(_ratios(counters)))
    ]


def _ratios(counters: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return how many times the waiter's value the cause has, of counters that both have."""
    known = {name: sides for name, sides in counters.items() if sides["cause"] > 0 and sides["waiter"] > 0}
    return {name: sides["cause"] / sides["waiter"] for name, sides in known.items()}


def _most_different(ratios: Mapping[str, float]) -> list[str]:
    """Return the counters that differ by more than a tenth, most different first."""
    other = [name for name, ratio in ratios.items() if abs(ratio - 1) > _SAME]
    return sorted(other, key=lambda name: (-abs(math.log(ratios[name])), name))


class _Part(NamedTuple):
    """A line of the tree, the time that it explains, and its children."""

    explains: float
    text: str
    notes: tuple[str, ...] = ()
    callpath: list[str] | None = None
    wait: dict[str, Any] | None = None


class _Writer:
    def __init__(self, labels: Mapping[str, str], room: int, *, unicode: bool, least: float) -> None:
        self._labels = labels
        self._room = room
        self._unicode = unicode
        self._least = least
        self._bars = ("├─ ", "└─ ", "│  ") if unicode else ("+- ", "`- ", "|  ")

    def below(self, node: dict[str, Any], amount: float, indent: str) -> Iterator[Line]:
        """Yield the lines below a wait that explains a given amount of the time."""
        yield [(indent + self._path(node["callpath"], indent), "dim")]
        if node["cause_rank"] is None:
            return
        cause = who(node, "cause_")
        if node["cause_callpath"]:
            region = node["cause_callpath"][-1]
            name = short_name(region) + (" (inferred)" if is_inferred(node) else "")
            if node["kind"] in JOINS:
                call = f"whose {name} ended at {node['enter'] + node['waiting']:.6f} s"
            else:
                call = f"whose {name} began at {node['cause_time']:.6f} s"
            lines = [f"{indent}for {cause}, {call}"]
            if node["cause_sync"]:
                met = f"last synchronized at {node['since']:.6f} s"
                fits = len(lines[0]) + len(met) + 2 <= self._room + _TIME
                lines = [f"{lines[0]}; {met}"] if fits else [f"{lines[0]};", f"{indent}{met}"]
            yield from ([(line, "dim")] for line in lines)
        parts = sorted(self._parts(node, amount), key=lambda part: -part.explains)
        if (rest := node["rest"] * self._scale(node, amount)) > 0:
            parts.append(_Part(rest, f"other causes, < {100 * SMALL:.0f}% each"))
        fork, end, bar = self._bars
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            label = indent + (end if last else fork) + part.text
            yield [(label[: self._room - 1].ljust(self._room), ""), (seconds(part.explains).rjust(_TIME), "")]
            inner = indent + ("   " if last else bar)
            if part.callpath is not None:
                yield [(inner + self._path(part.callpath, inner), "red")]
            yield from ([(inner + note, "dim")] for note in part.notes)
            if part.wait is not None:
                yield from self.below(part.wait, part.explains, inner)

    def _path(self, callpath: list[str], indent: str) -> str:
        return path(callpath, self._room - len(indent), unicode=self._unicode)

    def _scale(self, node: dict[str, Any], amount: float) -> float:
        """Return the scale of the factors of a wait: without its unexplained part if that gets a line of its own."""
        explains: float = node["explains"]
        share = amount / explains
        if node["unexplained"] * share < self._least:
            return share
        factor: float = share * (1 - node["unexplained"] / explains)
        return factor

    def _parts(self, node: dict[str, Any], amount: float) -> Iterator[_Part]:
        cause, scale = who(node, "cause_"), self._scale(node, amount)
        for work in node["work"]:
            text = f"{who({**node, 'cause_thread': work['thread']}, 'cause_')} spent {seconds(work['time'])} here"
            waiter = who({**node, "thread": work["waiter_thread"]})
            if work["waiter_time"]:
                text += f", {waiter} {seconds(work['waiter_time'])}"
            notes = tuple(filter(None, [differences(work["counters"]), *rates(work["rates"], waiter)]))
            yield _Part(work["explains"] * scale, text, notes, work["callpath"])
        if (completion := node["completion"]) is not None:
            call, later = short_name(completion["callpath"][-1]), completion["time"] - completion["waiter_time"]
            text = f"{cause} left the preceding {call} {seconds(later)} later"
            yield _Part(completion["explains"] * scale, text, callpath=completion["callpath"])
        for wait in node["waits"]:
            kind = self._labels[wait["kind"]]
            text = f"{who(wait)} waited {seconds(wait['waiting'])}: {kind} at {wait['enter']:.6f} s"
            yield _Part(wait["explains"] * scale, text, wait=wait)
        share = amount / node["explains"]
        if node["unexplained"] * share >= self._least:
            behind, unrecorded = unexplained(node)
            if behind:
                yield _Part(behind * share, f"unexplained: {cause} was behind when the two last synchronized")
            if unrecorded:
                text = f"unexplained: no event between {cause}'s call and this one;"
                yield _Part(unrecorded * share, text, (suspects([node["kind"]]),))
        elif node["unattributed"] > 0:
            yield _Part(node["unattributed"] * share, "not attributed to any cause")
