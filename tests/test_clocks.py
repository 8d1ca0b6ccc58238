"""Clocks that disagree: what is counted, and what corrects them. The truth is what the official reader sees."""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import otf2
import pytest
import whywait
from whywait import _native
from whywait.cli import main
from whywait.model.clocks import CLOCK_TABLES

from tests import naive
from tests.clocked import errors, event_times, waits_differ, with_offsets
from tests.results import SHARED, UNRECORDED, outcome
from tests.skewed import moved
from tests.tracedsl import trace_from_text

CASES, REAL = SHARED / "cases", SHARED / "real"
recorded = pytest.mark.skipif(not CASES.exists(), reason=UNRECORDED)


def violations(anchor):
    """Count violations by the definition."""
    result = naive.analyze(naive.Trace(anchor))
    return result.violations_p2p, result.violations_coll


# --------------------------------------------------------------------------------------------------------------------
# By hand; more in tests/patterns/clocks.md


EARLY = "ranks 2\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4]"
# Rank 1's own clock is 1 s ahead, and a record takes it back.
CONTRADICTING = "ranks 2\nclock 1 -1\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4.5]"


def test_min_latency_makes_fast_messages_violations(tmp_path):
    trace = trace_from_text("ranks 2\n0: MPI_Send(1) [1, 1.1]\n1: MPI_Recv(0) [0.5, 1.2]", tmp_path)
    assert whywait.analyze(trace, clocks="measured", census=True).clocks["violated"] == 0
    found = whywait.analyze(trace, clocks="measured", min_latency=0.3).clocks
    assert (found["violated"], found["worst"]) == (1, pytest.approx(0.1))


def test_waits_follow_the_corrected_times(tmp_path):
    """Rank 1 waits from 3 to 5; with its own offset from 2 to its end at 4.5."""
    trace = trace_from_text(CONTRADICTING, tmp_path)
    waits = [whywait.analyze(trace, clocks=clocks).metrics["mpi_latesender"].total for clocks in ("nodes", "measured")]
    assert waits == [pytest.approx(2.0), pytest.approx(2.5)]


# --------------------------------------------------------------------------------------------------------------------
# On the command line, and in results


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    """A message that is received before it is sent."""
    return trace_from_text(EARLY, tmp_path_factory.mktemp("early"))


