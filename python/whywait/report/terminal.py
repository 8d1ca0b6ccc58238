"""The summary as text for the terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TextIO

from whywait.model.names import short_name
from whywait.report.suspects import suspects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A line is a list of (text, style), with the styles of rich.
Line = list[tuple[str, str]]

_WIDTH, _NARROWEST, _WIDEST = 80, 40, 110
_BAR = 16
# With less room for names, there are no bars.
_NAMES = 24
_SMALL = 0.001
# Shares closer to one than this differ from it by rounding errors.
_EXACT = 1e-9
_CLASS = 0.05
# Clocks do not resolve shorter times: smaller values are rounding errors.
_TICK = 0.5e-9
# Among several, one stands out only above this share and above this multiple of an equal share.
_STANDS_OUT = 0.2
_ALIKE = 1.1
# Rounding error that a difference of sums can leave in place of zero.
_NOTHING = 1e-9
# Standard deviations of an interval at 95%.
_LIKELY = 1.96
# What is said of functions on ranks that share cores and were sampled at ticks of the kernel.
_SHARED = ", doubtful: ranks share cores"
_WORST = 5
_CAUSES = 3


def show(lines: Iterable[Line], stream: TextIO) -> None:
    """Write lines, in color on a terminal if rich is installed, else as plain text."""
    if stream.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console(file=stream, soft_wrap=True)
            for line in lines:
                console.print(Text.assemble(*line))
            return
    for line in lines:
        stream.write("".join(text for text, _ in line).rstrip() + "\n")


def width(stream: TextIO) -> int:
    """Return the line width: that of the terminal or of COLUMNS, up to a readable maximum, or 80 columns elsewhere."""
    is_known = stream.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST)) if is_known else _WIDTH


def speaks_unicode(stream: TextIO) -> bool:
    """Return whether the encoding of a stream has bars and arrows."""
    try:
        "█…→".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def summary_lines(summary: dict[str, Any], *, width: int = _WIDTH, unicode: bool = True) -> Iterator[Line]:
    """Yield the lines of a summary.

    Parameters
    ----------
    summary
        As `whywait.Result.summary` returns it.
    width
        The number of columns.
    unicode
        Whether to draw with more than ASCII.
    """
    for headline in _headline(summary):
        for line in textwrap.wrap(headline, width, break_on_hyphens=False):
            yield [(line, "bold")]
    for sentence in (*summary.get("recording", ()), *summary.get("clocks", ())):
        yield from _paragraph(sentence, width, "dim")
    yield []
    yield from _where(summary["focus"]["times"], width, "█" if unicode else "#")
    yield from outside_lines(summary["focus"], width)
    yield []
    yield from _worst(summary, width, unicode=unicode)
    yield from _layers(summary, width)
    if counted := summary.get("unexpected"):
        yield []
        yield from _paragraph(unexpected_sentence(counted), width, "")
    if progress := summary["focus"].get("progress"):
        yield []
        yield from _paragraph(progress_sentence(progress), width, "")
    if summary["focus"]["causes"] is not None and summary["focus"]["account"]["waiting"] > 0:
        yield []
        yield from delay_lines(summary["focus"]["causes"][:_CAUSES], width, unicode=unicode)
        yield from unknown_lines(summary["focus"], width)
    if (critical := summary["focus"]["critical_path"]) and critical["callpaths"]:
        yield []
        yield from critical_lines(critical, _CAUSES, width, unicode=unicode)
    if summary["warnings"]:
        yield []
        yield [("Warnings", "bold")]
        for warning in summary["warnings"]:
            yield from _paragraph(finding(warning), width, "yellow")


def _layers(summary: dict[str, Any], width: int) -> Iterator[Line]:
    """Yield the calls of libraries above MPI in which most of the waiting is."""
    least = _SMALL * summary["waiting"]["total"]
    shown = [one for one in summary.get("layers", ()) if one["waiting"] > least]
    if not shown:
        return
    head = width - 11 - 11
    yield []
    yield [("Calls of libraries above MPI".ljust(head) + "time".rjust(11) + "waiting".rjust(11), "bold")]
    for one in sorted(shown, key=lambda one: -one["waiting"])[:_WORST]:
        amounts = seconds(one["time"]).rjust(11) + seconds(one["waiting"]).rjust(11)
        yield [(f"{one['call']} ({one['library']})"[: head - 1].ljust(head) + amounts, "")]


def finding(warning: dict[str, Any]) -> str:
    """Return a warning as a sentence: how often, what, and where it occurred first."""
    place = f" (first: {warning['place']})" if warning.get("place") else ""
    often = f"{warning['count']:,} x " if warning.get("count", 1) != 1 else ""
    return f"{often}{warning['text']}{place}"


def _headline(summary: dict[str, Any]) -> list[str]:
    facts, run = summary["facts"], summary["run"]
    processes, locations = facts.get("processes", 0), facts.get("locations", 0)
    parts = [count(processes, "rank")]
    if locations != processes:
        parts.append(count(locations, "location"))
    parts += [count(facts.get("events", 0), "event"), seconds(facts.get("length", 0.0))]
    focus = summary["focus"]
    verdict = f"{percent(focus['account']['share'])} of {focus['phrase']} spent waiting"
    name = short_name(run["program"] or run["name"])
    if focus["window"] is None and focus["callpath"] is None:
        return [f"{name}: {', '.join([*parts, verdict])}"]
    return [f"{name}: {', '.join(parts)}", verdict]


def outside_lines(focus: dict[str, Any], width: int) -> Iterator[Line]:
    """Yield at most one line about the time outside the focus, from `whywait.analysis.summary.headlines`."""
    outside = focus["outside"]
    if outside["time"] <= 0:
        return
    waiting = f", including {seconds(outside['waiting'])} of waiting" if outside["waiting"] > 0 else ""
    what = "" if focus["callpath"] is not None else " (start-up and shutdown)"
    text = f"Outside the focus{what}: {seconds(outside['time'])}{waiting}. Use --focus all to include it."
    yield from _paragraph(text, width, "dim")


#: Sentences for the verdicts of `whywait.analysis.progress.progress_thread`.
_VERDICTS = {"no": "would not pay off", "yes": "can pay off", "open": "might pay off"}


# From this ratio on, two bounds are told apart.
_OPEN = 1.25


def progress_sentence(progress: dict[str, Any]) -> str:
    """Return whether a progress thread would pay off, from `whywait.analysis.progress.progress_thread`."""
    lower, upper = progress["lower"], progress["upper"]
    takes = f"takes {' to '.join(dict.fromkeys(map(percent, (lower, upper))))} of the time"
    if upper > _OPEN * lower:
        # What lies between is time that targets spent outside their library, which need not be waiting.
        takes = f"takes at least {percent(lower)}, at most {percent(upper)} of the time"
    text = f"Wait for Progress {takes}. A progress thread on its own core"
    if progress["processes"]:
        cost, verdict = percent(progress["node"]), _VERDICTS[progress["verdict_node"]]
        text += f" per node ({progress['processes']} processes; {cost} of the cores) {verdict}; one"
    cost, verdict = percent(progress["process"]), _VERDICTS[progress["verdict_process"]]
    return f"{text} per process ({cost} of the cores) {verdict}."


def unexpected_sentence(found: dict[str, Any]) -> str:
    """Return in words what `whywait.analysis.counters.unexpected.unexpected` found."""
    least, most = found["at_least"], found["derived"]
    if found["arrival"] == "estimate":
        replayed = f"at least {least:,.0f}, and {most:,.0f} by typical transfers"
    elif least == most:
        replayed = f"{most:,.0f}"
    else:
        replayed = f"between {least:,.0f} and {most:,.0f}"
    parts = [f"Unexpected messages: {replayed} in the replay (mpi_unexpected_at_least, mpi_unexpected)"]
    if found["recorded"] is not None:
        parts.append(f"{found['recorded']:,.0f} counted by Open MPI ({found['name']})")
    if found["longest_recorded"] is not None:
        parts.append(f"the longest queue has {found['longest']:,.0f} in the replay")
        parts.append(f"{found['longest_recorded']:,.0f} in Open MPI ({found['longest_name']})")
    return "; ".join(parts) + "."


def count(number: int, what: str) -> str:
    """Return a number of things."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share as a percentage; what would read as none or all, but is not, is ``<0.1%`` or ``>99.9%``."""
    if 0 < share < _SMALL / 2:
        return "<0.1%"
    return ">99.9%" if 1 - _SMALL / 2 < share < 1 - _EXACT else f"{share:.1%}"


