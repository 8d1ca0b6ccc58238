"""The summary as Markdown, for issues, merge requests and language models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.efficiency.efficiency import efficiencies
from whywait.analysis.iterations import assess, known_iterations
from whywait.model.names import short_name
from whywait.report.terminal import finding, percent, progress_sentence, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from whywait.model.result import ResultData

_SMALL = 0.001
# Characters that Markdown would interpret in a table.
_ESCAPED = str.maketrans({letter: f"\\{letter}" for letter in "\\|*_`<>[]#&"})


def markdown(result: ResultData, summary: dict[str, Any], *, count: int = 5) -> str:
    """Return the summary of a result as Markdown with tables in the syntax of GitHub and GitLab.

    Parameters
    ----------
    result
        The result.
    summary
        As `whywait.analysis.summary.summarize` returns it.
    count
        Maximum number of rows per table.
    """
    return "\n".join(_lines(result, summary, count)) + "\n"


def _lines(result: ResultData, summary: dict[str, Any], count: int) -> Iterator[str]:
    run, facts, focus = summary["run"], summary["facts"], summary["focus"]
    account = focus["account"]
    places = f"{facts['processes']:,} rank{'s' * (facts['processes'] != 1)}"
    if facts["locations"] != facts["processes"]:
        places += f" and {facts['locations']:,} locations"
    yield f"# {_text(short_name(run['program'] or run['name']))}"
    yield ""
    yield (
        f"**{percent(account['share'])} of {focus['phrase']} is spent waiting**: {seconds(account['waiting'])} of "
        f"{seconds(account['time'])} on {places}. The run takes "
        f"{seconds(facts['length'])} and has {facts['events']:,} events."
    )
    parts = [(name, value) for name, value in account["parts"].items() if value >= _SMALL * account["time"] > 0]
    if parts:
        rows = ((name.replace("_", " "), seconds(value), percent(value / account["time"])) for name, value in parts)
        yield from _table("Where the time goes", ("part", "time", "share"), rows)
    if worst := [place for place in focus["worst"][:count] if place["waiting"] > 0]:
        columns = ("wait state", "call path", "waiting", "of the time", "ranks", "waits for")
        yield from _table("Worst wait states", columns, map(_wait, worst))
    if focus.get("progress"):
        yield ""
        yield progress_sentence(focus["progress"])
    if focus["causes"]:
        heads: tuple[str, ...] = ("call path", "waiting caused", "of all waiting", "most on")
        yield from _table("Who causes the waiting", heads, (
            (_path(place["callpath"]), seconds(place["costs"]), percent(place["share"]), _most_on(place))
            for place in focus["causes"][:count]
        ))  # fmt: skip
        if account["unknown"] >= _SMALL * account["waiting"] > 0:
            yield ""
            yield f"{seconds(account['unknown'])} of waiting has no known cause."
    if (path := focus["critical_path"]) and path["callpaths"]:
        heads = ("call path", "on the critical path", "share", "imbalance", "most on")
        yield from _table("Critical path", heads, (
            (_path(place["callpath"]), seconds(place["time"]), percent(place["share"]), seconds(place["imbalance"]),
             _most_on(place))
            for place in path["callpaths"][:count]
        ))  # fmt: skip
    found = efficiencies(result, focus["callpath"], window=focus["window"])
    rows = ((one.display_name, percent(one.value), f"`{one.formula}`") for one in found if one.value)
    yield from _table("Efficiencies", ("efficiency", "value", "formula"), rows)
    yield from _iterations(result, count)
    if summary["warnings"]:
        yield ""
        yield "## Warnings"
        yield ""
        for warning in summary["warnings"]:
            yield f"* {_text(finding(warning))}"
    yield ""
    yield f"Written by whywait {summary['whywait']}. Trace: `{run['path']}`"


def _iterations(result: ResultData, count: int) -> Iterator[str]:
    if (table := known_iterations(result)) is None:
        return
    found = assess(result, table)
    worst = table.sort_by([("duration", "descending"), ("iteration", "ascending")]).slice(0, count).to_pylist()
    heads = ("iteration", "begin", "duration", "waiting, all ranks", "parallel efficiency", "slowest rank")
    yield from _table("Longest iterations", heads, (
        (str(row["iteration"]), f"{row['begin']:.6f} s", seconds(row["duration"]), seconds(row["waiting"]),
         percent(row["parallel_efficiency"] or 0.0), str(row["slowest_rank"]))
        for row in worst
    ))  # fmt: skip
    times, trend = found["duration"], found["trend"]
    more = "" if trend["kind"] == "steady" else f"; the duration {trend['kind']} by {percent(abs(trend['change']))}"
    yield ""
    yield (
        f"{found['iterations']:,} iterations of {_loop(found)}: {seconds(times['minimum'])} to "
        f"{seconds(times['maximum'])}, median {seconds(times['median'])}{more}. Outliers: {len(found['outliers']):,}."
    )


def _loop(found: dict[str, Any]) -> str:
    return _path(found["callpath"]) if found["parameter"] is None else f"parameter `{_text(found['parameter'])}`"


def _wait(place: dict[str, Any]) -> tuple[str, ...]:
    cause = place["cause"]
    whom = "" if cause is None else f"rank {cause['rank']} ({percent(cause['share'])})"
    return (
        place["display_name"],
        _path(place["callpath"]),
        seconds(place["waiting"]),
        percent(place["share"]),
        f"{place['ranks']:,}",
        whom,
    )


def _most_on(place: dict[str, Any]) -> str:
    return f"rank {place['worst_rank']} ({percent(place['worst_rank_share'])})"


def _path(names: Iterable[str]) -> str:
    return " → ".join(_text(short_name(name)) for name in names)


def _text(text: str) -> str:
    return " ".join(text.split()).translate(_ESCAPED)


def _table(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
