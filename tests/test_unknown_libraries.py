"""A communication library that is known by the names of its calls alone: no waiting is claimed, nor computation."""

import json
import shutil
from pathlib import Path

import pytest
import whywait
from whywait.cli import main

from tests.tracedsl import trace_from_text

UNKNOWN = Path(__file__).parent / "data" / "models" / "unknown_pgas" / "traces.otf2"
WORDS = "24.0% of the time lies in calls of upcxx, which whywait does not know: waiting in them is not seen"


@pytest.fixture(scope="module")
def result():
    return whywait.analyze(UNKNOWN)


def analyzed(directory, text):
    return whywait.analyze(trace_from_text(text, directory))


def test_calls_are_communication_and_no_computation(result):
    assert result.metrics["other_communication"].total == pytest.approx(0.048)
    assert result.metrics["comp"].total == pytest.approx(0.152)
    assert result.metrics["waiting"].total == 0


def test_a_warning_names_the_library_and_its_share(result):
    assert result.unknown_libraries == [{"name": "upcxx", "share": pytest.approx(0.24), "calls": 8, "is_silent": False}]
    warning = {"kind": "unknown_library", "count": 1, "text": WORDS, "place": None}
    assert result.warnings == [warning]
    assert result.summary()["unknown_libraries"] == result.unknown_libraries


def test_a_written_result_warns_once(result, tmp_path):
    result.write(tmp_path / "written")
    written = whywait.load(tmp_path / "written")
    assert written.warnings == result.warnings
    assert json.loads((tmp_path / "written" / "summary.json").read_text())["unknown_libraries"][0]["name"] == "upcxx"


def test_the_verdict_claims_no_computation(result, capsys, tmp_path):
    copy = shutil.copytree(UNKNOWN.parent, tmp_path / "trace")
    assert main(["analyze", str(copy / UNKNOWN.name), "-o", str(tmp_path / "result")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "24% of the time lies in calls of upcxx, which whywait does not know" in shown
    assert "is computation" not in shown
    assert result.findings().verdict().startswith("24% of the time lies in calls of upcxx")


def test_efficiency_comes_with_the_warning(capsys):
    assert main(["efficiency", str(UNKNOWN)]) == 0
    shown = capsys.readouterr()
    assert WORDS in " ".join((shown.out + shown.err).split())


def test_validate_names_the_library(capsys):
    assert main(["info", "--check", str(UNKNOWN)]) == 0
    assert WORDS in capsys.readouterr().out


def test_little_lost_is_no_claim_beside_an_unknown_library(tmp_path):
    result = analyzed(
        tmp_path,
        """
        ranks 2
        *: compute [0, 10]
        *: gasnet_barrier_wait [10, 10.2]
        """,
    )
    assert result.findings().verdict().endswith("is not seen. Of the rest of the time, little is lost.")


def test_calls_of_calls_are_those_of_the_outer_library(tmp_path):
    result = analyzed(
        tmp_path,
        """
        ranks 1
        0: gex_Event_Wait [1, 5]
        0: ucp_worker_progress [2, 3]
        0: ucp_worker_progress [6, 7]
        0: callback [3, 4]
        0: compute [7, 10]
        """,
    )
    assert [(one["name"], one["calls"]) for one in result.unknown_libraries] == [("gasnet", 1), ("ucx", 1)]
    assert result.metrics["other_communication"].total == pytest.approx(4)


def test_what_a_known_library_calls_is_its_own_matter(tmp_path):
    result = analyzed(
        tmp_path,
        """
        ranks 2
        *: MPI_Barrier [1, 5]
        0: ucp_worker_progress [2, 3]
        *: compute [5, 10]
        """,
    )
    assert not result.unknown_libraries
    assert not result.warnings
    assert "other_communication" in result.profile.void


def test_records_of_operations_in_other_functions_are_counted(tmp_path):
    result = analyzed(
        tmp_path,
        """
        ranks 2
        win mem on world
        *: MPI_Barrier [0, 1]
        0: library_put [2, 4]
        0: raw RmaReleaseLock(win=mem, remote=1, lock_id=0) @3
        """,
    )
    (warning,) = result.warnings
    assert (warning["kind"], warning["count"]) == ("foreign_one_sided", 1)
    assert warning["text"].endswith("waiting for them is not seen; first: library_put, paradigm COMPILER")


def test_calls_of_gaspi_without_records_are_not_seen_either(tmp_path):
    result = analyzed(
        tmp_path,
        """
        ranks 2
        0: compute [0, 3]
        1: compute [0, 6]
        0: gaspi_barrier [3, 6.5]
        1: gaspi_barrier [6, 6.5]
        """,
    )
    assert result.unknown_libraries == [
        {"name": "gaspi", "share": pytest.approx(4 / 13), "calls": 2, "is_silent": True}
    ]
    assert (
        result.findings()
        .verdict()
        .startswith("31% of the time lies in calls of gaspi, of which the trace records nothing else: ")
    )
    assert result.metrics["pgas"].total == pytest.approx(4)


def test_frames_of_gaspi_are_calls_of_an_unknown_library(tmp_path):
    result = analyzed(
        tmp_path,
        """
        ranks 2
        frames gaspi_barrier
        *: gaspi_barrier [3, 6.5]
        *: compute [6.5, 7]
        """,
    )
    assert [(one["name"], one["is_silent"]) for one in result.unknown_libraries] == [("gaspi", False)]