def seconds(value: float) -> str:
    """Return a time with three significant digits and a suitable unit."""
    if abs(value) < _TICK:
        return "0 s"
    for limit, factor, unit in ((1.0, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "us")):
        if abs(value) >= limit * 0.9995:
            return f"{digits(value * factor)} {unit}"
    return f"{value * 1e9:.3g} ns"


def digits(value: float) -> str:
    """Return a number with three digits that say something, and with all before the point."""
    # What rounds up to the next power of ten has one more digit before the point.
    return f"{value:,.{max(0, 3 - len(str(int(abs(value) * 1.0005))))}f}"


def _where(metrics: dict[str, dict[str, Any]], width: int, block: str) -> Iterator[Line]:
    """Yield the time hierarchy without metrics that are too small to matter and their children."""
    if "time" not in metrics or not metrics["time"]["total"]:
        yield [("No time was spent in any region.", "")]
        return
    whole = metrics["time"]["total"]
    name_width, bars = width - 11 - 8 - _BAR - 2, _BAR
    if name_width < _NAMES:
        name_width, bars = width - 11 - 8, 0
    yield [("Where the time went".ljust(name_width) + "CPU time".rjust(11) + "share".rjust(8), "bold")]
    depth = {"time": 0}
    for name, metric in metrics.items():
        if metric["parent"] in depth:
            depth[name] = depth[metric["parent"]] + 1
        elif name != "time":
            continue
        share = metric["total"] / whole
        if share < _SMALL:
            del depth[name]
            continue
        label = "  " * depth[name] + metric["display_name"]
        yield [
            (label[: name_width - 1].ljust(name_width), ""),
            (seconds(metric["total"]).rjust(11), ""),
            (percent(share).rjust(8), ""),
            (("  " + block * round(share * bars)).rstrip(), "cyan"),
        ]


