"""Clocks that disagree: what is counted, and what corrects them. The truth is what the official reader sees."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache, cached_property

import numpy as np
import otf2
import pytest
import whywait
from whywait.cli import main

from tests import naive
from tests.clocked import errors, event_times, waits_differ, with_offsets
from tests.results import SHARED, UNRECORDED, outcome
from tests.tracedsl import ORIGIN, RESOLUTION, trace_from_text

CASES, REAL = SHARED / "cases", SHARED / "real"
recorded = pytest.mark.skipif(not CASES.exists(), reason=UNRECORDED)


def corrected(trace, directory, **options):
    """Correct a trace; return what was found, and the begins and ends of each rank's calls, in seconds."""
    found = whywait.correct(trace, directory, **options)
    times = defaultdict(list)
    with otf2.reader.open(found["written"]) as reader:
        for location, event in reader.events:
            if isinstance(event, otf2.events.Enter | otf2.events.Leave):
                rank = list(reader.definitions.location_groups).index(location.group)
                times[rank, event.region.name].append((event.time - ORIGIN) / RESOLUTION)
    return found, times


def violations(anchor):
    """Count violations by the definition."""
    result = naive.analyze(naive.Trace(anchor))
    return result.violations_p2p, result.violations_coll


# --------------------------------------------------------------------------------------------------------------------
# By hand: docs/clocks.md


CENSUS = {
    "message": ("ranks 2\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4]", {"p2p": (1, 1.0)}),
    "barrier": ("ranks 2\n0: MPI_Barrier [1, 2]\n1: MPI_Barrier [5, 6]", {"barrier": (1, 3.0)}),
    "broadcast": ("ranks 2\n0: MPI_Bcast(0) [5, 5.1]\n1: MPI_Bcast(0) [2, 4]", {"one_to_n": (1, 1.0)}),
    "reduce": ("ranks 2\n0: MPI_Reduce(0) [3, 4]\n1: MPI_Reduce(0) [5, 5.1]", {"n_to_one": (1, 1.0)}),
    "reduce whose sender leaves early": ("ranks 2\n0: MPI_Reduce(0) [5, 5.1]\n1: MPI_Reduce(0) [3, 4]", {}),
    "scan": (
        "ranks 3\n0: MPI_Scan [5, 5.1]\n1: MPI_Scan [2, 4]\n2: MPI_Scan [6, 6.5]",
        {"prefix": (1, 1.0)},
    ),
}


@pytest.mark.parametrize("name", CENSUS)
def test_census_counts_each_target_once(name, tmp_path):
    text, expected = CENSUS[name]
    found = whywait.analyze(trace_from_text(text, tmp_path), clocks="measured", census=True).clocks
    kinds = {one["kind"]: (one["violated"], pytest.approx(one["worst"])) for one in found["kinds"] if one["violated"]}
    assert kinds == expected


def test_min_latency_makes_fast_messages_violations(tmp_path):
    trace = trace_from_text("ranks 2\n0: MPI_Send(1) [1, 1.1]\n1: MPI_Recv(0) [0.5, 1.2]", tmp_path)
    assert whywait.analyze(trace, clocks="measured", census=True).clocks["violated"] == 0
    found = whywait.analyze(trace, clocks="measured", min_latency=0.3).clocks
    assert (found["violated"], found["worst"]) == (1, pytest.approx(0.1))


