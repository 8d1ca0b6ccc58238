"""Clocks of runs that are incomplete, damaged, or longer than times can be."""

import random
import shutil

import pytest
import whywait
from whywait.cli import main

from tests.clocked import with_offsets
from tests.skewed import skewed
from tests.test_damage import DATA, cut, drop, flip, overwrite, repeat, stamp
from tests.tracedsl import trace_from_text

INCOMPLETE = {
    "a receive without a send": "0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [1, 2]\n1: MPI_Recv(0) [3, 4]",
    "a member that is missing": "ranks 3\n0: MPI_Barrier [1, 2]\n1: MPI_Barrier [5, 6]\n2: work [1, 6]",
    "different operations": "0: MPI_Barrier [1, 2]\n1: MPI_Bcast(root=0) [5, 6]",
    "a send that was cancelled": """
        0: MPI_Isend(1, req=1) [5, 5.2]
        0: MPI_Cancel [5.3, 5.4]
        0: raw MpiRequestCancelled(request_id=1) @5.35
        1: work [1, 2]
    """,
}


@pytest.mark.parametrize("text", INCOMPLETE.values(), ids=INCOMPLETE)
@pytest.mark.parametrize("how", ["lines", "auto"])
def test_what_is_incomplete_bounds_nothing(text, how, tmp_path):
    result = whywait.analyze(trace_from_text(text, tmp_path), clocks=how, causes=False, census=True)
    assert (result.clocks["checked"], result.clocks["done"]) == (0, [])
    assert result.clocks["verdict"] == "none"


# Ticks; the run begins at one second.
FAR = 2**62
STRANGE = {
    "far": [(1, FAR), (2_000_000_000, FAR)],
    "far back": [(1, -FAR), (2_000_000_000, -FAR)],
    "steep": [(1, 0), (2, FAR)],
    "decreasing": [(5_000_000_000, 7), (1_000_000_000, 3)],
}


@pytest.mark.parametrize("offsets", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("how", ["nodes", "auto"])
def test_strange_offsets_are_read_or_refused(offsets, how, tmp_path):
    """Of processes on one node, those of rank 1 contradict what rank 0 has not."""
    anchor = trace_from_text("0: MPI_Send(1) [2, 2.2]\n1: MPI_Recv(0) [2, 4]", tmp_path / "plain")
    anchor = with_offsets(anchor.parent, tmp_path / "strange", lambda location: offsets if location else [])
    try:
        found = whywait.analyze(anchor, clocks=how, census=True)
    except whywait.Error as error:
        assert "please report this" not in str(error)  # noqa: PT017
        return
    assert found.clocks["left"] <= found.clocks["violated"] <= 1
    assert found.summary()


# Some days less than times can be apart.
LONG = 8_900_000


def test_a_run_that_would_be_too_long_is_refused(tmp_path, capsys):
    """Rank 1 receives, 57 days too early, what rank 0 sends; both run for 103 days."""
    trace = trace_from_text(
        f"0: MPI_Send(1) [5000000, 5000001]\n1: MPI_Recv(0) [1, 2]\n0: work [{LONG - 1}, {LONG}]\n"
        f"1: work [{LONG - 1}, {LONG}]",
        tmp_path / "trace",
    )
    with pytest.raises(whywait.UsageError, match=r"the corrected run would last 13\d{6} s"):
        whywait.correct(trace, tmp_path / "new", clocks="clc")
    assert main(["clocks", str(trace), "-o", str(tmp_path / "new"), "--clocks", "clc"]) == 2
    assert "would last" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("case", ["p2p", "collectives", "mixed", "rma_lock_sm", "omp_nested"])
def test_damaged_copies_are_corrected_or_refused(case, tmp_path):
    dice = random.Random(case)  # noqa: S311 - damage, no secrets
    for number in range(12):
        copy = tmp_path / str(number)
        skewed(DATA / case, copy, dice.choice([0, 1_000, 500_000]))
        events = sorted(copy.rglob("*.evt"))
        for file in dice.sample(events, 1):
            data = bytearray(file.read_bytes())
            dice.choice([flip, overwrite, cut, drop, repeat, stamp, stamp])(data, dice)
            file.write_bytes(data)
        how = dice.choice(["lines", "clc", "both", "auto"])
        try:
            found = whywait.correct(copy, tmp_path / f"{number}-new", clocks=how)
        except (whywait.Error, OSError) as error:
            assert "please report this" not in str(error), number  # noqa: PT017
            continue
        assert found["left"] <= found["violated"], number
        if how != "lines" and found["verdict"] != "impossible":
            assert found["left"] == 0, number
        again = whywait.analyze(found["written"], clocks="measured", causes=False, census=True).clocks
        # At other times, others hold locks first.
        left = {one["kind"]: one["left"] for one in found["kinds"] if one["kind"] != "lock"}
        assert {one["kind"]: one["violated"] for one in again["kinds"] if one["kind"] != "lock"} == left, number
        shutil.rmtree(tmp_path / f"{number}-new")
