"""The account and the findings, as the front page shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import whywait._native as _native
from whywait.analysis.account import account, groups, rows
from whywait.analysis.findings.evidence import example, parts
from whywait.analysis.findings.finding import Run
from whywait.analysis.proposals.prices import NOTHING, SMALL, priced_findings
from whywait.model.names import short_name
from whywait.model.profile import sum_at
from whywait.report.findings import next_command, unsaved
from whywait.report.html import shades
from whywait.report.html.parts import coarse
from whywait.report.html.places import computing
from whywait.report.terms import CHANGES, of_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from whywait.analysis.account import Account
    from whywait.analysis.findings import Findings
    from whywait.analysis.findings.finding import Finding, Price
    from whywait.model.result import ResultData

# The colors of groups, and metrics that show about the same in the explorer.
_FAMILIES = {
    "computation": ("work", "execution"),
    "waiting": ("waiting", "time"),
    "transfer": ("communication", "mpi"),
    "threads": ("threads", "omp_time"),
    "idle": ("idle", "omp_idle_threads"),
    "io": ("overhead", "mpi_io"),
    "devices": ("devices", "execution"),
    "other": ("overhead", "overhead"),
}
# Smaller rows are shown with others of their group.
_SMALL = 0.004
# So many lines of evidence.
_LINES = 6
# So many numbers of locations that compute at once.
_AT_ONCE = 12


def focused_account(result: ResultData, focus: Mapping[str, Any]) -> Account | None:
    """Return the account of the focus of a summary; None if there is none, or it needs events that are gone."""
    if result.is_profile:
        return None
    try:
        found = account(result, focus["callpath"] or ("all" if focus["name"] == "all" else None))
    except (_native.Error, OSError):
        return None
    return found if found.time else None


def account_parts(result: ResultData, found: Account) -> list[dict[str, Any]]:
    """Split the CPU time of a focus into the rows of its account, as `whywait.report.html.parts.parts` does.

    Returns
    -------
    list of dict
        ``metric`` (that shows about the same in the explorer), ``label``, ``about`` (what it is), ``family`` (the
        color), ``shade`` (0 to 4), ``group``, ``value`` and ``ranks``: the means of at most 512 groups of neighboring
        CPU locations.
    """
    cells = found.cells
    names = cells["row"].cast("string").to_numpy(zero_copy_only=False)
    location, time = cells["location"].to_numpy(), cells["time"].to_numpy()
    ran = computing(result.places)
    least = _SMALL * found.time

    def values(chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        return sum_at(location[chosen], time[chosen], len(result.places))[ran]

    waits = {name: name.removeprefix("wait.") for name in found.times if name.startswith("wait.")}
    known = result.profile.metrics
    # Wait states of several libraries can have the same name.
    distinct = known.labels(kind for kind in waits.values() if kind in known)
    parts = []
    for group, (family, metric) in _FAMILIES.items():
        inside = [(name, value) for name, value in found.times.items() if rows()[name].group == group and value > 0]
        inside.sort(key=lambda item: -item[1])
        shown = [name for name, value in inside if value >= least]
        rest = [name for name, _ in inside if name not in shown]
        if len(rest) == 1:
            shown, rest = [*shown, *rest], []
        kinds = [([name], distinct.get(waits.get(name, ""), _label(group, rows()[name].label)), name) for name in shown]
        if rest:
            kinds.append((rest, f"Other {groups()[group].label.lower()}" if shown else groups()[group].label, ""))
        for of_names, label, name in kinds:
            by_place = values(np.isin(names, of_names))
            parts.append({
                "metric": _metric(result, name, metric), "label": label, "family": family,
                "about": of_row(name) if name else groups()[group].description,
                "shade": shades.of_row(name) if name else shades.OTHERS,
                "group": groups()[group].label, "value": float(by_place.sum()), "ranks": coarse(by_place),
            })  # fmt: skip
    return parts


def _label(group: str, label: str) -> str:
    """Return a label that says by itself what it is part of."""
    return f"Computation {label}" if group == "computation" else label


def _metric(result: ResultData, name: str, metric: str) -> str:
    """Return the metric that shows a row in the explorer, or about the same."""
    metrics = result.profile.metrics
    for one in (name.removeprefix("wait.") if name.startswith("wait.") else metric, metric):
        if one in metrics:
            return one
    return "time"


def findings_story(result: ResultData) -> dict[str, Any]:
    """Return the findings with their evidence, for the front page."""
    found = priced_findings(result, simulate=result.facts.get("events", 0) <= SMALL)
    run = Run(result) if found.shown else None
    named = sum(one.loss for one in found.shown if one.base == "cpu")
    return {
        "verdict": found.verdict(),
        "of_devices": found.is_of_devices,
        "lost": found.lost,
        "time": found.time,
        "length": found.length,
        "together": found.together and {"what": found.together.what, "saved": found.together.saved},
        "rest": max(0.0, found.lost - named) if not found.is_of_devices else 0.0,
        "next": next_command(found, "TRACE"),
        "findings": [] if run is None else [_finding(result, run, found, one) for one in found.shown],
    }


def _finding(result: ResultData, run: Run, found: Findings, one: Finding) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "sentence": " ".join([one.sentence, *one.remarks.values()]),
        "advice": one.advice,
        "loss": one.loss,
        "share": one.share,
        "base": one.base,
        "callpath_id": one.callpath,
        "callpath": None if one.callpath is None else [short_name(name) for name in result.tree.path(one.callpath)],
        "price": one.price and _price(one.price),
        "bound": next((_price(price) for price in one.prices if price.is_bound and price.saved is not None), None),
        "prices": [_price(price) for price in one.prices if price.saved is not None],
        "unpriced": one.unpriced,
        "unsaved": unsaved(one)[0],
        "worthless": one.price is not None and (one.price.saved or 0.0) < NOTHING * found.length,
        "harmful": one.price is not None and (one.price.saved or 0.0) <= -NOTHING * found.length,
        "lines": [{"label": label, "time": time} for label, time in parts(run, one)[:_LINES]],
        "at_once": _at_once(run, one),
        "by_place": _by_place(result, run, one),
        "example": example(result, one),
    }


def _price(price: Price) -> dict[str, Any]:
    names = ("what", "label", "option", "saved", "is_bound", "is_rough")
    return {name: getattr(price, name) for name in names} | {"about": CHANGES.get(price.label)}


def _at_once(run: Run, one: Finding) -> list[dict[str, Any]]:
    """Return in which share of the time so many locations of a node compute at once, if that is what a finding says."""
    shares = one.evidence.get("together") or []
    what = "thread" if run.threads > 1 else "rank"
    lines = [
        {"label": f"{number or 'no'} {what}{'s' * (number != 1)}", "share": share}
        for number, share in enumerate(shares)
    ]
    if len(lines) > _AT_ONCE:
        more = sum(shares[_AT_ONCE - 1 :])
        lines[_AT_ONCE - 1 :] = [{"label": f"{_AT_ONCE - 1} {what}s and more", "share": more}]
    return lines


def _by_place(result: ResultData, run: Run, one: Finding) -> list[float]:
    """Return the time in the call path of a finding by place; empty if it has none."""
    if not one.causes or one.base != "cpu":
        return []
    return coarse(run.sum_of_times(one.causes)[computing(result.places)])
