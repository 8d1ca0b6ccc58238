"""What holds for the clocks of every run: random programs with wrong clocks, judged by an independent census."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import otf2
import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive_clocks
from tests.clocked import event_times, with_offsets
from tests.device_programs import device_programs
from tests.programs import programs
from tests.results import outcome
from tests.rma_programs import one_sided_programs
from tests.team_programs import team_programs
from tests.tracedsl import trace_from_text

# Kinds whose order follows from times: other times may mean another order.
ORDERED_BY_TIME = {"lock", "device"}
TICK = 1e-9
HOSTS = st.one_of(programs(partitions=True), one_sided_programs(), team_programs())
ANY = st.one_of(HOSTS, device_programs())


@st.composite
def skews(draw):
    """An offset of up to 1 s and a drift of up to 1% for each of eight ranks: programs last some seconds."""
    offset, drift = st.floats(-1, 1), st.floats(-0.01, 0.01)
    return [(draw(offset), draw(drift)) for _ in range(8)]


def skewed(text, directory, skew):
    """Write a trace, and a copy in which the clocks of its ranks are wrong; return its anchor."""
    anchor = trace_from_text(text, directory / "plain")
    with otf2.reader.open(str(anchor)) as reader:
        groups = list(reader.definitions.location_groups)
        ranks = {one._ref: groups.index(one.group) for one in reader.definitions.locations}
        second = reader.timer_resolution

    def offsets(location):
        # Streams of devices keep their clocks; the reader takes no time before 0, where traces begin at 1 s.
        offset, drift = skew[ranks[location] % len(skew)] if ranks.get(location, 99) < len(skew) else (0, 0)
        return [(second, round((1 + offset) * second)), (101 * second, round((1 + offset + 100 * drift) * second))]

    return with_offsets(anchor.parent, directory / "skewed", offsets)


def kinds(clocks):
    return {one["kind"]: (one["checked"], one["violated"]) for one in clocks["kinds"] if one["checked"]}


# Which kernels a call awaits follows from their times: of devices with wrong clocks both may see others.
@given(text=HOSTS, skew=skews(), latency=st.sampled_from([0.0, 1e-6]))
@settings(max_examples=60)
def test_the_census_is_that_of_the_definition(text, skew, latency):
    with tempfile.TemporaryDirectory() as directory:
        anchor = skewed(text, Path(directory), skew)
        result = whywait.analyze(anchor, clocks="measured", min_latency=latency, census=True)
        ticks = round(latency * result.facts["resolution"])
        expected = naive_clocks.census(anchor, ticks)
        assert kinds(result.clocks) == {kind: (one.checked, one.violated) for kind, one in expected.items()}
        worst = max((one.worst for one in expected.values()), default=0) / result.facts["resolution"]
        assert result.clocks["worst"] == pytest.approx(worst)


@given(text=ANY, skew=skews(), how=st.sampled_from(["clc", "both", "auto"]))
@settings(max_examples=60)
def test_nothing_is_violated_after_the_logical_clock(text, skew, how):
    """And time never runs backwards, what is recorded stays, and correcting again does nothing."""
    with tempfile.TemporaryDirectory() as directory:
        anchor = skewed(text, Path(directory), skew)
        found = whywait.correct(anchor, Path(directory) / "new", clocks=how)
        after = naive_clocks.census(found["written"])
        if found["verdict"] != "impossible":
            assert not any(one.violated for kind, one in after.items() if kind not in ORDERED_BY_TIME)
            assert found["left"] == 0
        for times in event_times(found["written"]).values():
            assert (np.diff(times) >= 0).all()
        assert records(anchor) == records(found["written"])
        again = whywait.correct(found["written"], Path(directory) / "again", clocks=how)
        if not any(one.violated for one in after.values()):
            assert (again["done"], again["moved"]) == ([], 0)


@given(text=HOSTS, skew=skews())
@settings(max_examples=30)
def test_the_logical_clock_shrinks_no_interval_by_more_than_it_decays(text, skew):
    with tempfile.TemporaryDirectory() as directory:
        anchor = skewed(text, Path(directory), skew)
        found = whywait.correct(anchor, Path(directory) / "new", clocks="clc")
        after = event_times(found["written"])
        grown = 0
        for place, times in event_times(anchor).items():
            lengths, new = np.diff(times), np.diff(after[place])
            assert (new >= lengths - lengths / 100_000 - 3 * TICK).all()
            grown = max(grown, (new - lengths).max(initial=0))
        # Nothing grows by more than a clock was moved.
        assert grown <= found["moved"] + 3 * TICK


def records(anchor):
    """Return what is recorded, but for its times."""
    with otf2.reader.open(str(anchor)) as reader:
        return [(str(location), type(event).__name__, getattr(event, "region", None) and event.region.name)
                for location, event in sorted_by_location(reader)]  # fmt: skip


def sorted_by_location(reader):
    # The reader merges locations by time.
    return sorted(reader.events, key=lambda one: one[0]._ref)


@given(text=ANY, how=st.sampled_from(["nodes", "lines", "clc", "both", "auto"]))
@settings(max_examples=25)
def test_a_trace_without_violations_is_not_changed(text, how):
    with tempfile.TemporaryDirectory() as directory:
        anchor = trace_from_text(text, directory)
        if any(one.violated for one in naive_clocks.census(anchor).values()):
            return
        found = whywait.analyze(anchor, clocks=how, causes=False, census=True).clocks
        assert (found["violated"], found["done"], found["moved"]) == (0, [], 0)


@given(text=ANY, skew=skews(), how=st.sampled_from(["lines", "clc", "auto"]), latency=st.sampled_from([0.0, 1e-6]))
@settings(max_examples=25)
def test_the_result_does_not_depend_on_threads_and_shards(text, skew, how, latency):
    import whywait._native as native

    with tempfile.TemporaryDirectory() as directory:
        run = native.Run(str(skewed(text, Path(directory), skew)))
        found = [
            native.analyze(run, causes=False, clocks=how, min_latency=latency, threads=threads, shard_events=shard)
            for threads, shard in ((1, 1 << 20), (2, 1))
        ]
        assert found[0].facts()["clocks"] == found[1].facts()["clocks"]


@given(
    text=st.one_of(programs(), team_programs()),
    skew=skews(),
    how=st.sampled_from(["nodes", "lines", "clc", "both", "auto"]),
)
@settings(max_examples=30)
def test_analyzing_with_a_correction_is_analyzing_the_corrected_trace(text, skew, how):
    with tempfile.TemporaryDirectory() as directory:
        anchor = skewed(text, Path(directory), skew)
        found = whywait.correct(anchor, Path(directory) / "new", clocks=how)
        direct, new = outcome(anchor, clocks=how), outcome(found["written"], clocks="measured")
        assert direct.cells.keys() == new.cells.keys()
        for metric, cells in direct.cells.items():
            assert cells == pytest.approx(new.cells[metric], abs=1e-8), metric


@given(text=HOSTS, skew=skews())
@settings(max_examples=25)
def test_lines_have_the_pieces_that_are_told(text, skew):
    """What is added to a clock is linear in each of them, and what had one time keeps one time."""
    with tempfile.TemporaryDirectory() as directory:
        anchor = skewed(text, Path(directory), skew)
        found = whywait.correct(anchor, Path(directory) / "new", clocks="lines")
        result = whywait.analyze(anchor, clocks="lines", causes=False, census=True)
        pieces = {f"MPI Rank {row['rank']}": row["pieces"] for row in result.clock_processes().to_pylist()}
        before, after = event_times(anchor), event_times(found["written"])
        begin, end = min(times.min() for times in before.values()), max(times.max() for times in before.values())
        for place, times in before.items():
            new, count = after[place], max(1, pieces[place[0]] if found["done"] else 1)
            assert (np.diff(new)[np.diff(times) == 0] == 0).all()
            knots = np.linspace(begin, end, count + 1)
            for first, last in itertools.pairwise(knots):
                own = (first <= times) & (times <= last)
                if own.any():
                    moved, at = (new - times)[own], (times - first)[own]
                    line = np.polyfit(at, moved, 1) if np.ptp(at) > 0 else [moved.mean()]
                    # Times are rounded to ticks.
                    assert np.abs(np.polyval(line, at) - moved).max() <= 2 * TICK


@given(text=HOSTS, skew=skews())
@settings(max_examples=25)
def test_the_truth_is_within_the_ranges_of_each_pair(text, skew):
    """Of clocks that are lines: what must be added to the second clock, at the begin and at the end of the run."""
    # Two clocks drift apart by at most 1%, the largest drift that is fitted.
    skew = [(offset, drift / 2.1) for offset, drift in skew]
    with tempfile.TemporaryDirectory() as directory:
        anchor = skewed(text, Path(directory), skew)
        if any(one.violated for one in naive_clocks.census(Path(directory) / "plain" / "traces.otf2").values()):
            return
        result = whywait.analyze(anchor, clocks="lines", clock_domain="process", causes=False, census=True)
        ranks = {row["domain"]: row["rank"] for row in result.clock_processes().to_pylist()}
        times = np.concatenate(list(event_times(anchor).values()))
        for pair in result.clock_pairs().to_pylist():
            if pair["lowest_begin"] is None:
                continue
            first, second = (skew[ranks[pair[name]]] for name in ("first", "second"))
            # A clock reads t + 1 + offset + drift (t - 1) at t.
            for where, read in (("begin", times.min()), ("end", times.max())):
                true = (read - 1 - second[0] + second[1]) / (1 + second[1])
                difference = true + 1 + first[0] + first[1] * (true - 1) - read
                assert pair[f"lowest_{where}"] - 1e-6 <= difference <= pair[f"highest_{where}"] + 1e-6