OFFSET = """ranks 2
0: MPI_Send(1) [1, 1.1]
1: MPI_Recv(0) [2, 2.2]
1: MPI_Send(0) [3, 3.1]
0: MPI_Recv(1) [2, 2.2]
0: MPI_Send(1) [11, 11.1]
1: MPI_Recv(0) [12, 12.2]
1: MPI_Send(0) [13, 13.1]
0: MPI_Recv(1) [12, 12.2]
"""
# The clock of rank 1 is 0.5% fast.
DRIFT = """ranks 2
0: MPI_Send(1) [10, 10.01]
1: MPI_Recv(0) [10, 10.251]
1: MPI_Send(0) [20.1, 20.11]
0: MPI_Recv(1) [20, 20.2]
0: MPI_Send(1) [110, 110.01]
1: MPI_Recv(0) [110, 110.751]
1: MPI_Send(0) [120.6, 120.61]
0: MPI_Recv(1) [120, 120.2]
"""
# The clock of rank 1 is right until 100, then 1% fast.
BEND = """ranks 2
0: main [0, 200]
1: main [0, 200]
0: MPI_Send(1) [10, 10.01]
1: MPI_Recv(0) [10, 10.1]
1: MPI_Send(0) [11, 11.01]
0: MPI_Recv(1) [11, 11.1]
0: MPI_Send(1) [90, 90.01]
1: MPI_Recv(0) [90, 90.1]
1: MPI_Send(0) [91, 91.01]
0: MPI_Recv(1) [91, 91.1]
0: MPI_Send(1) [110, 110.01]
1: MPI_Recv(0) [110, 110.201]
1: MPI_Send(0) [111.11, 111.12]
0: MPI_Recv(1) [111, 111.1]
0: MPI_Send(1) [190, 190.01]
1: MPI_Recv(0) [190, 191.001]
1: MPI_Send(0) [191.91, 191.92]
0: MPI_Recv(1) [191, 191.1]
"""
REST = """ranks 2
0: MPI_Send(1) [1, 1.1]
1: MPI_Recv(0) [1, 1.3]
1: MPI_Send(0) [2, 2.1]
0: MPI_Recv(1) [2, 2.2]
0: MPI_Send(1) [11, 11.1]
1: MPI_Recv(0) [11, 11.3]
1: MPI_Send(0) [12, 12.1]
0: MPI_Recv(1) [12, 12.2]
"""
LONG = "ranks 3\n0: main [0, 1010]\n1: main [0, 1010]\n2: main [0, 1010]\n0: MPI_Send(1) [500, 501]\n"
# The method, a trace, begins and ends of the calls of a rank (s), and the verdict.
WORKED = {
    "nodes": (
        "ranks 2\nclock 1 -1\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4.5]",
        {(1, "MPI_Recv"): [3, 5.5], (0, "MPI_Send"): [5, 5.2]},
        "measured offsets",
    ),
    "lines: an offset": (
        OFFSET,
        {(1, "MPI_Recv"): [1, 1.2, 11, 11.2], (1, "MPI_Send"): [2, 2.1, 12, 12.1], (0, "MPI_Recv"): [2, 2.2, 12, 12.2]},
        "offset",
    ),
    "lines: a drift": (
        DRIFT,
        {(1, "MPI_Send"): [20, 20.00995, 120, 120.00995], (1, "MPI_Recv"): [9.950249, 10.2, 109.452736, 110.2]},
        "drift",
    ),
    "lines: bounds from one side": (
        "ranks 2\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4]",
        {(1, "MPI_Recv"): [3, 5], (0, "MPI_Send"): [5, 5.2]},
        "offset",
    ),
    "lines: two pieces": (
        BEND,
        {(1, "MPI_Send"): [11, 11.01, 91, 91.01, 111, 111.009901, 191, 191.009901]},
        "not linear",
    ),
    "lines: nothing is violated": (REST, {(1, "MPI_Send"): [2, 2.1, 12, 12.1]}, "none"),
    "clc: a message": (
        LONG + "1: work [420, 450]\n1: MPI_Recv(0) [460, 499]",
        {(1, "work"): [420.21, 450.51], (1, "MPI_Recv"): [460.61, 500], (0, "MPI_Send"): [500, 501]},
        "differ",
    ),
    "clc: a sender with a limit": (
        LONG + "1: MPI_Send(2) [440, 441]\n2: MPI_Recv(1) [430, 440.2]\n1: MPI_Recv(0) [460, 499]",
        {(1, "MPI_Send"): [440.2, 441.213559], (1, "MPI_Recv"): [460.471186, 500], (2, "MPI_Recv"): [430, 440.2]},
        "differ",
    ),
    "clc: the start moves": (
        "ranks 2\n0: main [0, 10]\n1: main [0, 10]\n0: MPI_Barrier [1, 2]\n1: MPI_Barrier [5, 6]",
        {(0, "main"): [2.98, 12.99992], (0, "MPI_Barrier"): [3.99, 5], (1, "MPI_Barrier"): [5, 6]},
        "differ",
    ),
    "clc: a chain that does not spread": (
        "ranks 3\n0: MPI_Send(1) [5, 5.1]\n1: MPI_Recv(0) [2, 4]\n1: MPI_Send(2) [4.5, 4.6]\n2: MPI_Recv(1) [3, 6]",
        {(1, "MPI_Recv"): [2.98, 5], (1, "MPI_Send"): [5.499995, 5.599994], (2, "MPI_Recv"): [3, 6]},
        "differ",
    ),
    "clc: a chain that spreads": (
        "ranks 3\n0: MPI_Send(1) [5, 5.1]\n1: MPI_Recv(0) [2, 4]\n1: MPI_Send(2) [4.5, 4.6]\n2: MPI_Recv(1) [3, 4.7]",
        {(1, "MPI_Send"): [5.499995, 5.599994], (2, "MPI_Recv"): [3 + 0.782995, 5.499995]},
        "differ",
    ),
    "both: what is left": (OFFSET, {(1, "MPI_Recv"): [1, 1.2, 11, 11.2]}, "offset"),
}


