"""The summary on the terminal."""

import io
import json
import re
from pathlib import Path

import pytest
from whywait import cli
from whywait.model.names import short_name
from whywait.report.terminal import delay_lines, path, percent, seconds, show, summary_lines, whole_paths

from tests import fake_native

DATA = Path(__file__).parent / "data"


@pytest.fixture
def summary():
    return fake_native.result(fake_native.small()).summary()


def plain(lines):
    return ["".join(text for text, _ in line) for line in lines]


def test_the_summary_is_json(summary):
    assert json.loads(json.dumps(summary)) == summary
    assert summary["run"] == {"name": "lulesh", "path": "/data/lulesh/traces.otf2", "program": "main"}
    assert summary["metrics"]["mpi_latesender"]["total"] == pytest.approx(0.008)
    assert summary["waiting"]["total"] == pytest.approx(0.011)
    assert "omp_time" not in summary["metrics"]


def test_the_worst_places_come_first_with_who_is_to_blame(summary):
    late, barrier = summary["worst"]
    assert (late["metric"], late["callpath"][-1], late["callpath_id"]) == ("mpi_latesender", "MPI_Recv", 1)
    assert (late["ranks"], late["worst_rank"], late["instances"]) == (2, 0, 3)
    assert late["worst_rank_share"] == pytest.approx(5 / 8)
    assert late["cause"] == {
        "callpath": ["main", fake_native.SOLVE[0], "MPI_Send"], "rank": 1, "share": pytest.approx(0.5),
    }  # fmt: skip
    assert (barrier["metric"], barrier["instances"], barrier["cause"]["rank"]) == ("mpi_barrier_wait", 2, 1)
    assert barrier["cause"]["share"] == pytest.approx(1)


def test_summary_is_readable_in_80_columns(summary):
    lines = plain(summary_lines(summary))
    assert all(len(line) <= 80 for line in lines)
    text = "\n".join(lines)
    assert lines[0] == "main: 3 ranks, 300 events, 1.50 s, 1.9% of all time spent waiting"
    assert re.search(r"^  Execution +\S+ m?s +\d+\.\d%  █+$", text, re.MULTILINE)
    assert re.search(r"^          Late Sender +8\.00 ms +1\.\d%$", text, re.MULTILINE)
    assert "1. Late Sender" in text
    assert "   main → solver::solve → MPI_Recv" in lines
    text = " ".join(text.split())
    assert "3 waits on 2 ranks, most on rank 0 (62.5%); mostly for MPI_Send on rank 1" in text
    assert "2 waits on 2 ranks, most on rank 0 (66.7%), all for rank 1" in text
    assert "3 x messages were sent and never received (first: rank 1)" in text
    assert "Idle threads" not in text


@pytest.mark.parametrize(
    ("thread", "share", "text"),
    [(None, None, "on rank 1,"), (2, 1, "on rank 1, thread 2,"), (2, 0.6, "on rank 1, most on thread 2 (60.0%),"),
     (2, 0.1, "on rank 1, no thread stands out,")],
)  # fmt: skip
def test_one_rank_with_several_threads(summary, thread, share, text):
    barrier = summary["focus"]["worst"][1]
    barrier.update(ranks=1, worst_rank=1, worst_rank_share=1.0, worst_thread=thread, worst_thread_share=share)
    assert f"2 waits {text} all for rank 1" in " ".join(" ".join(plain(summary_lines(summary))).split())


def test_summary_in_ascii(summary):
    text = "\n".join(plain(summary_lines(summary, unicode=False)))
    assert text.isascii()
    assert "main > solver::solve > MPI_Recv" in text


def test_an_empty_run_says_so():
    summary = fake_native.result(fake_native.FakeAnalysis([], [], [], {})).summary()
    text = "\n".join(plain(summary_lines(summary)))
    assert "No time was spent in any region." in text
    assert "No wait states were found." in text


def test_a_pipe_gets_plain_text(summary):
    stream = io.StringIO()
    show(summary_lines(summary), stream)
    assert "\x1b" not in stream.getvalue()
    assert all(line == line.rstrip() for line in stream.getvalue().splitlines())


