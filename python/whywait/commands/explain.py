"""Explain a finding, or the cause of a wait state."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb, positive
from whywait.commands.results import CALLPATH, RESULT, add_analysis, add_focus, analysis_choices, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait import Result
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "explain",
        "explain a finding, or the longest wait state",
        "With a number, explain the finding of this number: what its loss is made of, who causes it, and the longest "
        "wait of it as an example. Without, show why a wait state waits, by default the longest: who caused it, who "
        "made that process wait, down to the work that took too long. Each line shows how much of the wait it "
        "explains; the leaves add up to the wait.",
        "whywait explain scorep_run/traces.otf2 1",
        run,
        operands={"trace": RESULT},
    )
    parser.add_argument(
        "number", nargs="?", type=positive, metavar="N", help="the number of a finding: see `whywait findings`"
    )
    add_analysis(parser)
    parser.add_argument(
        "--metric", metavar="M", help="the longest wait of this kind (mpi_latesender) or below this metric"
    )
    parser.add_argument("--callpath", metavar="C", help=CALLPATH)
    parser.add_argument("--rank", type=int, metavar="R", help="the longest wait of this rank")
    parser.add_argument(
        "--step", metavar="S", help="the longest wait in this step or iteration, as `whywait iterations` calls it"
    )
    add_focus(parser)
    parser.add_argument(
        "--depth", type=positive, default=8, metavar="N", help="follow chains of up to N waits (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Answer:
    """Return why a wait occurred."""
    from whywait.analysis.focus import find_focus
    from whywait.analysis.ranking import Choice
    from whywait.report.explanation import explanation_lines, untraced_line

    if options.number is not None:
        return _of_finding(options)
    result = load(options.trace, choices=analysis_choices(options))
    part = find_focus(result, options.focus.name)
    window = options.focus.window(result.facts["length"]) if options.focus.window else part.window
    if options.step is not None:
        window = _step(result, options.step)
    choice = Choice(options.metric, options.rank, options.callpath or part.callpath, window=window)
    explained = result.explain(choice, depth=options.depth)
    if explained is None:
        return Answer(None, lambda _: [[("No matching wait state has a known cause.", "")]], results=[result])
    labels = {metric.name: metric.display_name for metric in result.profile.metrics}

    def lines(screen: Screen) -> Iterator[Line]:
        yield from explanation_lines(explained, labels, screen.width, unicode=screen.unicode)
        untraced = result.facts.get("nsight", {}).get("untraced", ())
        own = {kind.name for kind in result.tree.kinds if kind.is_own}
        yield from ([(line, "dim")] for line in wrap(untraced_line(explained, untraced, own), screen.width))

    return Answer(explained, lines, results=[result])


def _step(result: Result, name: str) -> tuple[float, float]:
    """Return begin and end of a step, by the value that the program counts, or else by its number."""
    import whywait._native as _native

    table = result.iterations()
    if table is None:
        raise _native.UsageError("the run has no steps")
    values = table["value"].to_pylist()
    names = values if values[0] is not None else [str(number) for number in table["iteration"].to_pylist()]
    if name not in names:
        raise _native.UsageError(f"there is no step {name}: they are {names[0]} to {names[-1]}")
    row = names.index(name)
    return table["begin"][row].as_py(), table["end"][row].as_py()


def _of_finding(options: argparse.Namespace) -> Answer:
    """Return what a finding rests on: its sums, and a wait as an example."""
    import whywait._native as _native
    from whywait.analysis.findings.evidence import by_rank, example, parts
    from whywait.analysis.findings.finding import Run
    from whywait.commands.findings import load_findings
    from whywait.report.explanation import explanation_lines
    from whywait.report.findings import evidence_lines

    if options.metric or options.callpath or options.step or options.rank is not None:
        raise _native.UsageError("a finding has a number; --metric, --callpath, --rank and --step choose a wait state")
    result, found = load_findings(options, options.trace, max(options.number, 5))
    if options.number > len(found.shown):
        have = f"there are {len(found.shown)}" if found.shown else found.verdict()
        raise _native.UsageError(f"there is no finding {options.number}: {have}")
    one = found.shown[options.number - 1]
    run = Run(result)
    made_of, ranks, wait = parts(run, one), by_rank(run, one), example(result, one)
    explained = None if wait is None else result.explain(wait["wait"], depth=options.depth)
    labels = {metric.name: metric.display_name for metric in result.profile.metrics}

    def lines(screen: Screen) -> Iterator[Line]:
        yield from evidence_lines(one, made_of, ranks, screen.width)
        if explained is not None:
            yield []
            yield [("The longest wait that it explains most of, as an example:", "bold")]
            yield from explanation_lines(explained, labels, screen.width, unicode=screen.unicode)

    data = {
        "number": options.number,
        "rule": one.rule,
        "sentence": one.sentence,
        "remarks": list(one.remarks.values()),
        "advice": one.advice,
        "loss": one.loss,
        "share": one.share,
        "parts": [{"label": label, "time": time} for label, time in made_of],
        "ranks": [{"rank": rank, "waiting": time} for rank, time in ranks],
        "evidence": one.evidence,
        "example": explained,
    }
    return Answer(data, lines, results=[result])