def _worst(summary: dict[str, Any], width: int, *, unicode: bool) -> Iterator[Line]:
    worst = [place for place in summary["focus"]["worst"] if place["waiting"] > 0]
    # A wait state that hardly matters is not listed as worst unless none matters more.
    places = [place for place in worst if place["share"] >= _SMALL][:_WORST] or worst[:1]
    if not places:
        yield [("No wait states were found.", "")]
        return
    head = width - 11 - 8
    yield [("Worst wait states".ljust(head) + "waiting".rjust(11) + "of all".rjust(8), "bold")]
    for number, (place, label, whole) in enumerate(_labelled(places, width - 3, unicode=unicode), 1):
        yield [
            (f"{number}. ", ""),
            (place["display_name"].ljust(head - 3), "red"),
            (seconds(place["waiting"]).rjust(11) + percent(place["share"]).rjust(8), ""),
        ]
        yield from _paragraph(whole or label, width, "")
        yield from _paragraph(_who(place, width, unicode=unicode), width, "dim")


def _who(place: dict[str, Any], width: int, *, unicode: bool) -> str:
    waits = f"{count(place['instances'], 'wait')} " if place["instances"] else ""
    where = waits + _on(place)
    cause = place["cause"]
    if cause is None:
        return where
    # Do not repeat the waiter's own call path.
    other = list(cause["callpath"] or ())
    for name in place["callpath"]:
        if other[:1] != [name]:
            break
        del other[0]
    is_of_threads = place["metric"].startswith(("omp_", "pthread_"))
    who = f"threads of rank {cause['rank']}" if is_of_threads else f"rank {cause['rank']}"
    what = f"{path(other, width // 2, unicode=unicode)} on {who}" if other else who
    if cause["share"] < _STANDS_OUT:
        return f"{where}; for many ranks, none stands out"
    if cause["share"] >= 1 - _NOTHING:
        return f"{where}, {'' if place['instances'] == 1 else 'all '}for {what}"
    mostly = "mostly" if cause["share"] >= 0.5 else "largest share"
    return f"{where}; {mostly} for {what} ({percent(cause['share'])})"


