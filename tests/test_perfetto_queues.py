"""Replayed queues as tracks for Perfetto: what the tables of levels say, step by step."""

import pytest
import whywait
from whywait.analysis.counters.queues import LEVELS

from tests.test_perfetto import DATA, written
from tests.tracedsl import trace_from_text


def test_queues_are_counter_tracks(tmp_path):
    """Example of the dissertation's counters: what arrives at 1, 2, 3 s is received from 2.5, 4, 2.8 s on."""
    anchor = trace_from_text(
        """
        ranks 2
        0: MPI_Send(1, tag=1, bytes=100) [1, 1.1]
        0: MPI_Send(1, tag=2, bytes=200) [2, 2.1]
        0: MPI_Send(1, tag=3, bytes=300) [3, 3.1]
        1: MPI_Recv(0, tag=1) [2.5, 2.6]
        1: MPI_Irecv(0, tag=3, req=1) [2.8, 2.9]
        1: MPI_Wait(1) [3.1, 3.2]
        1: MPI_Recv(0, tag=2) [4, 4.1]
        """,
        tmp_path / "trace",
    )
    result = whywait.analyze(anchor, queues="send")
    assert not any("queue" in track.name for track in written(result, tmp_path)[1].tracks.values())
    counts, timeline = written(result, tmp_path, queues=True)
    above = {"Rank 0": {}, "Rank 1": {}}
    for track, values in timeline.counters.items():
        if parent := timeline.tracks[track].parent_uuid:
            rank = above[timeline.tracks[parent].process.process_name]
            rank[timeline.tracks[track].name] = [(time / 1e9, value) for time, value in values]
    assert counts["counters"] == sum(map(len, above.values()))
    assert above["Rank 0"] == {}
    assert above["Rank 1"]["Unexpected messages in the queue"] == [(1, 1), (2, 2), (2.5, 1), (4, 0)]
    assert above["Rank 1"]["Posted receives in the queue"] == [(2.8, 1), (3, 0)]
    assert above["Rank 1"]["Bytes in flight"] == [(1, 100), (2, 300), (2.6, 200), (3, 500), (3.2, 200), (4.1, 0)]
    _, timeline = written(result, tmp_path, queues=True, ranks=[0])
    assert not any("queue" in track.name for track in timeline.tracks.values())


def test_tracks_of_queues_are_their_levels(tmp_path):
    result = whywait.analyze(DATA / "stencil" / "traces.otf2", queues="estimate")
    _, timeline = written(result, tmp_path, queues=True)
    length = result.facts["length"] * 1e9
    found = {}
    for track, values in timeline.counters.items():
        if parent := timeline.tracks[track].parent_uuid:
            ends = [time for time, _ in values[1:]] + [length]
            integral = sum(value * (end - time) for (time, value), end in zip(values, ends, strict=True))
            rank = int(timeline.tracks[parent].process.process_name.split()[1])
            found[timeline.tracks[track].name, rank] = max(value for _, value in values), integral / length
    levels = result.queue_levels().to_pylist()
    known = {(LEVELS[row["metric"]], row["rank"]): row for row in levels if row["rank"] is not None and row["maximum"]}
    assert known
    assert found.keys() == known.keys()
    for key, (maximum, mean) in found.items():
        assert (maximum, mean) == (known[key]["maximum"], pytest.approx(known[key]["mean"], rel=1e-6))
