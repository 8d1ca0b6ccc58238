"""What slow calls do, by samples in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures, joined
from whywait.analysis.functions.inside_calls import inside

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Run

NAME = "in_calls"
TITLE = "Samples in slow calls"
DOCUMENT = """\
A remark on findings of library calls that take longer than others of their kind, if the trace has
[samples](functions.md): what the calls with most of this excess do, the two largest parts. At least 30 samples must
be in them. Their places in the library tell polling, copying, locks, and system calls; what samples do not stand for,
where they follow a clock that stands still then, is in the system, or the thread was asleep or had no core.
"""
FIGURES = Figures(
    samples_in_calls=("count", "the samples in the calls"),
    kind_in_calls=("name", "what they do"),
    part_in_calls=("share", "the part of their time"),
    error_in_calls=("share", "the standard deviation of that, times 1.96"),
)

_PARTS = 2


def remark(run: Run, found: list[Finding]) -> None:
    """Add to findings what slow calls do."""
    for one in found:
        region = next((value.value for value in one.values if value.name == "region"), None)
        if region is None or not any(value.name == "excess" for value in one.values):
            continue
        tree = run.result.tree
        calls = [number for number in range(len(tree)) if run.region(number).name == region]
        seen = inside(run.result, calls)
        if seen is None:
            continue
        parts = [
            FIGURES.say(
                "{kind_in_calls} {part_in_calls} ± {error_in_calls}",
                kind_in_calls=part["kind"],
                part_in_calls=part["share"],
                error_in_calls=part["error"],
            )
            for part in seen["parts"][:_PARTS]
        ]
        words = FIGURES.say("By {samples_in_calls} samples in these calls: ", samples_in_calls=seen["samples"])
        one.remark(NAME, words + joined(parts) + " of their time.")
        one.evidence[NAME] = seen
