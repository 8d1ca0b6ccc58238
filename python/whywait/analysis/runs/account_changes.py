"""How the accounts and the findings of two runs differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import whywait._native as _native
from whywait.analysis.account import account, rows
from whywait.analysis.findings import findings, rules
from whywait.model.united_tree import UnitedTree

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding
    from whywait.model.result import ResultData

# A finding grew or shrank if its loss differs by at least this share of the larger CPU time.
_LEAST = 0.01


def account_changes(first: ResultData, second: ResultData, focus: str | None = None) -> list[dict[str, Any]] | None:
    """Return the accounts of two runs side by side.

    Parameters
    ----------
    first, second
        The runs.
    focus
        The part of each, as `whywait.analysis.account.account` takes it.

    Returns
    -------
    list of dict or None
        ``row``, ``label``, ``group``, ``first``, ``second``, ``difference`` (s of CPU time) of each row of the account
        that either run has; the largest change first. None if one of the runs has no account, as a profile.
    """
    try:
        before, after = (account(run, focus).times for run in (first, second))
    except _native.UsageError:
        return None
    found = [
        {
            "row": name,
            "label": f"Computation {row.label}" if row.group == "computation" else row.label,
            "group": row.group,
            "first": before.get(name, 0.0),
            "second": after.get(name, 0.0),
            "difference": after.get(name, 0.0) - before.get(name, 0.0),
        }
        for name, row in rows().items()
        if name in before or name in after
    ]
    return sorted(found, key=lambda line: -abs(line["difference"]))


def finding_changes(first: ResultData, second: ResultData) -> list[dict[str, Any]] | None:
    """Return which findings came, went, grew or shrank from one run to another.

    Findings of the same rule match if their call paths do.

    Parameters
    ----------
    first, second
        The runs.

    Returns
    -------
    list of dict or None
        ``change`` (``came``, ``went``, ``grew``, ``shrank`` or ``stayed``), ``rule``, ``title``, ``sentence`` (that of
        the second run if it has one), ``first``, ``second`` and ``difference`` (lost CPU time or time of devices, s;
        None for a run without the finding); the largest change first. None if a run has no findings, as a profile.
    """
    try:
        found = findings(first), findings(second)
    except _native.UsageError:
        return None
    calls = UnitedTree(first, second)
    sides: dict[tuple[str, int | None], list[Finding | None]] = {}
    for side, (run, ours) in enumerate(zip((first, second), found, strict=True)):
        for one in ours.notable if ours.silent is None else []:
            node = None if one.callpath is None else calls.nodes[side][int(run.tree.position[one.callpath])]
            sides.setdefault((one.rule, node), [None, None])[side] = one
    least = _LEAST * max(ours.time for ours in found)
    changes = [_change(before, after, least) for before, after in sides.values()]
    return sorted(changes, key=lambda line: -abs(line["difference"]))


def _change(before: Finding | None, after: Finding | None, least: float) -> dict[str, Any]:
    one = cast("Finding", after or before)
    losses = [side.loss if side else None for side in (before, after)]
    difference = (losses[1] or 0.0) - (losses[0] or 0.0)
    if before and after:
        change = "stayed" if abs(difference) < least else "grew" if difference > 0 else "shrank"
    else:
        change = "came" if after else "went"
    return {
        "change": change,
        "rule": one.rule,
        "title": rules()[one.rule].title,
        "sentence": one.sentence,
        "first": losses[0],
        "second": losses[1],
        "difference": difference,
    }
