"""Waiting in the first iteration only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures
from whywait.analysis.iterations import kinds, known_iterations

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Run

NAME = "start_up_artefact"
TITLE = "Waiting at the start only"
DOCUMENT = """\
A remark on the finding that bears most of it: at least 80% of the waiting of a kind lies in the first of ten or more
iterations of the main loop. Libraries connect, memory is touched for the first time, caches are cold; a longer run has
no more of it.
"""
FIGURES = Figures(
    first_share=("share", "the part of the waiting of this kind that lies in the first iteration"),
    wait_state=("name", "the kind of waiting"),
)

_SHARE, _ITERATIONS, _LEAST = 0.8, 10, 0.01


def remark(run: Run, found: list[Finding]) -> None:
    """Add to the finding that bears most of a kind of waiting that it belongs to the first iteration."""
    table = known_iterations(run.result)
    if table is None or table.num_rows < _ITERATIONS:
        return
    for kind in kinds(table):
        total = run.losses.account.times.get(f"wait.{kind}", 0.0)
        first = float(table[kind][0].as_py())
        if total < _LEAST * run.time or first < _SHARE * total:
            continue
        metric = run.result.profile.metrics[kind]
        host = next((one for one in found if one.base == "cpu" and one.evidence.get("of_classes")), None)
        if host is not None:
            host.remark(
                NAME,
                FIGURES.say(
                    "{first_share} of the time in {wait_state} lies in the first iteration.",
                    first_share=min(first / total, 1.0),
                    wait_state=metric.display_name,
                ),
            )
            host.evidence[NAME] = {"kind": kind, "first": first, "total": total}