def test_a_terminal_gets_colours(summary):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    show(summary_lines(summary), stream)
    assert [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()] == [
        line.rstrip() for line in plain(summary_lines(summary))
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"), (1.5, "1.50 s"), (12.345, "12.3 s"), (9.74e-3, "9.74 ms"),
        (86_400, "86,400 s"), (0.9999, "1.00 s"), (0.01234, "12.3 ms"),
        (9.99999e-4, "1.00 ms"), (1.5e-6, "1.50 us"), (3e-9, "3 ns"),
    ],
)  # fmt: skip
def test_durations_print_in_a_fitting_unit(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0%"),
        (0.0004, "<0.1%"),
        (0.0126, "1.3%"),
        (0.9994, "99.9%"),
        (0.9996, ">99.9%"),
        (1 - 1e-12, "100.0%"),
        (1, "100.0%"),
    ],
)
def test_shares_print_as_percent(share, text):
    assert percent(share) == text


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("main", "main"),
        ("double solver::solve<double>(std::vector<double>&, int)", "solver::solve"),
        ("int ComputeSPMV_ref(const SparseMatrix&, Vector&, Vector&)", "ComputeSPMV_ref"),
        ("(anonymous namespace)::step(int)", "{anonymous}::step"),
        ("void A<B<int>>::operator()(int) const", "A::operator()"),
        ("!$omp parallel @solve.c:12", "!$omp parallel @solve.c:12"),
        ("int main(int, char**)", "main"),
        ("()", "()"),
        ("gai_matmul_regular.constprop.0", "gai_matmul_regular"),
        ("sweep.isra.0.part.3", "sweep"),
        ("solve.cold", "solve"),
        ("step.c", "step.c"),
    ],
)
def test_long_names_are_shortened(name, short):
    assert short_name(name) == short


def test_path_keeps_the_end():
    names = ["main", "iterate", "exchange_boundaries", "MPI_Waitall"]
    assert path(names, 80) == "main → iterate → exchange_boundaries → MPI_Waitall"
    assert path(names, 40) == "… → exchange_boundaries → MPI_Waitall"
    assert path(names, 20) == "… → MPI_Waitall"
    assert path(["a_very_long_name_of_a_function"], 10, unicode=False) == "a_very_..."


def test_call_paths_that_look_the_same_are_told_in_full():
    rest = {"costs": 1.0, "share": 0.3, "ranks": 1, "worst_rank": 0, "long_term": 0.0, "classes": [], "functions": []}

    def place(middle):
        names = ["a_program_with_a_name", middle, "exchange_boundaries_with_all_neighbours", "MPI_Send"]
        return {"callpath": names, **rest}

    lines = plain(delay_lines([place("solve_linear_equations"), place("precondition")], 80, unicode=True))
    assert [line[:60].rstrip() for line in lines if line[0].isdigit()] == [
        "1. … → exchange_boundaries_with_all_neighbours → MPI_Send",
        "2. … → exchange_boundaries_with_all_neighbours → MPI_Send",
    ]
    wrapped = " ".join(" ".join(lines).split())
    assert "a_program_with_a_name → precondition → exchange_boundaries_with_all_neighbours → MPI_Send" in wrapped
    assert all(len(line) <= 80 for line in lines)
    alone = plain(delay_lines([place("solve_linear_equations")], 80, unicode=True))
    assert not any("a_program_with_a_name" in line for line in alone)


def test_call_paths_that_would_look_the_same_are_shown_whole():
    first, second = (
        ["main", f"phase_{i}", "a_long_name_of_a_function", "another_long_name", "MPI_Send"] for i in (1, 2)
    )
    other = ["main", "MPI_Barrier"]
    shown = [plain(lines) for lines in whole_paths([first, other, second, first], 60)]
    assert shown[1] == ["   main → MPI_Barrier"]
    assert shown[0] == shown[3] != shown[2]
    assert " ".join(" ".join(shown[0]).split()) == " → ".join(first)
    assert all(len(line) <= 60 for lines in shown for line in lines)
    (alone,) = [plain(lines) for lines in whole_paths([first], 60)]
    assert len(alone) == 1
    assert alone[0].startswith("   … → ")


@pytest.mark.parametrize("verb", ["findings", "account"])
def test_narrow_lines_are_wrapped_and_keep_their_words(verb, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "50")
    assert cli.main([verb, str(DATA / "stencil")]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 50
    assert all(words in text for words in {"findings": ["Findings", "lost"], "account": ["on the critical path"]}[verb])
