"""Worksharing constructs: how evenly threads share their work, and why they wait behind them."""

import json

import pytest
import whywait
from whywait import cli

from tests.tracedsl import trace_from_text


def loops(text, directory):
    return whywait.analyze(trace_from_text(text, directory)).loops().to_pylist()


def team(lines, end=40):
    regions = [f"0: fork [0, {end}]", *(f"{who}: !$omp parallel @a:1 [0, {end}]" for who in ("0", "0.1"))]
    return "\n".join([*regions, *lines])


def loop(begin, last):
    """Return a loop in which one thread works for 3 s, and the other for 1 s, from 0.5 s later on."""
    first, second = ("0", "0.1") if last == 0 else ("0.1", "0")
    return [
        f"{first}: !$omp for @a:3 [{begin}, {begin + 3.9}]",
        f"{first}: !$omp implicit barrier @a:3 [{begin + 3}, {begin + 3.9}]",
        f"{second}: !$omp for @a:3 [{begin + 0.5}, {begin + 3.9}]",
        f"{second}: !$omp implicit barrier @a:3 [{begin + 1.5}, {begin + 3.9}]",
    ]


def test_the_same_thread_is_last(tmp_path):
    (row,) = loops(team([line for k in range(5) for line in loop(4 * k, 0)]), tmp_path)
    assert (row["instances"], row["threads"], row["distribution"]) == (5, 2, "persistent")
    assert (row["last_thread"], row["last_count"]) == (0, 5)
    assert (row["mean"], row["longest"], row["loss"]) == pytest.approx((10, 15, 5))
    # Thread 1 waits 1.5 s each time; thread 0 entered the loop before it.
    assert (row["late_start"], row["uneven"]) == pytest.approx((0, 7.5))
    assert row["callpath"][-2:] == ["!$omp parallel @a:1", "!$omp for @a:3"]


def test_another_thread_is_last_each_time(tmp_path):
    (row,) = loops(team([line for k in range(6) for line in loop(4 * k, k % 2)]), tmp_path)
    assert (row["distribution"], row["last_count"]) == ("alternating", 3)


def test_few_instances_tell_nothing(tmp_path):
    (row,) = loops(team(loop(0, 0)), tmp_path)
    assert row["distribution"] == "few"


def test_small_loops_cost_more_to_fork_than_to_run(tmp_path):
    lines = []
    for begin in range(0, 20, 4):
        lines += [
            f"0: fork [{begin}, {begin + 4}]",
            f"0: !$omp parallel @a:1 [{begin + 0.5}, {begin + 3.5}]",
            f"0.1: !$omp parallel @a:1 [{begin + 0.6}, {begin + 3.5}]",
            f"0: !$omp for @a:3 [{begin + 1}, {begin + 3}]",
            f"0.1: !$omp for @a:3 [{begin + 1}, {begin + 3}]",
        ]
    (row,) = loops("\n".join(lines), tmp_path / "five")
    assert (row["distribution"], row["mean"]) == ("tiny", pytest.approx(10))
    # The first team of a program takes long to fork: one says nothing.
    (row,) = loops("\n".join(lines[:5]), tmp_path / "one")
    assert row["distribution"] == "few"


def test_loops_of_one_team_share_its_fork_and_join(tmp_path):
    lines = [line for k in range(5) for line in loop(4 * k, 0)]
    text = team(lines).replace("0: fork [0, 40]", "0: fork [0, 40.9]")
    (row,) = loops(text, tmp_path)
    # Fork and join take 0.9 s, the five loops 10 s.
    assert row["distribution"] == "persistent"


def test_the_last_threads_of_a_tail_are_nearly_equal(tmp_path):
    lines = []
    for k in range(6):
        for thread, who in enumerate(("0", "0.1")):
            end = 5 * k + 3 + 0.1 * ((thread + k) % 2)
            lines.append(f"{who}: !$omp for @a:3 [{5 * k}, {5 * k + 4}]")
            lines.append(f"{who}: !$omp implicit barrier @a:3 [{end:.1f}, {5 * k + 4}]")
    (row,) = loops(team(lines), tmp_path)
    assert (row["distribution"], row["loss"]) == ("tail", pytest.approx(0.3))


def test_a_late_start_is_not_the_fault_of_the_loop(tmp_path):
    """Thread 1 enters the loop 2 s later; of the 3 s that thread 0 waits behind it, these 2 are due to that."""
    text = team(
        [
            "0: !$omp for @a:3 [1, 2]",
            "0: !$omp barrier @a:4 [2, 6]",
            "0.1: f [0, 3]",
            "0.1: !$omp for @a:3 [3, 5]",
            "0.1: !$omp barrier @a:4 [5, 6]",
        ],
        8,
    )
    (row,) = loops(text, tmp_path)
    assert (row["late_start"], row["uneven"]) == pytest.approx((2, 1))
    assert (row["mean"], row["longest"]) == pytest.approx((1.5, 2))


