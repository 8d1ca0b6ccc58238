"""The account in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.account import groups, rows
from whywait.analysis.devices.use import device_account
from whywait.analysis.focus import focused
from whywait.analysis.functions.inside_calls import inside
from whywait.report.focus import focus_line
from whywait.report.terminal import paragraph, path, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from whywait.analysis.account import Account, By
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line

# The columns of a bar that stands for all CPU time, and of the numbers.
_BAR, _TIME, _SHARE = 18, 10, 8
_NAME, _LEAST_BAR = 38, 6
# The column of a group.
_GROUP = 12
# Smaller shares of the CPU time are left out.
_LEAST = 0.001
# What calls take beyond others of their kind, which samples in them may explain.
_EXCESS = frozenset({"transfer.excess", "library.excess"})


def account_lines(found: Account, result: ResultData, width: int, *, unicode: bool = True) -> Iterator[Line]:
    """Yield where the time went: groups of rows with their bars, and below each its rows.

    Parameters
    ----------
    found
        The account.
    result
        The result that it is of.
    width
        The number of columns.
    unicode
        Whether to draw with more than ASCII.
    """
    yield from paragraph(focus_line(focused(result, found.name or ("all" if found.rule == "whole" else None))), width)
    yield []
    yield from group_lines(found, width, unicode=unicode)
    # The table of devices is that of the focus of the result.
    if found.name is None:
        yield from device_lines(result, width, unicode=unicode)
    base = found.time or 1.0
    excess = found.times.get("transfer.excess", 0.0) + found.times.get("library.excess", 0.0)
    if excess / base >= _LEAST:
        for line in paragraph("Excess is what calls take beyond the fastest 5% of such calls.", width):
            yield [(line[0][0], "dim")]
    yield []
    yield [(f"{percent(found.lost / base)} of the CPU time ({seconds(found.lost)}) is lost.", "bold")]


def group_lines(found: Account, width: int, *, least: float = _LEAST, unicode: bool = True) -> Iterator[Line]:
    """Yield the groups of rows with their bars, and below each its rows.

    Parameters
    ----------
    found
        The account.
    width
        The number of columns.
    least
        The smallest share of a row to show.
    unicode
        Whether to draw with more than ASCII.
    """
    name, longest = _room(width)
    for line in paragraph(f"Where the time went ({seconds(found.time)} of CPU time in the focus)", width):
        yield [(line[0][0], "bold")]
    block = "█" if unicode else "#"
    base = found.time or 1.0
    for group, time in found.of_groups.items():
        if time / base < _LEAST:
            continue
        bar = "  " + block * round(time / base * longest)
        yield [(_columns(f"  {groups()[group].label}", time, base, name), ""), (bar.rstrip(), "cyan")]
        of_labels: dict[str, float] = {}
        for row, of_row in found.times.items():
            if rows()[row].group == group:
                label = rows()[row].label
                of_labels[label] = of_labels.get(label, 0.0) + of_row
        for label, of_label in sorted(of_labels.items(), key=lambda item: -item[1]):
            if of_label / base >= least and label != groups()[group].label:
                yield [(_columns(f"    {label}", of_label, base, name), "dim")]
    if not found.time:
        yield [("  No time was spent in the focus.", "")]


def device_lines(result: ResultData, width: int, *, unicode: bool = True) -> Iterator[Line]:
    """Yield what all devices did in the focus, below an empty line; nothing without devices.

    Parameters
    ----------
    result
        The result.
    width
        The number of columns.
    unicode
        Whether to draw with more than ASCII.
    """
    found = device_account(result)
    if found is None:
        return
    name, longest = _room(width)
    many = f"{found.devices} devices" if found.devices > 1 else "1 device"
    yield []
    for line in paragraph(f"Where the device time went ({seconds(found.time)} of {many} in the focus)", width):
        yield [(line[0][0], "bold")]
    for _, label, time in found.rows:
        if time / found.time >= _LEAST:
            bar = "  " + ("█" if unicode else "#") * round(time / found.time * longest)
            yield [(_columns(f"  {label}", time, found.time, name), ""), (bar.rstrip(), "cyan")]


def _room(width: int) -> tuple[int, int]:
    """Return the columns of names and of the longest bar: where lines are short, names matter more."""
    name = min(_NAME, width - _TIME - _SHARE)
    bar = min(_BAR, width - name - _TIME - _SHARE - 2)
    return name, bar if bar >= _LEAST_BAR else 0


def _columns(label: str, time: float, base: float, name: int) -> str:
    return label[: name - 1].ljust(name) + seconds(time).rjust(_TIME) + percent(time / base).rjust(_SHARE)


def table_lines(
    found: Account, result: ResultData, by: By, top: int, width: int, *, unicode: bool = True
) -> Iterator[Line]:
    """Yield the largest rows by call path or location, without computation.

    Parameters
    ----------
    found
        The account.
    result
        The result that it is of.
    by
        ``"callpath"`` or ``"location"``.
    top
        How many to show.
    width
        The number of columns.
    unicode
        Whether to use characters beyond ASCII.
    """
    yield from paragraph(focus_line(focused(result, found.name or ("all" if found.rule == "whole" else None))), width)
    yield []
    what = {"callpath": "call path", "location": "location"}[by]
    yield [(f"Largest losses by {what} (of {seconds(found.time)} of CPU time)", "bold")]
    lines = [line for line in found.table(by).to_pylist() if rows()[line["row"]].is_lost]
    lines.sort(key=lambda line: -line["time"])
    label = max((len(rows()[line["row"]].label) for line in lines[:top]), default=0)
    for line in lines[:top]:
        if by == "callpath":
            names = line["callpath"] or ["no call path"]
            place = path(names[1:] or names, width - _TIME - _SHARE - label - 4, unicode=unicode)
        else:
            place = f"rank {line['rank']}" + (f", thread {line['thread']}" if line["thread"] else "")
        numbers = seconds(line["time"]).rjust(_TIME) + percent(line["share"]).rjust(_SHARE)
        yield [(numbers, ""), (f"  {rows()[line['row']].label.ljust(label)}  ", "dim"), (place, "")]
        if line["row"] in _EXCESS and by == "callpath" and line["callpath"]:
            yield from _inside_lines(inside(result, [line["callpath_id"]]), width)


def _inside_lines(found: dict[str, Any] | None, width: int) -> Iterator[Line]:
    """Yield what threads did inside calls, by samples."""
    if found is None:
        return
    parts = [f"{one['kind']} {percent(one['share'])} ± {percent(one['error'])}" for one in found["parts"]]
    indent = " " * (_TIME + _SHARE + 2)
    text = f"in these calls, by {found['samples']:,} samples: {', '.join(parts)}"
    for line in paragraph(text, width - len(indent)):
        yield [(indent + line[0][0], "dim")]


def iteration_lines(lines: Sequence[Mapping[str, Any]], top: int, width: int) -> Iterator[Line]:
    """Yield the longest iterations, each with the shares of groups.

    Parameters
    ----------
    lines
        The rows of the account by iteration, as `Account.table` has them.
    top
        How many iterations to show.
    width
        The number of columns.
    """
    shares: dict[int, dict[str, float]] = {}
    durations = {line["iteration"]: line["duration"] for line in lines}
    for line in lines:
        shares.setdefault(line["iteration"], {})[line["group"]] = line["share"]
    names = list(next(iter(shares.values()), {}))
    names = names[: max(1, (width - _TIME - _SHARE) // _GROUP)]
    head = "iteration".rjust(_TIME) + "time".rjust(_TIME) + "".join(f"{name[: _GROUP - 1]:>{_GROUP}}" for name in names)
    yield [(head, "bold")]
    for number in sorted(durations, key=lambda number: (-durations[number], number))[:top]:
        values = "".join(f"{percent(shares[number][name]):>{_GROUP}}" for name in names)
        yield [(f"{number:>{_TIME}}" + seconds(durations[number]).rjust(_TIME) + values, "")]
