"""Tables of severities and wait states."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from whywait.model import tables
from whywait.model.metrics import metric_tree
from whywait.model.schema import schema_of

from tests import fake_native
from tests.fake_native import dense


@pytest.fixture
def result():
    return fake_native.result(fake_native.small())


PATHS = [
    ["main"],
    ["main", fake_native.SOLVE[0]],
    ["main", fake_native.SOLVE[0], "MPI_Recv"],
    ["main", fake_native.SOLVE[0], "MPI_Send"],
    ["main", "MPI_Barrier"],
    ["main", "TRACE BUFFER FLUSH"],
]


def test_callpaths_are_in_the_order_of_the_call_tree(result):
    table = result.callpaths()
    assert table["callpath"].to_pylist() == PATHS
    assert table["callpath_id"].to_pylist() == [3, 0, 1, 4, 2, 5]
    assert table["parent_id"].to_pylist() == [None, 3, 0, 0, 3, 3]
    assert table["name"].to_pylist() == [path[-1] for path in PATHS]


def test_severities_of_a_metric(result):
    table = result.severities("mpi_latesender")
    assert table.schema == tables.SEVERITIES
    assert table.to_pylist() == [
        {"metric": "mpi_latesender", "callpath": PATHS[2], "callpath_id": 1, "location": location, "rank": location,
         "thread": 0, "value": value}
        for location, value in ((0, 0.005), (1, 0.003))
    ]  # fmt: skip


def test_severities_of_all_stored_metrics(result):
    table = result.severities()
    assert set(table["metric"].to_pylist()) == {
        "time", "visits", "mpi_barrier_wait", "mpi_latesender", "mpi_latesender_wo", "mpi_lswo_same", "comms_send",
        "comms_recv", "syncs_coll", "bytes_sent", "bytes_rcvd", "imbalance", "imbalance_above", "imbalance_below",
    }  # fmt: skip
    assert all(value != 0 for value in table["value"].to_pylist())
    assert table.num_rows == 17 + 18 + 2 + 2 + 1 + 1 + 2 + 2 + 3 + 2 + 2 + 4 + 2 + 2


def test_severities_with_what_is_below(result):
    values = {
        (row["callpath_id"], row["location"]): row["value"]
        for row in result.severities("time", inclusive=True).to_pylist()
    }
    time = dense(result.profile, "time")
    assert values[3, 2] == pytest.approx(time[:, 2].sum())
    assert values[0, 1] == pytest.approx(time[[0, 1, 4], 1].sum())
    assert values[2, 0] == time[2, 0]


def test_derived_severities(result):
    table = result.derived_severities()
    names = set(table["metric"].to_pylist())
    assert {"comp", "mpi", "mpi_point2point", "overhead", "bytes", "comms_p2p"} <= names
    assert not names & {"time", "mpi_latesender", "omp_time"}
    overhead = [row for row in table.to_pylist() if row["metric"] == "overhead"]
    assert [row["location"] for row in overhead] == [0, 2]
    assert {tuple(row["callpath"]) for row in overhead} == {tuple(PATHS[5])}


def test_an_unknown_metric_is_a_key_error(result):
    with pytest.raises(KeyError):
        result.severities("mpi_latesenders")
    with pytest.raises(KeyError):
        result.severities("critical_path")


def test_metric_values(result):
    late = result.metrics["mpi_latesender"]
    assert late.total == pytest.approx(0.008)
    assert (late.unit, late.display_name, late.parent, late.children) == (
        "sec", "Late Sender", "mpi_point2point", ["mpi_latesender_wo"],
    )  # fmt: skip
    assert "receiver waited" in late.description
    assert late.by_rank().to_pylist() == [
        {"rank": 0, "value": 0.005}, {"rank": 1, "value": 0.003}, {"rank": 2, "value": 0.0},
    ]  # fmt: skip
    below = late.by_callpath().to_pylist()
    assert [(row["callpath_id"], row["value"], row["inclusive"]) for row in below] == [
        (3, 0.0, pytest.approx(0.008)), (0, 0.0, pytest.approx(0.008)),
        (1, pytest.approx(0.008), pytest.approx(0.008)),
    ]  # fmt: skip
    assert result.metrics["visits"].total == 18 * 12 + 9
    assert isinstance(result.metrics["bytes"].total, int)
    assert result.metrics["bytes"].total == 2**41 + 24
    assert result.metrics["omp_time"].void
    assert not result.metrics["mpi"].void


def test_threads_add_up_to_their_rank():
    analysis = fake_native.FakeAnalysis(
        [None], [fake_native.MAIN], [(0, 0), (0, 1), (1, 0)], {"time": {(0, 0): 1.0, (0, 1): 2.0, (0, 2): 4.0}}
    )
    assert fake_native.result(analysis).metrics["time"].by_rank()["value"].to_pylist() == [3.0, 4.0]


def test_wait_states_have_names(result):
    rows = result.wait_states().to_pylist()
    assert rows[0] == {
        "kind": "mpi_lswo_same", "part_of": "mpi_latesender", "path": "/".join(PATHS[2]), "callpath": PATHS[2],
        "callpath_id": 1, "location": 0, "rank": 0, "thread": 0,
        "enter": 0.1, "leave": 0.2, "waiting": 0.004, "hidden": None,
        "cause_callpath": PATHS[3], "cause_callpath_id": 4,
        "cause_location": 1, "cause_rank": 1, "cause_thread": 0, "cause_time": 0.15, "last": None, "inferred": None,
            "direct": None, "indirect": None, "propagating": None, "caused": None,
    }  # fmt: skip
    assert {rows[2][name] for name in rows[2] if name.startswith("cause_")} == {None}


def test_transfers_have_names(result):
    put, atomic = result.transfers().to_pylist()
    assert put == {
        "kind": "put", "epoch": "fence", "window": 3, "bytes": 80, "origin_callpath": PATHS[3], "origin_callpath_id": 4,
        "origin_location": 0, "origin_rank": 0, "origin": 0.1, "source_location": 0, "source_rank": 0, "start": 0.1,
        "destination_location": 2, "destination_rank": 2, "end": 0.6,
    }  # fmt: skip
    assert (atomic["epoch"], atomic["end"]) == (None, None)


def test_nothing_is_a_table_too():
    result = fake_native.result(fake_native.FakeAnalysis([], [], [], {}))
    assert result.severities().num_rows == 0
    assert result.derived_severities().num_rows == 0
    assert result.wait_states().schema == tables.WAIT_STATES
    assert result.transfers().schema == schema_of("transfers")
    assert result.callpaths().num_rows == 0
    assert result.metrics["time"].total == 0
    assert result.metrics["time"].by_rank().num_rows == 0
    assert result.metrics["time"].by_callpath().num_rows == 0


def test_files_hold_the_tables(result, tmp_path):
    files = {file.name: file for file in result.write(tmp_path / "out", transfers=True)}
    assert sorted(files) == sorted(file.name for file in (tmp_path / "out").iterdir())
    for name, table in {
        "severities.parquet": result.severities(),
        "derived.parquet": result.derived_severities(),
        "wait_states.parquet": result.wait_states(),
        "transfers.parquet": result.transfers(),
    }.items():
        written = pq.read_table(files[name])
        assert written.to_pylist() == table.select(written.column_names).to_pylist()


def test_files_appear_all_or_none(result, tmp_path, monkeypatch):
    monkeypatch.setattr("whywait.report.files.write_stat", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        result.write(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "summary.json").write_text("old")
    with pytest.raises(ZeroDivisionError):
        result.write(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]
    assert (tmp_path / "summary.json").read_text() == "old"


def test_pieces_make_the_same_table_as_the_whole(result, monkeypatch):
    severities, waits, transfers = result.severities(), result.wait_states(), result.transfers()
    monkeypatch.setattr(tables, "_PIECE", 1)
    assert result.severities().to_pylist() == severities.to_pylist()
    assert result.wait_states().to_pylist() == waits.to_pylist()
    assert result.transfers().to_pylist() == transfers.to_pylist()


def test_a_run_of_many_processes_takes_seconds():
    """65,536 locations, 60 call paths: nothing may loop over rows in Python."""
    locations, callpaths = 1 << 16, 60
    kinds = [fake_native.MAIN, fake_native.SEND, fake_native.RECV, fake_native.BARRIER]
    regions = [kinds[0] if c % 3 == 0 else kinds[1 + c % 3] for c in range(callpaths)]
    parents = [None if c == 0 else 3 * ((c - 1) // 6) for c in range(callpaths)]
    analysis = fake_native.FakeAnalysis(parents, regions, [(0, 0)], {})
    index = np.arange(locations, dtype=np.uint32)
    names = [m.name for m in metric_tree() if not m.derived and m.name in fake_native.STORED]
    columns = []
    for code, name in enumerate(names):
        places = callpaths if name in {"time", "visits"} else 3
        columns.extend(
            (np.full(locations, code, np.int32), np.full(locations, callpath, np.uint32), index)
            for callpath in range(places)
        )
    metric, callpath, location = (np.concatenate(column) for column in zip(*columns, strict=True))
    analysis._severities = pa.table(
        {
            "metric": pa.DictionaryArray.from_arrays(metric, names),
            "callpath": callpath,
            "location": location,
            "value": np.ones(metric.size),
        }
    )
    one = analysis._locations.to_pylist()[0]
    analysis._locations = pa.table(
        {
            **{name: pa.array([one[name]] * locations) for name in ("name", "type", "events")},
            **dict.fromkeys(("location", "id", "group"), index),
            "rank": index.astype(np.int32),
            "thread": np.zeros(locations, np.int32),
        }
    )
    result = fake_native.result(analysis)
    totals = {name: values.total for name, values in result.metrics.items()}
    pieces = itertools.chain(
        tables.severity_pieces(result.profile, result.places, ["time", "mpi_latesender"]),
        tables.severity_pieces(result.profile, result.places, ["comp", "mpi"]),
    )
    rows = sum(piece.num_rows for piece in pieces)
    assert totals["time"] == callpaths * locations
    assert rows > (callpaths + callpaths) * locations
