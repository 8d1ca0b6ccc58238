"""Find the changes that would save most time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_top, add_verb, positive, share
from whywait.commands.results import TRACE, add_analysis, add_named_focus, analysis_choices, open_trace
from whywait.report.terminal import count, paragraph, percent, progress_sentence
from whywait.report.values import quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import Any

    from whywait.api.advise import Advice, AdviceList
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "advise",
        "find the changes that would save the most time",
        "Show the findings with the prices of all their changes. Then simulate the changes that findings, delay costs, "
        "the critical path, and wait states suggest, and rank them by the time they save. Savings of separate changes "
        "do not add up; the steps of the plan build on each other.",
        "whywait advise run/ --only balance,scale --rounds 2",
        run,
        operands={"trace": TRACE},
    )
    add_analysis(parser)
    add_named_focus(parser, "the part of the run that suggests the changes, and that they are to shorten")
    add_top(parser, "how many changes to list")
    parser.add_argument(
        "--rounds",
        type=_count,
        default=3,
        metavar="N",
        help="maximum number of steps of the plan (default: %(default)s)",
    )
    parser.add_argument(
        "--goal",
        choices=("time", "cpu"),
        default="time",
        help="what to save: time, or CPU time without waiting (default: time)",
    )
    parser.add_argument(
        "--keep-going",
        type=share,
        default=0.005,
        metavar="SHARE",
        help="end the plan if the next step saves less than this share of the focus (default: 0.5%%)",
    )
    parser.add_argument(
        "--only",
        metavar="KINDS",
        help="only these changes: balance, scale, cut, cut-messages, overlap, eager-limit, progress, network",
    )
    parser.add_argument(
        "--limit",
        type=float,
        metavar="SECONDS",
        help="about how long to simulate changes: the prices of findings first, then other changes, and the plan last "
        "(default: 10, and another second for each million events beyond 10)",
    )


# How long simulations may take by default.
_SECONDS, _SECONDS_PER_EVENT = 10.0, 1e-6


def _count(text: str) -> int:
    return 0 if text == "0" else positive(text)


def run(options: argparse.Namespace) -> Answer:
    """Find candidate changes, simulate each, and return their savings."""
    import whywait
    from whywait.analysis.focus import ALL, focused
    from whywait.analysis.proposals.prices import priced_findings
    from whywait.analysis.proposals.time_limit import Clock
    from whywait.commands.findings import findings_data
    from whywait.hypotheses.compiler import Compiler
    from whywait.hypotheses.lengths import Graph
    from whywait.report.findings import finding_lines

    with Progress(quiet=options.json) as progress:
        result = whywait.analyze(
            open_trace(options.trace),
            progress=progress,
            **analysis_choices(options),
        )
        limit = options.limit
        if limit is None:
            limit = max(_SECONDS, result.facts["events"] * _SECONDS_PER_EVENT)
        clock = Clock(limit)
        # All of them simulate the same graph.
        graph = Graph.of(result, Compiler(result, None), threads=options.threads, progress=progress)
        found = priced_findings(
            result,
            focus=None if options.focus == ALL else options.focus,
            simulate=True,
            threads=options.threads,
            seconds=clock.left,
            progress=progress,
        )
        advice = whywait.advise(
            result,
            top=options.top,
            rounds=options.rounds,
            goal=options.goal,
            keep_going=options.keep_going,
            only=[kind.strip() for kind in options.only.split(",")] if options.only else None,
            focus=options.focus,
            seconds=clock.left,
            threads=options.threads,
            progress=progress,
        )
        exposed = advice.expose(clock.left)
        del graph
        of_option = {price.option: number for number, one in enumerate(found.shown, 1) for price in one.prices}
        data = None
        if options.json:
            data = advice.as_dict(exposed) | {"findings": findings_data(found, result)}
            for one in (*data["advice"], *data["bounds"], *data["plan"]):
                one["finding"] = of_option.get(one["option"])

    def all_lines(screen: Screen) -> Iterator[Line]:
        if found.shown:
            yield from finding_lines(found, screen.width)
            yield []
        yield from lines(advice, screen.width, exposed, of_option)

    return Answer(data, all_lines, focus=focused(result, options.focus))


_COLUMN = 11


def lines(advice: AdviceList, width: int, exposed: int, of_option: Mapping[str | None, int]) -> Iterator[Line]:
    """Yield the list of changes, then the plan.

    Parameters
    ----------
    advice
        The advice.
    width
        The number of columns.
    exposed
        For how many changes it is known which waits they expose.
    of_option
        The numbers of the findings that propose changes, by their options.
    """

    def entry(number: str, one: Advice, saved: float, share: float, style: str = "green") -> Iterator[Line]:
        yield from _entry(number, one, (saved, share), head, of_option.get(one.option), style)

    if not advice:
        yield [("None of the simulated changes saves time." if not advice.left_out else _left(advice), "")]
        return
    head = width - 2 * _COLUMN - 8
    title = f"What would help ({quantity(advice.before, 'sec')} measured)"
    yield [(title.ljust(head) + "length".rjust(_COLUMN) + "saved".rjust(_COLUMN) + "share".rjust(8), "bold")]
    for number, one in enumerate(advice, 1):
        yield from entry(f"{number}. ", one, one.saved, one.share)
        if number <= exposed:
            yield from _exposed(one)
    if advice.bounds:
        yield []
        yield [
            (
                "Bounds: changes that nobody can make".ljust(head) + "length".rjust(_COLUMN) + "less".rjust(_COLUMN),
                "dim",
            )
        ]
        for one in advice.bounds:
            yield from entry("   ", one, one.saved, one.share, "dim")
    if advice.plan:
        yield []
        yield [("Plan: combined, step by step".ljust(head) + "length".rjust(_COLUMN) + "saved".rjust(_COLUMN), "bold")]
        for number, one in enumerate(advice.plan, 1):
            saved = advice.before - one.after
            yield from entry(f"{number}. ", one, saved, saved / advice.before)
    if advice.left_out or advice.is_cut:
        yield [(_left(advice), "dim")]
    if advice.progress:
        yield []
        yield from paragraph(progress_sentence(advice.progress), width)
    if advice[0].assumed >= 0.001:
        yield [(f"{advice[0].assumed:.1%} of the time is in calls for which something is assumed.", "dim")]


def _left(advice: AdviceList) -> str:
    """Return what there was no time for."""
    left = f"Not simulated: {count(advice.left_out, 'change')}" if advice.left_out else "The plan may go on"
    return f"{left}; the time was up (--limit SECONDS gives more)."


def _entry(
    number: str, one: Advice, saves: tuple[float, float], head: int, finding: int | None, style: str
) -> Iterator[Line]:
    label = _fitted(one.what, head - len(number) - 1)
    saved, share = saves
    cells = quantity(one.after, "sec").rjust(_COLUMN) + quantity(saved, "sec").rjust(_COLUMN) + percent(share).rjust(8)
    yield [(number, ""), (label.ljust(head - len(number)), ""), (cells, style)]
    yield [(f"   {one.option}" + ("" if finding is None else f"   (finding {finding})"), "dim")]
    if one.base:
        yield [(f"   compared with {quantity(one.before, 'sec')} on the network that fits the run", "dim")]


def _fitted(text: str, width: int) -> str:
    """Shorten a text at the front of the call path in it, so that the change stays readable."""
    path = max(text.split(), key=lambda word: word.count("/"))
    names = path.split("/")
    for first in range(1, len(names)):
        if len(text) <= width:
            break
        shorter = "/".join(["…", *names[first:]])
        text, path = text.replace(path, shorter, 1), shorter
    return text if len(text) <= width else text[: width - 1] + "…"


def _exposed(one: Advice) -> Iterator[Line]:
    exposed = one.exposed
    if worst := exposed["worst"]:
        left = f"{worst['display_name']}, {quantity(worst['waiting'], 'sec')}"
        saved = exposed["waiting_saved"]
        change = f"{quantity(abs(saved), 'sec')} {'less' if saved >= 0 else 'more'} waiting"
        yield [(f"   {change}; largest remaining: {left}", "dim")]