@pytest.mark.parametrize("name", WORKED)
def test_corrections_match_hand_worked_traces(name, tmp_path):
    text, expected, verdict = WORKED[name]
    trace = trace_from_text(text, tmp_path / "trace")
    found, times = corrected(trace, tmp_path / "corrected", clocks=name.split(":")[0])
    assert {place: times[place] for place in expected} == {
        place: pytest.approx(of, abs=2e-6) for place, of in expected.items()
    }
    assert (found["verdict"], found["left"]) == (verdict, 0)
    assert violations(found["written"]) == (0, 0)


def test_waits_follow_the_corrected_times(tmp_path):
    """Rank 1 waits from 3 to 5; with its own offset from 2 to its end at 4.5."""
    trace = trace_from_text(WORKED["nodes"][0], tmp_path)
    waits = [whywait.analyze(trace, clocks=clocks).metrics["mpi_latesender"].total for clocks in ("nodes", "measured")]
    assert waits == [pytest.approx(2.0), pytest.approx(2.5)]


# --------------------------------------------------------------------------------------------------------------------
# On the command line, and in results


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    """A message that is received before it is sent."""
    return trace_from_text(CENSUS["message"][0], tmp_path_factory.mktemp("early"))


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
    assert "messages         1 of 1" in answer(capsys, "validate", early)


def test_corrected_archive_is_the_corrected_run(early, tmp_path, capsys):
    """Analyzing the archive that was written is analyzing the trace with the same correction."""
    data = json.loads(answer(capsys, "correct", early, "-o", tmp_path / "new", "--json"))
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
    for table in ("clock_violations", "clock_course", "clock_processes", "clock_pairs"):
        assert getattr(stored, table)().equals(getattr(result, table)())


@pytest.mark.parametrize("clocks", ["measured", "nodes", "lines"])
def test_no_warning_is_lost(clocks, tmp_path):
    """The first stages run once, or on a trace that was read again."""
    trace = trace_from_text("ranks 3\n2: work [1, 2]\n0: MPI_Send(1) [5, 5.2]\n1: MPI_Recv(0) [2, 4]", tmp_path)
    (trace.parent / "traces" / "2.evt").unlink()
    kinds = {warning["kind"] for warning in whywait.analyze(trace, clocks=clocks, census=True).warnings}
    assert {"no_events", "unreadable"} <= kinds


def test_bad_choices_are_usage_errors(early):
    with pytest.raises(whywait.UsageError, match="clocks must be one of"):
        whywait.analyze(early, clocks="guess")
    for latency in (-1.0, float("nan"), 2.0):
        with pytest.raises(whywait.UsageError, match="between 0 and 1 s"):
            whywait.analyze(early, min_latency=latency)


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
        """Copy the recording with other clock offsets, in ticks: of each rank, by share of the run."""
        begin, end = self.span
        records = [[(round(begin + share * (end - begin)), round(at)) for share, at in of] for of in offsets]
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
    """Scalasca did not correct skew_base, whose clocks are those of skew_us, and takes a message to need 1 us.

    The time that is off most is before the first barrier of rank 0, where Scalasca limits senders more tightly.
    """
    truth = known(CASES / "skew_base")
    of_scalasca = CASES / name.replace("base", "us") / "archive-corrected" / "traces.otf2"
    found = whywait.correct(CASES / name / "archive", tmp_path / "corrected", clocks="clc", min_latency=1e-6)
    assert violations(found["written"]) == (0, 0)
    ours, theirs = errors_of(found["written"], truth), errors_of(of_scalasca, truth)
    more = (0, 1e-6, 0, SAME)
    assert all(mine <= its + by for mine, its, by in zip(ours, theirs, more, strict=True)), (ours, theirs)


@recorded
@pytest.mark.parametrize(("name", "others"), [("skew_us", 29), ("skew_ms", 34)])
def test_clc_finds_the_times_of_scalasca(name, others, tmp_path):
    """All times agree, except for some of rank 0 up to the begin of its first barrier."""
    case = CASES / name
    found = whywait.correct(case / "archive", tmp_path / "corrected", clocks="clc", min_latency=1e-6)
    ours, theirs = event_times(found["written"]), event_times(case / "archive-corrected" / "traces.otf2")
    first = next(iter(theirs))
    constant = ours[first][-1] - theirs[first][-1]
    differ = {place: np.flatnonzero(np.abs(ours[place] - theirs[place] - constant) > SAME) for place in theirs}
    assert {place: len(of) for place, of in differ.items() if len(of)} == {first: others}
    with otf2.reader.open(str(case / "archive" / "traces.otf2")) as reader:
        names = [getattr(getattr(event, "region", None), "name", "") for at, event in reader.events
                 if at.group.name == first[0]]  # fmt: skip
    assert differ[first].max() <= names.index("MPI_Barrier") + 1  # its begin record


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
