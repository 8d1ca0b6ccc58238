"""The second implementation of what findings say of functions between calls: from the tables of functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from math import sqrt
from typing import TYPE_CHECKING

from whywait.analysis.findings import rules
from whywait.analysis.functions.inside_calls import kind

from tests.naive_findings import AnyOf, check

if TYPE_CHECKING:
    from tests.naive_raw import Raw, Row

ALL = [*rules()]


def of_finding(raw: Raw, row: Row, table: str) -> list[dict]:
    """Return the rows of a table at the call paths of a finding."""
    paths = set(raw.paths_of(row))
    return [one for one in raw.rows(table) if raw.paths[one["recorded_callpath_id"]] in paths]


def is_late(raw: Raw, row: Row, one: dict) -> bool:
    return not row.ranks or raw.locations[one["location"]][0] in row.ranks


def costs(raw: Raw, row: Row) -> dict[int | None, tuple[float, float]]:
    """Return the cost of each function at late ranks with what it calls, and the standard deviation of that."""
    own: dict[int | None, float] = defaultdict(float)
    variances: dict[int | None, float] = defaultdict(float)
    recorded = set()
    for one in of_finding(raw, row, "delay_functions"):
        if is_late(raw, row, one):
            own[one["callpath_id"]] += one["cost"]
            variances[one["callpath_id"]] += one["inclusive_deviation"] ** 2
            recorded.add(one["recorded_callpath_id"])

    def is_in(inner: int | None, outer: int | None) -> bool:
        if inner is None or outer is None or outer in recorded:
            return inner == outer
        path = raw.paths[outer]
        return raw.paths[inner][: len(path)] == path

    return {
        outer: (sum(cost for inner, cost in own.items() if is_in(inner, outer)), sqrt(variance))
        for outer, variance in variances.items()
    }


def whole(raw: Raw, row: Row) -> float:
    """Return the cost of all functions."""
    return sum(one["cost"] for one in of_finding(raw, row, "delay_functions") if is_late(raw, row, one))


@check("function_cost", *ALL)
def _(raw, row):
    return AnyOf(abs(cost) for cost, _ in costs(raw, row).values())


@check("function_error", *ALL)
def _(raw, row):
    return AnyOf(1.96 * deviation for _, deviation in costs(raw, row).values())


@check("function_part", *ALL)
def _(raw, row):
    return AnyOf(abs(cost) / whole(raw, row) for cost, _ in costs(raw, row).values())


@check("sampled_function", *ALL)
def _(raw, row):
    return AnyOf("/".join(raw.paths[number][-2:]) for number in costs(raw, row) if number is not None)


@check("function_source", *ALL)
def _(raw, row):
    of_path = {one["callpath"]: one["region"] for one in raw.rows("callpaths")}
    regions = {one["region"]: one for one in raw.rows("regions")}
    here = [regions[of_path[number]] for number in costs(raw, row) if number is not None]
    return AnyOf(f"{one['file'].rpartition('/')[2]}:{one['begin_line']}" for one in here)


@check("functions_samples", *ALL)
def _(raw, row):
    here = [one for one in of_finding(raw, row, "delay_functions") if is_late(raw, row, one)]
    return sum(one["samples"] + one["waiter_samples"] for one in here)


def more(raw: Raw, row: Row, column: str) -> float:
    """Return what a late rank used more than another one."""
    late, others = defaultdict(float), defaultdict(float)
    for one in of_finding(raw, row, "profile"):
        (late if is_late(raw, row, one) else others)[one["location"]] += one[column]
    return sum(late.values()) / len(late) - sum(others.values()) / len(others)


@check("more_system", *ALL)
def _(raw, row):
    return more(raw, row, "system_time")


@check("more_faults", *ALL)
def _(raw, row):
    return round(more(raw, row, "faults"))


@check("more_preemptions", *ALL)
def _(raw, row):
    return round(more(raw, row, "involuntary_switches"))


@check("more_waits", *ALL)
def _(raw, row):
    return round(more(raw, row, "voluntary_switches"))


def in_calls(raw: Raw, row: Row) -> list[dict]:
    """Return the samples of time in calls of the function that a finding names."""
    return [
        one
        for one in raw.rows("samples")
        if one["kind"] == "time"
        and one["recorded_callpath_id"] is not None
        and raw.paths[one["recorded_callpath_id"]][-1] == row.value("region")
    ]


def parts_in_calls(raw: Raw, row: Row) -> dict[str, tuple[float, int]]:
    """Return the share of each kind, and the number of samples, if these stand for all of the time."""
    seen = Counter(kind(one["address"]) for one in in_calls(raw, row))
    return {name: (count / seen.total(), seen.total()) for name, count in seen.items()}


@check("samples_in_calls", *ALL)
def _(raw, row):
    return len(in_calls(raw, row))


@check("kind_in_calls", *ALL)
def _(raw, row):
    return AnyOf(parts_in_calls(raw, row))


@check("part_in_calls", *ALL)
def _(raw, row):
    return AnyOf(share for share, _ in parts_in_calls(raw, row).values())


@check("error_in_calls", *ALL)
def _(raw, row):
    parts = parts_in_calls(raw, row).values()
    return AnyOf(1.96 * sqrt(max(share * (1 - share), 1 / count) / count) for share, count in parts)
