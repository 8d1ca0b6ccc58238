"""Show why threads wait for each other: the locks, the tasks, and the loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import add_top, add_verb
from whywait.commands.results import RESULT, add_analysis, add_focus, asked_focus
from whywait.report.terminal import paragraph, percent, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from whywait import Result
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line


#: What can be listed.
_PARTS = {
    "locks": "the locks",
    "tasks": "the tasks and their regions",
    "loops": "the loops, sections, and single blocks",
    "samples": "what threads without recorded calls do, by samples",
}


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "threads",
        "show the locks and tasks that threads wait for, and how evenly loops are shared",
        "List the locks of threads (critical and ordered constructs, OpenMP locks, mutexes, read-write and spin locks) "
        "that threads wait for longest: how often they are acquired, after a wait or not, how many threads wait at the "
        "same time, how long threads own them, and how much of this is on the critical path. Only a lock on the path "
        "determines the run time. Then list the tasks by construct: how many there are, how long they run, "
        "how long it takes to create and to start them, and how much parallelism their regions have. Then list the "
        "loops, sections, and single blocks: how much longer the longest thread takes than the mean, and which one is "
        "last. Then, if there are samples, what threads without recorded calls do, and whether one has more to do.",
        "whywait threads scorep_run/traces.otf2 --top 3",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    add_focus(parser)
    for name, what in _PARTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"list {what}; without any of these, all of them")
    add_top(parser, "how many locks, task constructs, regions, and loops to list")


def run(options: argparse.Namespace) -> Answer:
    """Return the locks, the tasks, and the loops of the run."""
    from whywait.analysis.focus import find_focus
    from whywait.analysis.functions.sampled_threads import sampled_threads
    from whywait.model.selection import in_subtrees

    chosen = {name for name in _PARTS if getattr(options, name)} or set(_PARTS)

    def found(result: Result) -> list[list[Any]]:
        part = find_focus(result, options.focus.name)
        window = result.options.get("window") or part.window
        inside = None if part.callpath is None else in_subtrees(result.tree, part.callpath)
        ways = (("locks", result.locks), ("tasks", result.tasks), ("tasks", result.work_span), ("loops", result.loops))

        def is_in(row: Mapping[str, Any]) -> bool:
            return inside is None or (row["callpath_id"] is not None and bool(inside[row["callpath_id"]]))

        of_calls = [list(filter(is_in, way(window).to_pylist())) if name in chosen else [] for name, way in ways]
        return [*of_calls, sampled_threads(result) if "samples" in chosen and inside is None else []]

    focus, (rows, tasks, regions, loops, sampled) = asked_focus(options, found)
    data = {
        "locks": rows[: options.top],
        "count": len(rows),
        "waiting": sum(row["waiting"] for row in rows),
        "tasks": tasks[: options.top],
        "task_regions": regions[: options.top],
        "loops": loops[: options.top],
        "sampled_threads": sampled,
    }

    def lines(screen: Screen) -> Iterator[Line]:
        if not rows and not tasks and not loops and not sampled:
            yield [("No locks of threads, no tasks, and no loops are recorded.", "")]
        if rows:
            yield from of_locks(screen)
        if tasks:
            yield from [[]] if rows else []
            count, execution = (sum(row[name] for row in tasks) for name in ("tasks", "execution"))
            yield [(f"{count:,} tasks run for {seconds(execution)}.", "")]
            yield from _of_tasks(data["tasks"], data["task_regions"], " → " if screen.unicode else " > ")
        if loops:
            yield from [[]] if rows or tasks else []
            loss = seconds(sum(row["loss"] for row in loops))
            count = f"{len(loops):,} loops, sections, and single blocks"
            where = "one loop, section, or single block" if len(loops) == 1 else count
            yield [(f"In {where}, the longest thread takes {loss} more than the mean.", "")]
            yield from _of_loops(data["loops"], " → " if screen.unicode else " > ")
        if sampled:
            yield from [[]] if rows or tasks or loops else []
            for row in sampled[: options.top]:
                yield from paragraph(_of_sampled(row), screen.width)

    def of_locks(screen: Screen) -> Iterator[Line]:
        contended = sum(row["contended"] > 0 for row in rows)
        of_all = f"{contended} of {len(rows)} lock{'' if len(rows) == 1 else 's'}"
        yield [(f"Threads wait {seconds(data['waiting'])} for {of_all}.", "")]
        yield []
        yield from table(data["locks"], _COLUMNS)
        yield []
        arrow = " → " if screen.unicode else " > "
        for number, row in enumerate(data["locks"], 1):
            yield [(f"{number}. {_place(row, arrow)}", "")]

    return Answer(data, lines, focus=focus)


def _of_sampled(row: dict[str, Any]) -> str:
    """Return the words for the threads of a rank without recorded calls."""
    count = "1 thread" if row["threads"] == 1 else f"{row['threads']} threads"
    parts = [f"{one['function']} {percent(one['share'])} ± {percent(one['error'])}" for one in row["functions"]]
    text = f"Rank {row['rank']}: {count} without recorded calls computed for {seconds(row['time'])}, "
    text += f"by {row['samples']:,} samples: {', '.join(parts)}."
    if (late := row["late"]) is not None:
        text += f" Thread {late['thread']} spends {seconds(late['time'])} in {late['function']}, "
        more = seconds(late["time"] - late["others"])
        text += f"{more} ± {seconds(late['error'])} more than the others do on average."
    return text


def _of_tasks(tasks: list[Any], regions: list[Any], arrow: str) -> Iterator[Line]:
    from whywait.analysis.threads import overhead, parallelism

    yield []
    yield from table(tasks, _TASKS)
    yield []
    for number, row in enumerate(tasks, 1):
        text = f"{number}. {arrow.join((row['callpath'] or ())[-2:])} of rank {row['rank']}"
        if row["median"] < overhead(row):
            text += f": too small, because it takes {seconds(overhead(row))} to create and start one"
        yield [(text, "")]
    yield []
    for row in regions:
        place = arrow.join((row["callpath"] or ())[-1:])
        yield [(f"{place} of rank {row['rank']}: {seconds(row['work'])} of work, the longest chain takes ", "")]
        most = f"more than {parallelism(row):.1f} threads are of no use"
        yield [(f"   {seconds(row['span'])}: {most} ({row['threads']} run).", "")]


def _of_loops(loops: list[Any], arrow: str) -> Iterator[Line]:
    from whywait.analysis.threads import advice

    yield []
    yield from table(loops, _LOOPS)
    yield []
    for number, row in enumerate(loops, 1):
        yield [(f"{number}. {arrow.join((row['callpath'] or ())[-2:])} of rank {row['rank']}:", "")]
        yield [(f"   {advice(row, seconds(row['loss']))}.", "")]


def _place(row: Mapping[str, Any], arrow: str) -> str:
    path = row["callpath"]
    lock = "ordered construct" if row["lock"] is None else f"{row['paradigm']} lock {row['lock']}"
    return f"{lock} of rank {row['rank']}" + (f", in {arrow.join(path[-2:])}" if path else "")


_TASKS = (
    Column("tasks", 10, "tasks", "count"),
    Column("elsewhere", 11, "elsewhere", "count"),
    Column("run", 10, "execution", "sec"),
    Column("median", 10, "median", "sec"),
    Column("longest", 10, "longest", "sec"),
    Column("create", 10, "median_creation", "sec"),
    Column("start", 10, "median_delay", "sec"),
)
_LOOPS = (
    Column("loss", 10, "loss", "sec"),
    Column("mean", 10, "mean", "sec"),
    Column("longest", 10, "longest", "sec"),
    Column("times", 9, "instances", "count"),
    Column("threads", 9, "threads", "count"),
    Column("uneven", 10, "uneven", "sec"),
    Column("late start", 11, "late_start", "sec"),
)
_COLUMNS = (
    Column("waiting", 10, "waiting", "sec"),
    Column("contended", 11, "contended", "count"),
    Column("of", 9, "acquisitions", "count"),
    Column("queue", 7, "longest_queue", "count"),
    Column("held", 10, "holding", "sec"),
    Column("gaps", 10, "gap", "sec"),
    Column("on path", 10, "critical", "sec"),
    Column("times", 7, "critical_acquisitions", "count"),
    Column("waited", 8, "critical_contended", "count"),
)