def test_waits_in_a_loop_are_no_work(tmp_path):
    text = team(
        [
            "0: !$omp for @a:3 [1, 6]",
            "0: !$omp critical @a:5(order=1) [2, 5] @2, 5",
            "0.1: !$omp for @a:3 [1, 6]",
            "0.1: !$omp critical @a:5(order=2) [3, 6] @5, 6",
        ],
        8,
    )
    (row,) = loops(text, tmp_path)
    assert (row["mean"], row["longest"]) == pytest.approx((4, 5))


def test_tasks_that_a_thread_runs_in_a_construct_are_no_work_of_it(tmp_path):
    """Thread 0 creates two tasks in a single block, runs the second one in its taskwait, and waits for the other."""
    text = team(
        [
            "0: !$omp single @a:3 [1, 9]",
            "0: !$omp create task @a:5(task=1) [2, 2.1]",
            "0: !$omp create task @a:5(task=2) [2.5, 2.6]",
            "0: !$omp taskwait @a:6 [3, 8.1]",
            "0: !$omp task @a:5(task=2) [3, 6]",
            "0.1: !$omp single @a:3 [1, 1]",
            "0.1: !$omp implicit barrier @a:7 [2, 10]",
            "0.1: !$omp task @a:5(task=1) [2.1, 8]",
            "0: !$omp implicit barrier @a:7 [9, 10]",
        ],
        11,
    )
    (row,) = loops(text, tmp_path)
    # 8 s without 3 s of the task and 2 s of waiting.
    assert (row["longest"], row["loss"]) == pytest.approx((3, 1.5))


def test_threads_without_a_section_are_counted(tmp_path):
    text = team(
        [
            "0: !$omp sections @a:3 [1, 6]",
            "0: !$omp section @a:4 [1, 6]",
            "0.1: !$omp sections @a:3 [1, 6]",
        ],
        8,
    )
    (row,) = loops(text, tmp_path)
    assert row["without_section"] == 1


def test_the_verb_lists_loops_in_a_focus(tmp_path, capsys):
    anchor = str(trace_from_text(team([line for k in range(5) for line in loop(4 * k, 0)]), tmp_path))
    assert cli.main(["threads", "--loops", anchor]) == 0
    text = capsys.readouterr().out
    assert "thread 0 is last in 100% of the instances" in text
    assert "saves at most 5.00 s" in text
    # Two of the loops begin in the first 8 s.
    assert cli.main(["threads", "--loops", "--json", "--focus", "0:7", anchor]) == 0
    (row,) = json.loads(capsys.readouterr().out)["loops"]
    assert (row["instances"], row["loss"]) == (2, pytest.approx(2))
    assert cli.main(["threads", "--locks", "--json", anchor]) == 0
    assert json.loads(capsys.readouterr().out)["loops"] == []
    # Of call paths, those below: there are none beside the region of the team.
    for focus, number in (("!$omp parallel @a:1", 1), ("!$omp implicit barrier @a:3", 0)):
        assert cli.main(["threads", "--json", "--focus", focus, anchor]) == 0
        assert len(json.loads(capsys.readouterr().out)["loops"]) == number


def test_a_window_counts_what_begins_in_it(tmp_path):
    text = team(
        [
            "0: !$omp critical @a:2(order=1) [1, 4] @1, 4",
            "0.1: !$omp critical @a:2(order=2) [2, 6] @4, 6",
            "0: !$omp create task @a:5(task=1) [7, 7.5]",
            "0: !$omp implicit barrier @a:7 [8, 10]",
            "0.1: !$omp implicit barrier @a:7 [7, 10]",
            "0.1: !$omp task @a:5(task=1) [7.5, 9]",
        ],
        12,
    )
    result = whywait.analyze(trace_from_text(text, tmp_path))
    ((early,), (late,)) = (result.locks(window).to_pylist() for window in ((0, 3), (3, 5)))
    assert (early["acquisitions"], early["contended"], early["holding"]) == (1, 0, pytest.approx(3))
    assert (late["acquisitions"], late["contended"], late["waiting"]) == (1, 1, pytest.approx(2))
    assert result.locks((7, 8)).num_rows == 0
    assert (result.tasks((0, 7)).num_rows, result.tasks((7, 8)).num_rows) == (0, 1)
    assert (result.work_span((0, 1)).num_rows, result.work_span((1, 12)).num_rows) == (1, 0)


def test_barriers_of_a_team_within_are_not_those_of_the_loop(tmp_path):
    """The loop has no barrier; thread 0 forks another team in it."""
    text = team(
        [
            "0: !$omp for @a:3 [0, 5]",
            "0.1: !$omp for @a:3 [0, 3]",
            "0: fork [1, 2]",
            "0: !$omp parallel @b:1 [1.1, 1.9]",
            "0: !$omp implicit barrier @b:2 [1.2, 1.8]",
        ]
    )
    (row,) = loops(text, tmp_path)
    assert (row["longest"], row["mean"], row["loss"]) == pytest.approx((5, 4, 1))
