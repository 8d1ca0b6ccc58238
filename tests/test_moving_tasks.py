"""Tasks that are suspended with open calls and continue on another thread, or between other tasks."""

from collections import Counter

import whywait
from hypothesis import given
from hypothesis import strategies as st

from tests.tracedsl import trace_from_text


def switch(place, number, time):
    return (
        f'{place}: raw ThreadTaskSwitch(thread_team="team 0", creating_thread=0, generation_number={number}) @ {time}'
    )


def complete(place, number, time):
    name = "ThreadTaskComplete"
    return f'{place}: raw {name}(thread_team="team 0", creating_thread=0, generation_number={number}) @ {time}'


def analyzed(lines, directory, last=10):
    text = "\n".join(["threads 2", f"0: main [0, {last}]", f"0.1: main [0, {last}]", *lines])
    return whywait.analyze(trace_from_text(text, directory))


def cells(result, metric):
    """Return the values of a metric by thread and names below the program; other threads have no program."""
    found = {}
    for row in result.severities(metric).to_pylist():
        path = [name for name in row["callpath"] if name != "program"]
        if path:
            found[row["thread"], "/".join(path)] = round(row["value"], 9)
    return found


def moved(first, second):
    """Return a task that begins in [2, 4] on one thread, and ends in [5, 8] on another one."""
    return [
        switch(first, 1, 2),
        f"{first}: raw Enter(region=task) @ 2",
        f"{first}: raw Enter(region=inner) @ 3",
        switch(first, 0, 4),
        switch(second, 1, 5),
        f"{second}: raw Leave(region=inner) @ 6",
        f"{second}: raw Leave(region=task) @ 8",
        complete(second, 1, 8),
    ]


def test_a_task_ends_on_the_thread_that_ends_it(tmp_path):
    for name, (first, second) in {"down": ("0", "0.1"), "up": ("0.1", "0")}.items():
        result = analyzed(moved(first, second), tmp_path / name)
        assert {one["kind"] for one in result.warnings} == {"unknown_task"}
        a, b = (int(place == "0.1") for place in (first, second))
        assert cells(result, "time") == {
            (a, "main"): 8.0, (a, "main/task"): 1.0, (a, "main/task/inner"): 1.0,
            (b, "main"): 7.0, (b, "main/task"): 2.0, (b, "main/task/inner"): 1.0,
        }  # fmt: skip
        # Its calls are visited where they begin.
        assert cells(result, "visits") == {
            (0, "main"): 1, (1, "main"): 1, (a, "main/task"): 1, (a, "main/task/inner"): 1,
        }  # fmt: skip


def test_tasks_that_take_turns_on_a_thread_keep_their_calls(tmp_path):
    lines = [
        switch(0, 1, 2),
        "0: raw Enter(region=a) @ 2",
        switch(0, 2, 3),
        "0: raw Enter(region=b) @ 3",
        switch(0, 1, 4),
        "0: raw Leave(region=a) @ 5",
        complete(0, 1, 5),
        switch(0, 2, 5),
        "0: raw Leave(region=b) @ 6",
        complete(0, 2, 6),
    ]
    result = analyzed(lines, tmp_path)
    assert {one["kind"] for one in result.warnings} == {"unknown_task"}
    sums = Counter()
    for (_, path), value in cells(result, "time").items():
        sums[path.split("/")[-1]] += value
    assert sums == {"main": 16.0, "a": 2.0, "b": 2.0}


def test_a_task_within_another_one_stays_below_it(tmp_path):
    lines = [
        switch(0, 1, 2),
        "0: raw Enter(region=a) @ 2",
        switch(0, 2, 3),
        "0: raw Enter(region=b) @ 3",
        "0: raw Leave(region=b) @ 4",
        complete(0, 2, 4),
        switch(0, 1, 4),
        "0: raw Leave(region=a) @ 5",
        complete(0, 1, 5),
    ]
    assert cells(analyzed(lines, tmp_path), "time")[0, "main/a/b"] == 1.0


def test_a_task_that_never_ends_is_told(tmp_path):
    lines = [switch(0, 1, 2), "0: raw Enter(region=task) @ 2"]
    result = analyzed(lines, tmp_path)
    assert {one["kind"]: one["count"] for one in result.warnings} == {"unknown_task": 1, "never_left": 1}


@st.composite
def schedules(draw):
    """Return a random schedule of tasks on two threads: lines, and the time of each function by thread."""
    lines, truth, stacks = [], Counter(), {0: [], 1: []}
    running = {0: None, 1: None}
    tasks: dict[int, list[str]] = {}
    done = set()
    for time in range(1, draw(st.integers(2, 25))):
        for thread in (0, 1):
            place = "0.1" if thread else "0"
            what = draw(
                st.sampled_from(["start", "resume", "enter", "enter", "leave", "implicit", "complete", "nothing"])
            )
            task = running[thread]
            if what == "start":
                running[thread] = len(tasks) + 1
                tasks[running[thread]] = ["task"]
                lines += [switch(place, running[thread], time), f"{place}: raw Enter(region=task) @ {time}"]
            elif what == "resume":
                idle = sorted(set(tasks) - set(running.values()) - done)
                if idle:
                    running[thread] = draw(st.sampled_from(idle))
                    lines.append(switch(place, running[thread], time))
            elif what == "enter" and task:
                name = draw(st.sampled_from("fgh"))
                tasks[task].append(name)
                lines.append(f"{place}: raw Enter(region={name}) @ {time}")
            elif what == "leave" and task and len(tasks[task]) > 1:
                lines.append(f"{place}: raw Leave(region={tasks[task].pop()}) @ {time}")
            elif what == "implicit" and task:
                running[thread] = None
                lines.append(switch(place, 0, time))
            elif what == "complete" and task and len(tasks[task]) == 1:
                running[thread] = None
                done.add(task)
                lines += [f"{place}: raw Leave(region={tasks[task].pop()}) @ {time}", complete(place, task, time)]
                lines.append(switch(place, 0, time))
            stack = tasks.get(running[thread] or 0, [])
            stacks[thread] = stack
            truth[thread, stack[-1] if stack else "main"] += 1
    # In the end, thread 0 completes them all.
    time += 1
    if running[1]:
        lines.append(switch("0.1", 0, time))
    for task in sorted(set(tasks) - done):
        if tasks[task]:
            lines.append(switch("0", task, time))
        while tasks[task]:
            truth[0, tasks[task][-1]] += 1
            time += 1
            lines.append(f"0: raw Leave(region={tasks[task].pop()}) @ {time}")
    return lines, truth, time + 1


@given(schedules())
def test_each_function_has_its_time_on_each_thread(tmp_path_factory, drawn):
    lines, truth, last = drawn
    result = analyzed(lines, tmp_path_factory.mktemp("tasks"), last=last)
    found = Counter()
    for (thread, path), value in cells(result, "time").items():
        found[thread, path.split("/")[-1]] += value
    functions = {key: float(value) for key, value in truth.items() if key[1] != "main"}
    assert {key: value for key, value in found.items() if key[1] != "main"} == functions
    assert {one["kind"] for one in result.warnings} <= {"unknown_task"}
