"""Findings in the terminal, and the first screen: where the time went, why, and what a change saves."""

from __future__ import annotations

import textwrap
from itertools import islice
from typing import TYPE_CHECKING

from whywait.analysis.account import account
from whywait.analysis.findings.words import Words, joined
from whywait.analysis.proposals.prices import NO_EVENTS, NO_FIT, NOTHING, REFUSED, TOO_EXPENSIVE, UNKNOWN
from whywait.model.names import short_name
from whywait.report.account import device_lines, group_lines
from whywait.report.terminal import count, finding, paragraph, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from whywait.analysis.findings import Findings
    from whywait.analysis.findings.finding import Finding
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line

# The columns of the loss, and of what a change saves.
_LOSS, _SAVES = 10, 20
# So many ranks are named.
_RANKS = 5
# Smaller parts of the rest have no name.
_SMALL = 0.002
# In the place of what a change saves, if that was not simulated.
_WHY_NOT = {TOO_EXPENSIVE: ("not simulated", "(--prices)")} | dict.fromkeys(
    (NO_EVENTS, NO_FIT, REFUSED), ("not simulated", "")
)
# Smaller rows of the account are not on the first screen.
_LEAST = 0.01


def first_screen(
    result: ResultData, found: Findings, summary: dict[str, Any], trace: str | None, width: int, *, unicode: bool = True
) -> Iterator[Line]:
    """Yield the first screen: the run, the verdict, the account, the findings, and what to do next.

    Parameters
    ----------
    result
        The result.
    found
        Its findings.
    summary
        Its summary: `whywait.analysis.summary.summarize`.
    trace
        The trace, as the next command has it; None for no command.
    width
        The number of columns.
    unicode
        Whether to draw with more than ASCII.
    """
    where = account(result)
    facts = result.facts
    name = short_name(summary["run"]["program"] or summary["run"]["name"])
    for line in paragraph(f"{name}: {_size(facts)}; {_focus(where, facts)}", width):
        yield [(line[0][0], "bold")]
    for line in paragraph(found.verdict(), width):
        yield [(line[0][0], "bold")]
    yield []
    # Who trains models pays for devices.
    if "traces" in facts and result.tables.device_account.num_rows:
        yield from islice(device_lines(result, width, unicode=unicode), 1, None)
        yield []
        yield from group_lines(where, width, least=_LEAST, unicode=unicode)
    else:
        yield from group_lines(where, width, least=_LEAST, unicode=unicode)
        yield from device_lines(result, width, unicode=unicode)
    if found.shown:
        yield []
        yield from finding_lines(found, width, details=False)
    if summary["warnings"]:
        yield []
        yield [("Warnings", "bold")]
        for warning in summary["warnings"]:
            for line in paragraph(finding(warning), width - 3):
                yield [(f"   {line[0][0]}", "yellow")]
    if trace is not None and (command := next_command(found, trace)) is not None:
        yield []
        yield [("Next: ", "bold"), (command, "")]


def next_command(found: Findings, trace: str) -> str | None:
    """Return the command for the finding to begin with, or for the first with a price; None if little is lost."""
    for one in [*filter(None, [found.best]), *found.shown]:
        if (
            one.price is not None
            and one.price.option is not None
            and (one.price.saved or 0.0) >= NOTHING * found.length
        ):
            return f"whywait whatif {trace} {one.price.option}"
    return f"whywait advise {trace}" if found.shown else None


def finding_lines(found: Findings, width: int, *, details: bool = True) -> Iterator[Line]:
    """Yield the findings to show: each with the lost time, and what a change saves.

    Parameters
    ----------
    found
        The findings.
    width
        The number of columns.
    details
        Whether to add what to do, all prices, and why there is none.
    """
    known = any(one.prices or one.unpriced for one in found.shown)
    numbers = _LOSS + (_SAVES if known else 0)
    room = width - numbers - 3
    head = "Findings".ljust(room + 3) + "lost".rjust(_LOSS) + ("saves".rjust(_SAVES) if known else "")
    yield [(head, "bold")]
    for number, one in enumerate(found.shown, 1):
        texts = textwrap.wrap(one.sentence, room, break_on_hyphens=False)
        beside = [seconds(one.loss).rjust(_LOSS), percent(one.share).rjust(_LOSS)]
        if known:
            beside = [left + right.rjust(_SAVES) for left, right in zip(beside, _saves(one, found.length), strict=True)]
        for remark in one.remarks.values():
            texts += textwrap.wrap(remark, room, break_on_hyphens=False)
        for row in range(max(len(texts), 2)):
            text = texts[row] if row < len(texts) else ""
            lead = f"{number}. " if row == 0 else "   "
            yield [(lead + text.ljust(room), ""), (beside[row] if row < 2 else "", "bold" if row == 0 else "")]
        if details:
            yield from _details(one, width)
    ends = []
    if found.together is not None and found.together.saved is not None:
        ends.append(f"{found.together.what}: {_about(found.together.is_rough)}{seconds(found.together.saved)}.")
    if not known and found.shown:
        ends.append("What changes would save is not simulated: see whywait analyze --prices.")
    if of_devices := [str(at) for at, one in enumerate(found.shown, 1) if one.base == "device"]:
        ends.append(f"Lost time of devices: {joined(map(Words, of_devices)).text}.")
    if words := _rest(found):
        ends.append(words)
    yield from ([(line[0][0], "dim")] for line in paragraph(" ".join(ends), width))
    for one in found.where:
        saves = ""
        if one.price is not None and (one.price.saved or 0.0) >= NOTHING * found.length:
            about = _about(one.price.is_rough)
            saves = f" {one.price.then}, it would be {about}{seconds(one.price.saved or 0.0)} shorter."
        yield from paragraph(f"Where the time goes: {one.sentence}{saves}", width)