def delay_lines(places: list[dict[str, Any]], width: int, *, unicode: bool, bar: int = 0) -> Iterator[Line]:
    """Yield the call paths with the costliest delays, from `whywait.analysis.causes.costliest`."""
    head = width - 11 - 8 - bar
    yield [("Who causes the waiting".ljust(head) + "costs".rjust(11) + "of all".rjust(8), "bold")]
    for place, lines in _ranked(places, "costs", width, bar, unicode=unicode):
        yield from lines
        enough = [kind for kind in place["classes"] if kind["costs"] >= _CLASS * place["costs"]]
        kinds = [f"{seconds(kind['costs'])} {kind['display_name']}" for kind in enough]
        longterm = place["long_term"] / place["costs"]
        through = f"; {percent(longterm)} propagated through other waits" if longterm >= _SMALL else ""
        yield from _paragraph(f"{_on(place)}: {', '.join(kinds)}{through}", width, "dim")
        for one in place["functions"]:
            doubt = _SHARED if one["doubtful"] else "" if one["certain"] else ", which may be chance"
            error = seconds(_LIKELY * one["deviation"])
            text = f"{percent(one['share'])}: {seconds(one['cost'])} ± {error}{doubt}"
            yield from _paragraph(f"  {_function(one, place, width, unicode=unicode)}: {text}", width, "dim")


def causes_sentence(focus: dict[str, Any]) -> str:
    """Return the sentence on the waiting time and the share of it that is explained."""
    account = focus["account"]
    text = f"{seconds(account['waiting'])} of waiting, {percent(account['share'])} of {focus['phrase']}"
    if focus["callpath"] is not None:
        return f"{text}. Its call paths cause {seconds(account['known'])} of waiting, here and elsewhere."
    parts = [f"{seconds(account['known'])} with known causes"]
    if account["elsewhere"]:
        parts.append(f"{seconds(account['elsewhere'])} with causes outside the focus")
    if account["unknown"] > _NOTHING * account["waiting"]:
        parts.append(f"{seconds(account['unknown'])} with no known cause")
    return f"{text}: {', '.join(parts)}."


