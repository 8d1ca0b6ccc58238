"""The page docs/findings.md, made from the rules of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings import rules

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Rule

INTRODUCTION = """\
# I see X: what do I do?

`whywait findings` lists the largest losses between start-up and shutdown, each with its reason in a sentence. A loss
is the sum of all that one call path is to blame for: the waiting that the [cost model](causes.md) charges for it
(directly and through other waits), the threads that are idle because of it, and lost time that is spent in it. So the
losses of all call paths add up to the lost time of [the account](account.md), and no second is named twice. Waiting
of which the trace shows no cause, and waiting that is caused before the focus, stand apart.

Rules are asked in the order of this page, and each takes what it explains. A rule whose condition fails says nothing.
A finding is shown if it has at least 1% of the CPU time: the first three, and others until 90% of the lost time are
named, at most five, the largest loss first. What remains is named as the rest, with its parts. `findings.parquet` has
all of them. `whywait findings --focus PATH` shows only what these call paths are to blame for, with the same losses.

What a trace does not say is said first: sends that are not in it, ranks without events, clocks that disagree. A
recording of `whywait record` has no functions without MPI calls, so the time between two calls is named by the function
that makes them.

All that differs from run to run in a sentence is a value with a name, a unit and a meaning, which the tables below
list. `findings.parquet` and `whywait findings --json` have them (`values`): times are in seconds, shares are fractions,
`times` is a multiple of something else.

`docs/make_findings.py` generates this page from `python/whywait/analysis/findings`.
"""


def page() -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join(map(section, rules().values()))


def section(rule: Rule) -> str:
    """Return the text about a rule, with the figures and names in its sentences."""
    lines = [f"\n## {rule.title}\n", f"`{rule.name}`. {' '.join(rule.document.split())}\n"]
    lines += ["| value | unit | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {unit} | {meaning} |" for name, (unit, meaning) in rule.figures.items()]
    return "\n".join(lines) + "\n"