def answer(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_clocks_command_says_what_is_violated(early, capsys):
    out = answer(capsys, "clocks", early)
    assert "Clocks: 1 of 1 constraints violated, up to 1 s" in out
    assert "p2p         rank 0    rank 1" in out
    assert "--clocks auto corrects" in out
    data = json.loads(answer(capsys, "clocks", early, "--clocks=auto", "--json"))
    assert (data["violated"], data["left"], data["done"]) == (1, 0, ["lines"])
    assert data["pairs"][0]["worst"] == pytest.approx(1.0)


def test_summary_says_that_clocks_are_wrong_or_corrected(early, capsys):
    assert "--clocks auto corrects the clocks" in answer(capsys, "summary", early)
    assert "The clocks are corrected (each clock has an offset and a drift)" in answer(
        capsys, "summary", early, "--clocks=lines"
    )


def test_validate_shows_the_census_without_a_fault(early, capsys):
    assert "messages                1 of 1" in answer(capsys, "info", "--check", early)


def test_corrected_archive_is_the_corrected_run(early, tmp_path, capsys):
    """Analyzing the archive that was written is analyzing the trace with the same correction."""
    data = json.loads(answer(capsys, "clocks", early, "-o", tmp_path / "new", "--json"))
    assert data["left"] == 0
    new, direct = outcome(data["written"]), outcome(early, clocks="auto")
    assert new.cells == direct.cells
    again = whywait.correct(data["written"], tmp_path / "again")
    assert again["violated"] == 0
    with pytest.raises(whywait.UsageError, match="already exists"):
        whywait.correct(early, tmp_path / "new")


def test_tables_are_stored_with_a_result(early, tmp_path):
    result = whywait.analyze(early, clocks="lines")
    result.write(tmp_path / "result")
    stored = whywait.load(tmp_path / "result")
    assert stored.clocks == result.clocks
    for table in CLOCK_TABLES:
        assert getattr(stored, table)().equals(getattr(result, table)())


@pytest.mark.parametrize("clocks", ["measured", "nodes", "lines"])
def test_no_warning_is_lost(clocks, tmp_path):
    """The first stages run once, or on a trace that was read again."""
    trace = trace_from_text("ranks 3\n2: work [1, 2]\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4]", tmp_path)
    (trace.parent / "traces" / "2.evt").unlink()
    kinds = {warning["kind"] for warning in whywait.analyze(trace, clocks=clocks, census=True).warnings}
    assert {"no_events", "unreadable"} <= kinds


def test_the_archive_names_what_was_corrected(early, tmp_path, capsys):
    found = whywait.correct(early, tmp_path / "new", clock_domain="process", min_latency=1e-6)
    digest = hashlib.sha256(early.read_bytes()).hexdigest()
    anchor, said = Path(found["written"]).read_bytes(), answer(capsys, "info", found["written"])
    for name, value in {"METHOD": "lines", "DOMAIN": "process", "LATENCY": "0.000001 s", "SOURCE": digest}.items():
        assert f"WHYWAIT::CLOCKS::{name}\0".encode() in anchor
        assert f"{value}\0".encode() in anchor
        assert value in said


def test_a_domain_can_be_chosen(tmp_path):
    """As a node, both processes share a clock, and no line helps; each of their own does."""
    trace = trace_from_text(EARLY, tmp_path)
    kept = {
        domain: whywait.analyze(trace, clocks="lines", clock_domain=domain).clocks for domain in ("node", "process")
    }
    assert {domain: found["done"] for domain, found in kept.items()} == {"node": [], "process": ["lines"]}


@pytest.mark.parametrize("sockets", ["", "sockets"])
def test_nodes_are_told_apart_by_their_definitions(sockets, tmp_path):
    """Two nodes have one name; what is between a process and its node is none."""
    trace = trace_from_text(
        f"""
        ranks 4
        node node = 1 3
        {sockets}
        0: MPI_Send(1) [5, 5.2]
        1: MPI_Recv(0) [2, 4]
        2: MPI_Send(3) [6, 6.2]
        3: MPI_Recv(2) [3, 5]
        """,
        tmp_path,
    )
    result = whywait.analyze(trace, clocks="lines", causes=False)
    processes = result.clock_processes().to_pylist()
    assert [row["domain"] for row in processes] == [0, 1, 0, 1]
    assert {row["node"] for row in processes} == {"node"}
    assert [row["moved_max"] for row in processes] == pytest.approx([0, 1, 0, 1])


def test_clocks_of_nodes_get_a_line_each(tmp_path):
    """Eight ranks on four nodes pass messages both ways, which take 50 ms; clocks are off by up to 0.4 s."""
    nodes = [0, 1, 2, 0, 3, 1, 2, 3]
    declared = "".join(
        f"node n{node} = {' '.join(str(r) for r in range(8) if nodes[r] == node)}\n" for node in range(4)
    )
    calls = "".join(
        f"{r}: MPI_Send({(r + step) % 8}) [{n + t}, {n + t + 0.01:.2f}]\n"
        f"{r}: MPI_Recv({(r - step) % 8}) [{n + t + 0.02:.2f}, {n + t + 0.05:.2f}]\n"
        for n in range(100)
        for t, step in ((0, 1), (0.5, -1))
        for r in range(8)
    )
    plain = trace_from_text(f"ranks 8\n{declared}{calls}", tmp_path / "plain")
    with otf2.reader.open(str(plain)) as reader:
        second = reader.timer_resolution
    off = [(0, 0), (0.4, 0.405), (-0.3, -0.31), (0.1, 0.1)]

    def offsets(location):
        begin, end = off[nodes[location]]
        return [(second, round(begin * second)), (101 * second, round(end * second))]

    anchor = with_offsets(plain.parent, tmp_path / "skewed", offsets)
    found = whywait.correct(anchor, tmp_path / "new")
    assert found["violated"] > 100
    assert (found["left"], found["done"], found["verdict"]) == (0, ["lines"], "offset")
    rms, most = errors(event_times(found["written"]), event_times(plain))
    assert rms < 0.01
    assert most < 0.025
    result = whywait.analyze(anchor, clocks="auto", causes=False)
    assert result.clock_domains()["locations"].to_pylist() == [2, 2, 2, 2]
    assert [row["domain"] for row in result.clock_processes().to_pylist()] == nodes


def wrong_at_random(archive, directory, *, processes):
    """Copy an archive: the clocks of as many processes at a time are off by up to 1 ms and 100 ppm."""
    shutil.copytree(archive, directory)
    random = np.random.default_rng(1)
    wrong = [(random.uniform(-1e6, 1e6), random.uniform(-1e-4, 1e-4)) for _ in range(512)]
    for file in (directory / "traces").glob("*.def"):
        offset, drift = wrong[int(file.stem) // processes]
        file.write_bytes(moved(file.read_bytes(), lambda time, d=drift, o=offset: round(o + d * (time - 10**9))))
    return directory / "traces.otf2"


def test_lines_of_nodes_of_512_processes_leave_nothing(tmp_path):
    """64 processes of a node share a clock: lines without pieces satisfy all constraints."""
    _native.generate("sor-p2p", tmp_path / "plain", ranks=512, iterations=6, seed=1)
    anchor = wrong_at_random(tmp_path / "plain", tmp_path / "wrong", processes=64)
    found = whywait.analyze(anchor, clocks="auto", causes=False)
    assert found.clocks["violated"] > 1000
    assert (found.clocks["left"], found.clocks["done"]) == (0, ["lines"])
    assert found.clock_domains()["pieces"].to_pylist() == [1] * 8


def test_comparing_runs_with_different_clocks_warns(early, tmp_path, capsys):
    for clocks in ("lines", "measured"):
        whywait.analyze(early, clocks=clocks).write(tmp_path / clocks)
    warning = "The clocks of these runs are not corrected in the same way (lines; not corrected)"
    assert warning in answer(capsys, "diff", tmp_path / "lines", tmp_path / "measured")
    assert warning in answer(capsys, "series", tmp_path / "lines", tmp_path / "measured")
    assert "clocks of these runs" not in answer(capsys, "series", early, early, "--clocks=lines")


def test_small_violations_need_no_correction(tmp_path, capsys):
    """2 us of violation beside a wait of 5 s."""
    trace = trace_from_text(f"{EARLY.replace('4]', '4.999998]').replace('5, 5.2', '5, 5.2')}\n"
                            "0: MPI_Recv(1, tag=1) [6, 11.1]\n1: MPI_Send(0, tag=1) [11, 11.2]", tmp_path)  # fmt: skip
    assert "the clocks need no correction" in answer(capsys, "summary", trace)


def test_bad_choices_are_usage_errors(early):
    with pytest.raises(whywait.UsageError, match="clock_domain must be one of"):
        whywait.analyze(early, clock_domain="rack")
    with pytest.raises(whywait.UsageError, match="clocks must be one of"):
        whywait.analyze(early, clocks="guess")
    for latency in (-1.0, float("nan"), 2.0):
        with pytest.raises(whywait.UsageError, match="between 0 and 1 s"):
            whywait.analyze(early, min_latency=latency)


@pytest.mark.parametrize("how", ["nodes", "lines", "clc", "both", "auto"])
def test_nothing_is_moved_without_another_process(how, tmp_path):
    trace = trace_from_text("0: MPI_Barrier [1, 2]", tmp_path)
    found = whywait.analyze(trace, clocks=how, census=True).clocks
    assert (found["verdict"], found["done"], found["moved"]) == ("none", [], 0)


def test_the_source_and_a_file_are_not_written_over(early, tmp_path, capsys):
    before = early.read_bytes()
    with pytest.raises(whywait.UsageError, match="already"):
        whywait.correct(early, early.parent)
    assert early.read_bytes() == before
    (tmp_path / "file").write_text("")
    assert main(["clocks", str(early), "-o", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err


@pytest.mark.parametrize("offsets", [[], [(0, 5)], [(9, 5), (9, 7)]], ids=["none", "one", "at one time"])
def test_offsets_that_correct_nothing_are_no_measurement(offsets, early, tmp_path):
    anchor = with_offsets(early.parent, tmp_path / "other", lambda _: offsets)
    found = whywait.analyze(anchor, clocks="nodes", census=True).clocks
    assert (found["violated"], found["done"], found["contradicting"]) == (1, [], [0, 0, 0])


# Messages between two ranks both ways, every second for 100 s; each takes 0.1 s.
BOTH_WAYS = "".join(
    f"""
    0: MPI_Send(1) [{n}, {n + 0.01}]
    1: MPI_Recv(0) [{n}, {n + 0.1}]
    1: MPI_Send(0) [{n + 0.5}, {n + 0.51}]
    0: MPI_Recv(1) [{n + 0.5}, {n + 0.6}]
    """
    for n in range(100)
)


@pytest.mark.parametrize(
    "offsets",
    [[(1, 0), (101, 5)], [(1, 0), (50, 0), (50.001, -5), (101, -5)]],
    ids=["a drift of 5%", "a clock that is set back"],
)
def test_clocks_that_are_no_lines_of_small_drift(offsets, tmp_path):
    """Nothing is violated after all, and what was done is told: more than an offset and a drift."""
    anchor = trace_from_text(BOTH_WAYS, tmp_path / "plain")
    with otf2.reader.open(str(anchor)) as reader:
        second = reader.timer_resolution
        last = list(reader.definitions.locations)[-1]._ref
    ticks = [(round(time * second), round(offset * second)) for time, offset in offsets]
    anchor = with_offsets(anchor.parent, tmp_path / "skewed", lambda location: ticks if location == last else [])
    found = whywait.analyze(anchor, clocks="auto", clock_domain="process", causes=False)
    assert found.clocks["violated"] > 0
    measured = whywait.analyze(anchor, clocks="lines", causes=False).clocks
    assert measured["verdict"] == "not linear"
    assert found.clocks["left"] == 0
    assert found.clocks["verdict"] in ("measured offsets", "not linear")


def test_domains_tell_of_devices(tmp_path):
    """A kernel ends 1 s after the call that awaits it, and begins 2 s after its launch."""
    trace = trace_from_text(
        """
        0: hipLaunchKernel(stream=1) [1, 1.1]
        0: hipStreamSynchronize(stream=1) [2, 4]
        0/1: kernel [3, 5]
        """,
        tmp_path,
    )
    result = whywait.analyze(trace, clocks="lines", causes=False)
    host, device = result.clock_domains().to_pylist()
    assert (host["device"], device["device"]) == (False, True)
    assert (device["rank"], device["locations"], device["reference"], device["pieces"]) == (0, 1, host["domain"], 1)
    assert -2 <= device["offset_end"] <= device["offset_begin"] <= -1
    assert -10_000 <= device["drift"] <= 0
    assert (host["offset_begin"], host["drift"]) == (0, 0)
    processes = result.clock_processes().to_pylist()
    assert [(row["domain"], row["drift"], row["pieces"]) for row in processes] == [(0, 0, 1)]
    moves = [row for row in result.clock_moves().to_pylist() if row["location"] == device["location"]]
    assert (moves[0]["moved"], moves[-1]["moved"]) == pytest.approx((device["offset_begin"], device["offset_end"]))


# --------------------------------------------------------------------------------------------------------------------
# Recordings with a known truth


class Known:
    """A recording of one node without its clock offsets: all its processes read one counter."""

    def __init__(self, archive, directory):
        self.archive, self.directory = archive, directory
        self.anchor = with_offsets(archive, directory / "truth", lambda _: [])
        self.times = event_times(self.anchor)
        with otf2.reader.open(str(self.anchor)) as reader:
            self.resolution = reader.timer_resolution
        every = np.concatenate(list(self.times.values()))
        self.span = round(every.min() * self.resolution), round(every.max() * self.resolution)

    @cached_property
    def outcome(self):
        return outcome(self.anchor)

    def skewed(self, name, offsets):
        """Copy the recording with other clock offsets, in ticks: of each location, by share of the run."""
        begin, end = self.span
        of_location = offsets if isinstance(offsets, dict) else dict(enumerate(offsets))
        records = {
            location: [(round(begin + share * (end - begin)), round(at)) for share, at in of]
            for location, of in of_location.items()
        }
        return with_offsets(self.archive, self.directory / name, lambda location: records[location])

    def corrected(self, anchor, method):
        return whywait.correct(anchor, anchor.parent / method, clocks=method)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Return a recording by name; each is read once."""

    @cache
    def find(case):
        return Known(case / "archive", tmp_path_factory.mktemp(case.name))

    return find


VIOLATIONS = {"skew_base": 29, "skew_us": 29, "skew_ms": 54}
TICK = 1.1e-9
# Scalasca rounds, and keeps events a nanosecond apart.
SAME = 1e-7


def errors_of(anchor, truth, **options):
    """Return errors of times (root mean square, largest), and of waits (in total, in a call path on a process), s."""
    return (*errors(event_times(anchor), truth.times), *waits_differ(outcome(anchor, **options), truth.outcome))


@recorded
@pytest.mark.parametrize("method", ["nodes", "lines", "both", "auto"])
@pytest.mark.parametrize("name", VIOLATIONS)
def test_corrections_find_the_true_times_and_waits(name, method, known, tmp_path):
    if method == "nodes" and name != "skew_base":
        pytest.skip("the clocks were skewed in the events, and have no offsets")
    found = whywait.correct(CASES / name / "archive", tmp_path / "corrected", clocks=method)
    assert found["violated"] == VIOLATIONS[name]
    assert violations(found["written"]) == (0, 0)
    off = errors_of(found["written"], known(CASES / "skew_base"))
    exact = name == "skew_base" and method in ("nodes", "auto")
    limits = (TICK, TICK, TICK, TICK) if exact else (6e-6, 25e-6, 0.4e-3, 0.05e-3)
    assert all(value <= limit for value, limit in zip(off, limits, strict=True)), off


@recorded
@pytest.mark.parametrize("name", VIOLATIONS)
def test_clc_is_no_worse_than_that_of_scalasca(name, known, tmp_path):
    """Scalasca did not correct skew_base, whose clocks are those of skew_us, and takes a message to need 1 us."""
    truth = known(CASES / "skew_base")
    of_scalasca = CASES / name.replace("base", "us") / "archive-corrected" / "traces.otf2"
    found = whywait.correct(CASES / name / "archive", tmp_path / "corrected", clocks="clc", min_latency=1e-6)
    assert violations(found["written"]) == (0, 0)
    ours, theirs = errors_of(found["written"], truth), errors_of(of_scalasca, truth)
    # The third is a sum over the cells of waits.
    more = (SAME, SAME, 10 * SAME, SAME)
    assert all(mine <= its + by for mine, its, by in zip(ours, theirs, more, strict=True)), (ours, theirs)


@recorded
@pytest.mark.parametrize("name", ["skew_us", "skew_ms"])
def test_clc_finds_the_times_of_scalasca(name, tmp_path):
    case = CASES / name
    found = whywait.correct(case / "archive", tmp_path / "corrected", clocks="clc", min_latency=1e-6)
    ours, theirs = event_times(found["written"]), event_times(case / "archive-corrected" / "traces.otf2")
    first = next(iter(theirs))
    constant = ours[first][-1] - theirs[first][-1]
    for place, times in theirs.items():
        assert ours[place] == pytest.approx(times + constant, abs=SAME, rel=0), place


@recorded
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [50e-6, 1e-3])
@pytest.mark.parametrize("case", [CASES / "skew_base", REAL / "hpcg", REAL / "npb_lu"], ids=lambda case: case.name)
def test_lines_find_random_offsets_and_drifts(case, offset, seed, known):
    truth, random = known(case), np.random.default_rng(seed)
    length = truth.span[1] - truth.span[0]
    offsets = []
    for _ in truth.times:
        begin = random.uniform(-offset, offset) * truth.resolution
        offsets.append([(0, begin), (1, begin + random.uniform(-1e-4, 1e-4) * length)])
    anchor = truth.skewed(f"{offset}-{seed}", offsets)
    found, alone = truth.corrected(anchor, "lines"), truth.corrected(anchor, "clc")
    assert found["violated"] > 0
    assert (found["left"], violations(found["written"])) == (0, (0, 0))
    (rms, _), (of_clc, _) = (errors(event_times(one["written"]), truth.times, drifts=True) for one in (found, alone))
    assert rms <= 5e-6
    assert rms < of_clc


@recorded
def test_lines_bring_clocks_of_all_recordings_nearer_to_the_truth(tmp_path):
    """Few constraints say little, and then clocks are moved only as far as that is certain."""
    random, shares = np.random.default_rng(100), {}
    for case in (case for case in RECORDINGS if case.name not in ("skew_us", "skew_ms")):
        truth = Known(case / "archive", tmp_path / case.name)
        with otf2.reader.open(str(truth.anchor)) as reader:
            groups = list(reader.definitions.location_groups)
            owners = {one._ref: one.group.creating_location_group or one.group for one in reader.definitions.locations}
        ranks = {ref: groups.index(owner) for ref, owner in owners.items()}
        length = truth.span[1] - truth.span[0]
        for offset in (50e-6, 1e-3):
            of_rank = []
            for _ in groups:
                begin = random.uniform(-offset, offset) * truth.resolution
                of_rank.append([(0, begin), (1, begin + random.uniform(-1e-4, 1e-4) * length)])
            anchor = truth.skewed(f"{offset}", {ref: of_rank[rank] for ref, rank in ranks.items()})
            found = truth.corrected(anchor, "lines")
            if found["violated"]:
                times = event_times(anchor), event_times(Path(found["written"]))
                before, after = (errors(one, truth.times, drifts=True)[0] for one in times)
                shares[case.name, offset] = after / before
    assert len(shares) >= 30
    # What violates the order of locks alone is not moved.
    assert max(shares.values()) <= 1, shares
    assert np.exp(np.mean(np.log(list(shares.values())))) < 0.1, shares


@recorded
def test_lines_do_not_depend_on_how_wrong_a_clock_was(known):
    truth = known(CASES / "skew_base")
    found = []
    for number, more in enumerate((0, 5e-4, -3e-3)):
        offsets = [[(0, at * truth.resolution), (1, at * truth.resolution)] for at in (0, 2e-3 + more, 0, -1e-3)]
        anchor = truth.skewed(f"moved-{number}", offsets)
        found.append(event_times(Path(truth.corrected(anchor, "lines")["written"])))
    for other in found[1:]:
        _, most = errors(other, found[0])
        assert most <= 3 * TICK


@recorded
def test_a_clock_that_bends_gets_three_pieces(known):
    truth = known(CASES / "skew_base")
    bent = 600e-6 * 0.6 * (truth.span[1] - truth.span[0])
    straight = [(0, 0), (1, 0)]
    anchor = truth.skewed("bent", [straight, straight, straight, [(0, 0), (0.4, 0), (1, bent)]])
    found = truth.corrected(anchor, "lines")
    assert (found["verdict"], found["left"]) == ("not linear", 0)
    rms, _ = errors(event_times(found["written"]), truth.times)
    total, _ = waits_differ(outcome(anchor, clocks="lines"), truth.outcome)
    assert rms <= 30e-6
    assert total <= 3e-3


RECORDINGS = sorted(file.parent.parent for place in (CASES, REAL) for file in place.glob("*/archive/traces.otf2"))


@recorded
@pytest.mark.parametrize("case", RECORDINGS, ids=lambda case: case.name)
def test_auto_leaves_nothing_and_moves_nothing_needlessly(case):
    found = whywait.analyze(case / "archive", clocks="auto", causes=False, census=True).clocks
    assert found["left"] == 0
    if found["violated"] and case.name not in ("skew_us", "skew_ms"):
        assert found["done"] == ["nodes"]
    if not found["violated"]:
        assert (found["done"], found["moved"]) == ([], 0)