def unknown_lines(focus: dict[str, Any], width: int, bar: int = 0) -> Iterator[Line]:
    """Yield waiting without a known cause, unexplained waiting and the cost of idle threads, from `headlines`."""
    account = focus["account"]
    amounts = width - 11 - 8 - bar
    for label, amount in (
        ("library calls, which pass it on", focus["passed_on"]),
        ("causes outside the focus", account["elsewhere"]),
        ("no known cause", account["unknown"]),
    ):
        if amount and amount > _NOTHING * account["waiting"]:
            share = percent(amount / max(account["waiting"], account["charged"]))
            yield [(label.ljust(amounts) + seconds(amount).rjust(11) + share.rjust(8), "")]
    paid = account["charged"] or 0.0
    if focus["callpath"] is None and paid > (1 + _NOTHING) * account["waiting"]:
        text = f"Delay costs add up to {seconds(paid)}: at barriers they include the tasks that threads execute there."
        yield from _paragraph(text, width, "dim")
    unexplained = account["unexplained"] or 0.0
    if unexplained >= _SMALL * account["waiting"] > 0:
        text = (
            f"{seconds(unexplained)} of the waiting ({percent(unexplained / account['waiting'])}) is unexplained: "
            "it exceeds the extra time of all causes. "
        )
        text += f"Suspect {suspects(account['wait_states'])}."
        yield from _paragraph(text, width, "dim")
    if focus["idle"]:
        names = path(focus["idle"][0]["callpath"], width // 2)
        most = percent(focus["idle"][0]["share"])
        text = f"In addition, idle {account['idle']} cost {seconds(account['idle_costs'])}, {most} of it in {names}."
        yield from _paragraph(text, width, "dim")


def critical_lines(path: dict[str, Any], most: int, width: int, *, unicode: bool, bar: int = 0) -> Iterator[Line]:
    """Yield the call paths with the largest shares of the critical path, from `whywait.analysis.causes.critical`."""
    head = width - 11 - 8 - bar
    title = f"Critical path ({percent(path['imbalance'] / path['length'])} imbalance)"
    yield [(title.ljust(head) + "time".rjust(11) + "share".rjust(8), "bold")]
    for place, lines in _ranked(path["callpaths"][:most], "time", width, bar, unicode=unicode):
        yield from lines
        more = f"; {seconds(place['imbalance'])} more than the mean" if place["imbalance"] > 0 else ""
        yield from _paragraph(_on(place) + more, width, "dim")
        for one in place["functions"]:
            text = f"{percent(one['share'])} ± {percent(one['error'])}{_SHARED if one['doubtful'] else ''}"
            yield from _paragraph(f"  {_function(one, place, width, unicode=unicode)}: {text}", width, "dim")


def _function(one: dict[str, Any], place: dict[str, Any], width: int, *, unicode: bool) -> str:
    """Return the words for a function that samples saw in a call path: what it has beyond that, and its source."""
    if one["callpath"] is None:
        return one["away"] or "in the system, or without a core"
    if one["callpath_id"] == place["callpath_id"]:
        return "itself"
    names, around = list(one["callpath"]), list(place["callpath"])
    while len(names) > 1 and around and names[0] == around[0]:
        del names[0], around[0]
    where = "" if one["source"] is None else f" ({one['source']})"
    return path(names, width // 2, unicode=unicode) + where


def _ranked(
    places: list[dict[str, Any]], amount: str, width: int, bar: int, *, unicode: bool
) -> Iterator[tuple[dict[str, Any], list[Line]]]:
    """Yield for each place the lines that locate it, its time and its share."""
    head = width - 11 - 8 - bar
    for number, (place, label, whole) in enumerate(_labelled(places, head - 4, unicode=unicode), 1):
        order = f"{number}. "
        block = ("█" if unicode else "#") * round(place["share"] * (bar - 2)) if bar else ""
        line = [
            (order, ""),
            (label.ljust(head - len(order)), ""),
            (seconds(place[amount]).rjust(11) + percent(place["share"]).rjust(8), ""),
            (f"  {block}" if block else "", "cyan"),
        ]
        yield place, [line, *_paragraph(whole, width, "")]


def _labelled(places: list[dict[str, Any]], width: int, *, unicode: bool) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield each place with its call path, shortened to fit, and the full one if two would look the same."""
    for place, (label, whole) in zip(
        places, labelled((p["callpath"] for p in places), width, unicode=unicode), strict=True
    ):
        yield place, label, whole


def labelled(callpaths: Iterable[list[str]], width: int, *, unicode: bool = True) -> Iterator[tuple[str, str]]:
    """Yield each call path, shortened to fit, and the full one if two would look the same (else an empty string)."""
    callpaths = list(callpaths)
    labels = [path(callpath, width, unicode=unicode) for callpath in callpaths]
    different = {(label, *callpath) for label, callpath in zip(labels, callpaths, strict=True)}
    alike = Counter(label for label, *_ in different)
    for callpath, label in zip(callpaths, labels, strict=True):
        yield label, path(callpath, sys.maxsize, unicode=unicode) if alike[label] > 1 else ""


def whole_paths(callpaths: Iterable[list[str]], width: int, *, unicode: bool = True) -> Iterator[list[Line]]:
    """Yield for each call path the lines that distinguish it from the others."""
    for label, whole in labelled(callpaths, width - 3, unicode=unicode):
        yield list(_paragraph(whole, width, "")) if whole else [[(f"   {label}", "")]]


def _on(place: dict[str, Any]) -> str:
    if place["ranks"] == 1:
        rank, thread = f"rank {place['worst_rank']}", place.get("worst_thread")
        share = 1.0 if thread is None else place["worst_thread_share"]
        if share >= 1 - _NOTHING:
            return f"on {_most_on(place)}"
        if share < _STANDS_OUT:
            return f"on {rank}, no thread stands out"
        return f"on {rank}, most on thread {thread} ({percent(share)})"
    if place["worst_rank_share"] < max(_STANDS_OUT, _ALIKE / place["ranks"]):
        return f"on {place['ranks']:,} ranks, none stands out"
    return f"on {place['ranks']:,} ranks, most on {_most_on(place)} ({percent(_share_on(place))})"


def _most_on(place: dict[str, Any]) -> str:
    """Return the rank with the largest value, and its thread if it has several."""
    thread = place.get("worst_thread")
    return f"rank {place['worst_rank']}" if thread is None else f"rank {place['worst_rank']}, thread {thread}"


def _share_on(place: dict[str, Any]) -> float:
    share: float = place["worst_rank_share"] if place.get("worst_thread") is None else place["worst_thread_share"]
    return share


def paragraph(text: str, width: int) -> Iterator[Line]:
    """Wrap a sentence to the line width."""
    for line in textwrap.wrap(text, width, break_on_hyphens=False):
        yield [(line, "")]


def _paragraph(text: str, width: int, style: str) -> Iterator[Line]:
    for line in textwrap.wrap(text, width, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False):
        yield [(line, style)]


def fitted(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Wrap the lines that do not fit a narrow terminal; commands stay whole, to be copied."""
    for line in lines:
        text = "".join(text for text, _ in line)
        command = _COMMAND.search(text)
        if len(text.rstrip()) <= width or width >= _WIDTH or (command and not text[: command.start()].strip()):
            yield line
        else:
            yield from _wrapped(line, text, width, command.start() if command else len(text))


# What is on the left of a line belongs to its continuations, too.
_LEFT = re.compile(r"[ │|]*")
_COMMAND = re.compile(r"(Next: +|\b)whywait \w+ \S.*|--[a-z].*")


def _wrapped(line: Line, text: str, width: int, command: int) -> Iterator[Line]:
    left = re.match(_LEFT, text)
    indent = (left[0] if left else "") + "   "
    styles = [style for part, style in line for _ in part]
    if command < len(text):
        yield from fitted([_styled(text[:command].rstrip(), styles)], width)
        yield [(indent, ""), *_styled(text[command:].rstrip(), styles[command:])]
        return
    first = 0
    room = width
    while len(text) - first > room:
        space = text.rfind(" ", first + 1, first + room + 1)
        # A name that is longer than the line has one of its own.
        cut = space if space > 0 and text[first:space].strip(" │|") else text.find(" ", first + room)
        if cut < 0:
            break
        yield [(indent, "")] * (first > 0) + _styled(text[first:cut].rstrip(), styles[first:])
        first = cut + len(text[cut:]) - len(text[cut:].lstrip())
        room = width - len(indent)
    if first < len(text.rstrip()):
        yield [(indent, "")] * (first > 0) + _styled(text[first:], styles[first:])


def _styled(text: str, styles: list[str]) -> Line:
    """Return a text whose characters have styles as parts of one style each."""
    parts = groupby(zip(text, styles, strict=False), key=itemgetter(1))
    return [("".join(letter for letter, _ in part), style) for style, part in parts]


def path(names: list[str], width: int, *, unicode: bool = True) -> str:
    """Return a call path shortened to fit: the end is kept first, then the beginning.

    Parameters
    ----------
    names
        The regions from the root.
    width
        The number of columns.
    unicode
        Whether to use characters beyond ASCII.
    """
    arrow, more = (" → ", "…") if unicode else (" > ", "...")
    shown = [short_name(name) for name in names]
    if len(text := arrow.join(shown)) <= width:
        return text
    for first in range(1, len(shown)):
        text = arrow.join([more, *shown[first:]])
        if len(text) <= width:
            return text
    return shown[-1] if len(shown[-1]) <= width else shown[-1][: width - len(more)] + more
