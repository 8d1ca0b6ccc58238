"""The account: every moment has one row, the rows add up, and they are those of the definitions."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import whywait
from hypothesis import given, note, settings
from whywait import cli
from whywait.analysis.account import account, groups, rows

from tests.device_programs import device_programs
from tests.naive_account import account as naive_account
from tests.programs import programs
from tests.results import SHARED
from tests.rma_programs import one_sided_programs
from tests.team_programs import team_programs
from tests.test_patterns import BLOCK, PATTERNS, path, place
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
NANOSECOND = 1e-9
TICK = 1.5e-9


def examples():
    """Yield every trace of the document with its expectations."""
    heading, trace = "", None
    for block in BLOCK.finditer((PATTERNS / "account.md").read_text()):
        if block[1]:
            heading = block[1]
        elif block[2] == "trace":
            trace = block[3]
        else:
            yield pytest.param(trace, block[3], id=heading)


def cells(found) -> dict[tuple[str, tuple[str, ...] | None, int, int], float]:
    """Return the cells of an account by row, call path, rank and thread."""
    return {
        (line["row"], tuple(line["callpath"]) if line["callpath"] else None, line["rank"], line["thread"]): line["time"]
        for line in found.account(by=None).to_pylist()
        if line["time"]
    }


@pytest.mark.parametrize(("trace", "expected"), list(examples()))
def test_the_document_says_what_is(trace, expected, tmp_path):
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    found, wanted, of_devices = cells(result), {}, {}
    for line in filter(None, map(str.strip, expected.splitlines())):
        if m := re.fullmatch(r"lost ([\d.]+)", line):
            assert account(result).lost == pytest.approx(float(m[1]), abs=NANOSECOND)
        elif m := re.fullmatch(r"device (\S+) (.+) ([\d.]+)", line):
            of_devices[m[1], None if m[2] == "-" else path(m[2])] = float(m[3])
        elif m := re.fullmatch(r"account (\S+) none", line):
            wanted.setdefault(m[1], {})
        elif m := re.fullmatch(r"account (\S+) ([\d.]+) (.+) ([\d.]+)", line):
            where = None if m[3] == "-" else path(m[3])
            wanted.setdefault(m[1], {})[m[1], where, *place(m[2])] = float(m[4])
        else:
            raise ValueError(f"not an expectation: {line!r}")
    for row, values in wanted.items():
        ours = {cell: value for cell, value in found.items() if cell[0] == row}
        assert ours == pytest.approx(values, abs=NANOSECOND), row
    if of_devices:
        lines = result.device_account().to_pylist()
        ours = {(line["row"], tuple(line["callpath"]) if line["callpath"] else None): line["time"] for line in lines}
        assert ours == pytest.approx(of_devices, abs=NANOSECOND)
    invariants(result)


def invariants(result) -> None:
    """What must hold for the account of every trace."""
    facts = result.facts
    table = result.account(by=None)
    time, excess = (table[name].to_numpy() for name in ("time", "excess"))
    assert (time > 0).all() or table.filter(table["time"].to_numpy() <= 0)["calls"].to_numpy().all()
    assert (time >= 0).all()
    assert (excess >= 0).all()
    assert (excess <= time).all()
    # The rows of a location add up to its allocated time: of most, to the length of the focus.
    of_location = np.bincount(table["location"].to_numpy(), weights=time)
    length = facts["focus_end"] - facts["focus_begin"]
    assert (of_location <= length * (1 + 1e-9) + NANOSECOND).all()
    assert of_location.sum() == pytest.approx(facts["cpu_time"], rel=1e-9)
    assert len(set(table["location"].to_pylist())) <= facts["cpu_locations"]
    for by in ("row", "callpath", "location"):
        sums = result.account(by=by)
        assert sum(sums["time"].to_pylist()) == pytest.approx(facts["cpu_time"], rel=1e-9)
        if facts["cpu_time"]:
            assert sum(sums["share"].to_pylist()) == pytest.approx(1, rel=1e-9)
    devices = Counter()
    for line in result.device_account().to_pylist():
        assert line["time"] > 0
        devices[line["device"]] += line["time"]
    assert all(time == pytest.approx(length, rel=1e-9) for time in devices.values())
    kinds = result.tables.network.to_pylist()
    for kind in kinds:
        if kind["calls"] >= 5:
            assert kind["floor"] <= kind["median"] <= kind["q95"]
        assert kind["needed"] >= 0
        assert kind["excess"] >= 0
        assert kind["basis"] != "none" or kind["excess"] == 0
    divided = (
        "transfer.needed",
        "transfer.excess",
        "library.needed",
        "library.excess",
        "threads.barrier",
        "threads.runtime",
    )
    times = account(result).times
    split = sum(kind["needed"] + kind["excess"] for kind in kinds)
    assert split == pytest.approx(sum(times.get(row, 0) for row in divided), rel=1e-9, abs=NANOSECOND)


def compare(anchor) -> None:
    """Compare the account with that of the oracle, to the tick."""
    result = whywait.analyze(anchor)
    invariants(result)
    resolution = result.facts["resolution"]
    found = Counter()
    for (row, *cell), value in cells(result).items():
        name = "computation" if row.startswith("computation") else row
        found[(name, *cell)] += round(value * resolution)
    expected = +naive_account(anchor)
    assert found.keys() == expected.keys()
    assert found == expected


@settings(max_examples=100)
@given(trace=programs())
def test_random_programs_have_the_account_of_the_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        compare(trace_from_text(trace, directory))


@settings(max_examples=50)
@given(trace=team_programs())
def test_random_teams_have_the_account_of_the_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        compare(trace_from_text(trace, directory))


@settings(max_examples=40)
@given(trace=one_sided_programs())
def test_one_sided_programs_add_up(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        invariants(whywait.analyze(trace_from_text(trace, directory)))


@settings(max_examples=40)
@given(trace=device_programs())
def test_programs_with_devices_add_up(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        invariants(whywait.analyze(trace_from_text(trace, directory)))


SHIPPED = sorted(anchor for anchor in DATA.rglob("*.otf2") if not anchor.is_dir())
RECORDED = sorted(SHARED.glob("cases/*/archive/*.otf2")) + sorted(SHARED.glob("real/*/archive/*.otf2"))


@pytest.mark.parametrize("anchor", SHIPPED, ids=lambda anchor: str(anchor.parent.relative_to(DATA)))
def test_shipped_traces_add_up(anchor):
    whole(anchor)


@pytest.mark.skipif(not RECORDED, reason=f"no recorded cases: {SHARED} is not there")
@pytest.mark.parametrize("anchor", RECORDED, ids=lambda anchor: anchor.parents[1].name)
def test_recorded_traces_add_up(anchor):
    whole(anchor)


def whole(anchor) -> None:
    """Check the account of a real trace: its rows, its waits, and that adjacent windows add up."""
    result = whywait.analyze(anchor)
    invariants(result)
    found = account(result)
    # All waits are the metric's, but for hosts that wait for devices.
    waits = {row: time for row, time in found.times.items() if row.startswith("wait.")}
    focus = result.summary()["focus"]["account"]["wait_states"]
    for row, time in waits.items():
        assert time == pytest.approx(focus[row.removeprefix("wait.")], rel=1e-9, abs=NANOSECOND)
    assert sum(waits.values()) == pytest.approx(
        sum(time for kind, time in focus.items() if not kind.startswith("gpu_")), rel=1e-9, abs=NANOSECOND
    )
    begin, end = found.window
    bounds = np.linspace(begin, end, 4)
    parts = [account(result, window=window) for window in pairwise(bounds)]
    total = Counter()
    for part in parts:
        total.update({row: time for row, time in part.times.items() if time})
    # What is critical is the smaller of two times, and the smaller ones of parts are not that of the whole.
    for row in (total.keys() | found.times.keys()) - {"computation.critical", "computation.other"}:
        assert total[row] == pytest.approx(found.times.get(row, 0), rel=1e-9, abs=1e-7), row
    own = sum(part.of_groups["computation"] for part in parts)
    assert own == pytest.approx(found.of_groups["computation"], rel=1e-9, abs=1e-7)


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


def test_the_stencil_loses_what_its_bugs_cost(stencil):
    found = account(stencil)
    assert found.window == pytest.approx((0.343705944, 0.683127158))
    assert found.time == pytest.approx(2.715369712)
    shares = {name: time / found.time for name, time in found.of_groups.items()}
    assert shares["computation"] == pytest.approx(0.694, abs=5e-4)
    assert shares["waiting"] == pytest.approx(0.2975, abs=5e-4)
    assert found.times["wait.mpi_latesender"] == pytest.approx(0.487, abs=5e-4)
    assert found.times["wait.mpi_wait_nxn"] == pytest.approx(0.236, abs=5e-4)
    assert found.times["wait.mpi_finalize_wait"] == pytest.approx(0.0843, abs=5e-5)
    assert found.times["computation.critical"] == pytest.approx(0.337, abs=1e-3)


def test_a_call_path_is_a_part_of_the_account(stencil):
    part, full = account(stencil, "solve"), account(stencil)
    assert part.rule == "callpath"
    assert 0 < part.time < full.time
    names = {tuple(names) for names in part.table("callpath")["callpath"].to_pylist()}
    assert all("solve" in name for name in names)
    with pytest.raises(whywait.UsageError, match="no call path ends in nowhere"):
        stencil.account("nowhere")
    with pytest.raises(whywait.UsageError, match="not of both"):
        stencil.account("solve", window=(0, 1))


def test_the_whole_run_is_a_part_as_well(stencil):
    full = account(stencil, "all")
    assert full.window == (0, stencil.facts["length"])
    assert full.time > account(stencil).time
    assert full.times["computation.critical"] <= stencil.metrics["critical_path"].total


def test_a_written_result_has_its_account(stencil, tmp_path):
    stencil.write(tmp_path / "results")
    read = whywait.load(tmp_path / "results")
    for by in ("row", "callpath", "location", None):
        assert read.account(by=by).to_pylist() == stencil.account(by=by).to_pylist()
    assert read.tables.network.to_pylist() == stencil.tables.network.to_pylist()
    with pytest.raises(whywait.UsageError, match="holds no events"):
        read.account("all")


def test_the_verb_prints_what_the_result_says(stencil, tmp_path, capsys):
    results = str(tmp_path / "results")
    stencil.write(results)

    def said(*arguments):
        assert cli.main(["account", *arguments, results]) == 0
        return capsys.readouterr().out

    text = said()
    assert text.startswith("Focus: 344 ms to 683 ms (between start-up and shutdown), 339 ms; ")
    for label in ("Computation", "Waiting", "Late Sender", "Wait at Finalize", "Transfer and library"):
        assert label in text
    assert all(len(line) <= 80 for line in text.splitlines())
    answer = json.loads(said("--json"))
    assert answer == json.loads(json.dumps(account(stencil).as_dict()))
    assert sum(group["share"] for group in answer["groups"]) == pytest.approx(1)
    assert "exchange_halo" in said("--by", "callpath")
    assert "rank 0" in said("--by", "location")
    part = json.loads(said("--json", "--focus", "0.4:0.5"))
    assert (part["focus"]["begin"], part["focus"]["end"]) == pytest.approx((0.4, 0.5))
    assert part["cpu_time"] == pytest.approx(0.8)


def test_rows_and_groups_are_described():
    assert len(groups()) == 8
    assert {row.group for row in rows().values()} == set(groups())
    for one in (*rows().values(), *groups().values()):
        assert one.label
        assert one.description.endswith(".")


def test_a_trace_without_own_code_computes_in_the_program(tmp_path):
    """A program whose functions are not recorded: its root is its own code."""
    trace = "0: MPI_Send(1) [1, 1.1]\n1: MPI_Recv(0) [0.5, 1.2]\n0: MPI_Barrier [2, 3]\n1: MPI_Barrier [2, 3]\n"
    times = account(whywait.analyze(trace_from_text(trace, tmp_path))).times
    assert "unknown" not in times
    assert times["computation.critical"] + times.get("computation.other", 0) == pytest.approx(1.9 + 1.3)