def evidence_lines(
    one: Finding, parts: Sequence[tuple[str, float]], ranks: Sequence[tuple[int, float]], width: int
) -> Iterator[Line]:
    """Yield what a finding rests on.

    Parameters
    ----------
    one
        The finding.
    parts
        What its loss is made of, or what is slow: label and time.
    ranks
        The ranks that cause waiting, and how much.
    width
        The number of columns.
    """
    for text in (one.sentence, *one.remarks.values()):
        yield from ([(line[0][0], "bold")] for line in paragraph(text, width))
    room = width - 2 * _LOSS
    if one.loss:
        yield [("Lost".ljust(room) + seconds(one.loss).rjust(_LOSS) + percent(one.share).rjust(_LOSS), "")]
    whole = sum(time for _, time in parts)
    for label, time in parts:
        yield [(f"  {label}".ljust(room) + seconds(time).rjust(_LOSS) + percent(time / whole).rjust(_LOSS), "dim")]
    if len(ranks) > 1 or (ranks and one.ranks):
        waiting = sum(time for _, time in ranks)
        yield [("Who causes the waiting".ljust(room) + seconds(waiting).rjust(_LOSS), "")]
        for rank, time in ranks[:_RANKS]:
            yield [
                (
                    f"  rank {rank}".ljust(room) + seconds(time).rjust(_LOSS) + percent(time / waiting).rjust(_LOSS),
                    "dim",
                )
            ]
        if len(ranks) > _RANKS:
            rest = sum(time for _, time in ranks[_RANKS:])
            label = f"  {len(ranks) - _RANKS} others".ljust(room)
            yield [(label + seconds(rest).rjust(_LOSS) + percent(rest / waiting).rjust(_LOSS), "dim")]
    yield from _details(one, width)


def unsaved(one: Finding) -> tuple[str, str]:
    """Return what stands in the place of what a change saves, in two lines, if nothing was simulated."""
    return _WHY_NOT.get(one.unpriced or UNKNOWN, ("none known", ""))


def _saves(one: Finding, length: float) -> tuple[str, str]:
    """Return what the change of a finding saves, and the change, each in a few words."""
    price = one.price
    if price is not None and price.saved is not None:
        if abs(price.saved) < NOTHING * length:
            return "nothing", f"({price.label})"
        if price.saved < 0:
            return f"{seconds(-price.saved)} longer", f"({price.label})"
        return f"{_about(price.is_rough)}{seconds(price.saved)}", f"({price.label})"
    bound = next((each for each in one.prices if each.is_bound and each.saved is not None), None)
    if bound is None:
        return unsaved(one)
    return f"at best {seconds(bound.saved or 0.0)}", f"({bound.label})"


def _details(one: Finding, width: int) -> Iterator[Line]:
    """Yield where a finding is in the source, what to do about it, and the prices of its changes."""
    if source := one.evidence.get("source"):
        yield [(f"   {source}", "dim")]
    for line in textwrap.wrap(one.advice or "", width - 3, break_on_hyphens=False):
        yield [(f"   {line}", "dim")]
    for price in one.prices:
        if price.saved is None:
            continue
        kind = "at best " if price.is_bound else _about(price.is_rough)
        option = "" if price.option is None else f"  {price.option}"
        saved = f"{kind}{seconds(price.saved)}" if price.saved >= 0 else f"{seconds(-price.saved)} longer"
        yield [(f"   {saved.rjust(17)}  {price.what}{option}", "dim")]
    if one.unpriced is not None:
        yield [(f"   {one.unpriced}", "dim")]


def _rest(found: Findings) -> str:
    """Return what is lost beside what the findings name, and what it is."""
    rest = found.lost - sum(one.loss for one in found.shown if one.base == "cpu")
    if not found.time or rest <= 0 or found.is_of_devices:
        return ""
    large = [(label, time) for label, time in found.rest if time >= _SMALL * found.time]
    parts = ", ".join(f"{label} {percent(time / found.time)}" for label, time in large)
    return f"The rest: {percent(rest / found.time)} of the CPU time{parts and f' ({parts})'}."


def _about(is_rough: bool) -> str:
    return "about " if is_rough else ""


def shared_steps(facts: dict[str, Any]) -> list[int]:
    """Return the numbers of the steps that PyTorch's profiler has recorded on all ranks; none of other traces."""
    steps: list[int] = facts.get("traces", {}).get("steps", [])
    return steps


def _size(facts: dict[str, Any]) -> str:
    processes, locations = facts.get("processes", 0), facts.get("locations", 0)
    parts = [count(processes, "rank")]
    if steps := shared_steps(facts):
        parts.append(count(len(steps), "step"))
    if locations != processes:
        parts.append(count(locations, "location"))
    return ", ".join([*parts, count(facts.get("events", 0), "event")])


def _focus(where: Any, facts: dict[str, Any]) -> str:
    begin, end = where.window
    if where.rule == "profiler":
        return f"focus {seconds(end - begin)} of {seconds(facts['length'])} (what all ranks recorded)"
    if where.rule == "last_finalize":
        return f"focus {seconds(end - begin)} of {seconds(facts['length'])} (without start-up, shutdown)"
    return f"{seconds(end - begin)}"
