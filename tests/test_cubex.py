"""Cube files of many writers: old and new versions, loose containers, several roots, and damaged ones."""

import contextlib
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
import whywait
from whywait.cli import main
from whywait.store.cubex import Cube

from tests.cube_files import LOCATIONS, PLACES, TREE, Metric, Style, inclusive, write
from tests.results import SHARED, UNRECORDED

OWN = {number: [number + column / 4 + 1 for column in range(LOCATIONS)] for number in (0, 1, 3, 4, 5, 2, 6)}
VISITS = {number: [number + 1] * LOCATIONS for number in OWN}
BYTES = {0: [10, 20, 30, 40], 5: [1, 2, 3, 4]}


def paths(tree=TREE, above=()):
    for number, region, below in tree:
        yield number, "/".join((*above, region))
        yield from paths(below, (*above, region))


PATHS = dict(paths())


def by_path(result, name):
    return {row["path"]: row["value"] for row in result.metrics[name].by_callpath().to_pylist() if row["value"]}


def sums(values):
    return {PATHS[number]: pytest.approx(sum(row)) for number, row in values.items() if sum(row)}


def metrics():
    return [
        Metric("hits", "INCLUSIVE", "UINT64", "#", inclusive(BYTES)),
        Metric("time", "INCLUSIVE", "DOUBLE", "sec", inclusive(OWN)),
        Metric("visits", "EXCLUSIVE", "UINT64", "occ", VISITS),
        Metric("bytes_sent", "EXCLUSIVE", "UINT64", "bytes", BYTES),
        Metric("max_time", "EXCLUSIVE", "MAXDOUBLE", "sec", {3: [9.0] * LOCATIONS}),
    ]


STYLES = {
    "4.4": Style(),
    "4.0": Style("4.0", terms=False, legacy_system=True),
    "4.8 with wrong checksums": Style("4.8", checksum=False),
    "big endian": Style(order=">"),
    "dense": Style(dense=True),
    "dense, big endian": Style(dense=True, order=">"),
    "compressed": Style(compressed=True, dense=True, gzipped=True),
    "compressed, big endian, sizes before compression": Style(compressed=True, order=">", true_size=False),
    "anchor first, no extra blocks": Style(anchor_first=True, extra_block=False),
    "anchor twice": Style(twice=True),
    "two machines": Style(system_roots=2),
    "packed again": Style(prefix="./"),
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_every_form_has_the_same_values(tmp_path, style):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = whywait.load(write(tmp_path / "a.cubex", metrics(), style))
        assert by_path(result, "time") == sums(OWN)
        assert by_path(result, "visits") == sums(VISITS)
        assert by_path(result, "bytes_sent") == sums({0: BYTES[0]})
        assert by_path(result, "bytes_cout") == sums({5: BYTES[5]})
        assert by_path(result, "hits") == sums(BYTES)
    locations = result.locations.to_pylist()
    assert {row["id"]: (row["rank"], row["thread"]) for row in locations} == PLACES
    cells = {
        ("/".join(row["callpath"]), row["rank"], row["thread"]): row["value"]
        for row in result.severities("time").to_pylist()
    }
    assert cells == pytest.approx(
        {(PATHS[number], *PLACES[column]): row[column] for number, row in OWN.items() for column in PLACES}
    )
    system = result.tables.system.to_pylist()
    assert [row["class"] for row in system if row["kind"] == "node"][:2] == ["machine", "node"]
    assert sum(row["parent"] is None for row in system) == style.system_roots
    assert by_path(result, "mpi") == sums({number: OWN[number] for number in (0, 1, 5)})


@pytest.mark.parametrize("name", ["data/profile/profile.cubex", "report"])
def test_another_reader_has_the_same_values(name, tmp_path):
    """Of files that it reads; those of this program have a hundred metrics."""
    pycubexr = pytest.importorskip("pycubexr")
    path = Path(__file__).parent / name
    if name == "report":
        path = whywait.analyze(Path(__file__).parent / "data/stencil").write(tmp_path)[0]
        assert path.suffix == ".cubex"
    cube, compared = Cube(path), 0
    with pycubexr.CubexParser(str(path)) as parser:
        nodes = [node for root in parser.get_root_cnodes() for node in root.get_all_children()]
        for metric in filter(lambda metric: metric.is_sum, cube.metrics):
            values = cube.values(metric)
            try:
                others = parser.get_metric_values(parser.get_metric_by_name(metric.name), cache=False)
            except pycubexr.utils.exceptions.MissingMetricError:
                assert values is None
                continue
            expected = np.array([others.cnode_values(node) for node in nodes], np.float64)
            assert np.array_equal(values, expected), metric.name
            compared += 1
    assert compared >= 8


def test_rows_of_metrics_without_relation_are_by_number(tmp_path):
    stored = {4: [1.0, 2.0, 3.0, 4.0], 0: [5.0] * LOCATIONS}
    cube = Cube(write(tmp_path / "a.cubex", [Metric("simple", "SIMPLE", values=stored)]))
    values = cube.values(cube.metrics[0])
    order = list(PATHS)
    assert {order[row]: values[row].tolist() for row in np.flatnonzero(values.any(axis=1))} == stored


def test_rows_of_inclusive_metrics_go_down_one_callee_after_the_other(tmp_path):
    tree = [(0, "main", [(1, "solve", [(2, "MPI_Send", [])]), (3, "kernel", [(4, "helper", [])])])]
    own = {number: [float(10**number)] * LOCATIONS for number in range(5)}
    written = [Metric("time", "INCLUSIVE", values=inclusive(own, tree))]
    found = by_path(whywait.load(write(tmp_path / "a.cubex", written, tree=tree)), "time")
    assert list(found.values()) == [4.0 * 10**number for number in range(5)]


def test_rows_that_were_never_written_are_zero(tmp_path):
    path = write(tmp_path / "a.cubex", [Metric("time", "EXCLUSIVE", "UINT8", "sec", {3: [1] * LOCATIONS, 0: [2] * 4})])
    content = path.read_bytes()
    at = content.index(b"CUBEX.DATA")
    # The member has one row less than its index.
    path.write_bytes(content[: at - 512 + 124] + b"%011o" % 14 + content[at - 512 + 135 :])
    assert by_path(whywait.load(path), "time") == {"main": 4.0}


def test_metrics_that_cannot_be_read_are_left_out(tmp_path):
    """Tuples, expressions, and damaged values: everything else is there."""
    extra = [
        Metric("atomic", "EXCLUSIVE", "TAU_ATOMIC"),
        Metric("histogram", "EXCLUSIVE", "HISTOGRAM(8)"),
        Metric("ratio", "POSTDERIVED", "DOUBLE", cubepl="metric::time() / metric::visits()"),
        Metric("odd", "SOMETHING", "DOUBLE"),
        Metric("empty", "INCLUSIVE", "UINT64", "#", {}),
    ]
    path = write(tmp_path / "a.cubex", metrics() + extra)
    result = whywait.load(path)
    assert by_path(result, "time") == sums(OWN)
    assert len(result.warnings) == 1
    assert by_path(result, "hits") == sums(BYTES)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CUBEX.INDEX\1\0\0\0\0\0\1", b"CUBEX.INDEX\1\0\0\0\0\0\7", 1))
    result = whywait.load(path)
    assert "hits" not in result.metrics
    assert by_path(result, "bytes_sent") == sums({0: BYTES[0]})
    assert "a metric is left out: hits: its index has the unknown form 7" in [one["text"] for one in result.warnings]


NAMES = {
    "MPI_Barrier": ("mpi", "barrier"),
    "mpi_isend_": ("mpi", "point2point"),
    "!$omp parallel @a.c:3": ("openmp", "parallel"),
    "!$omp for @a.c:4": ("openmp", "loop"),
    "!$omp implicit barrier @a.c:5": ("openmp", "implicit barrier"),
    "!$omp single sblock @a.c:5": ("openmp", "single sblock"),
    "omp_set_lock": ("openmp", "wrapper"),
    "pthread_mutex_lock": ("pthread", "wrapper"),
    "shmem_double_put": ("shmem", "rma"),
    "cudaMemcpy": ("cuda", "wrapper"),
    "cuLaunchKernel": ("cuda", "wrapper"),
    "cutoff": ("unknown", "unknown"),
    "clear": ("unknown", "unknown"),
    "operator<": ("unknown", "unknown"),
    "main": ("unknown", "unknown"),
}


def test_names_tell_paradigms_and_roles(tmp_path):
    tree = [(number, name, []) for number, name in enumerate(NAMES)]
    regions = dict.fromkeys(NAMES, ("", ""))
    values = {number: [1.0] * LOCATIONS for number in range(len(NAMES))}
    path = write(
        tmp_path / "a.cubex", [Metric("time", values=values)], Style("4.2", terms=False), tree=tree, regions=regions
    )
    result = whywait.load(path)
    found = {row["name"]: (row["paradigm"], row["role"]) for row in result.tables.regions.to_pylist()}
    assert found == NAMES
    assert by_path(result, "omp_barrier") == {"!$omp implicit barrier @a.c:5": 4.0}
    assert by_path(result, "mpi") == dict.fromkeys(("MPI_Barrier", "mpi_isend_"), 4.0)
    assert by_path(result, "mpi_sync_collective") == {"MPI_Barrier": 4.0}
    assert {"cutoff", "clear", "operator<", "main"} < by_path(result, "comp").keys()


def test_names_and_units_of_tau(tmp_path):
    micro = {number: [value * 1e6 for value in row] for number, row in OWN.items()}
    tree = [(3, "int main(int, char **) C", [(0, "MPI_Send()", [])])]
    regions = {"int main(int, char **) C": ("user", "function"), "MPI_Send()": ("user", "function")}
    written = [Metric("Calls", dtype="INTEGER", unit="occ", values=VISITS), Metric("TIME", unit="usec", values=micro)]
    result = whywait.load(write(tmp_path / "a.cubex", written, tree=tree, regions=regions))
    assert result.metrics["mpi_point2point"].total == pytest.approx(sum(OWN[0]))
    assert result.metrics["time"].total == pytest.approx(sum(OWN[0]) + sum(OWN[3]))
    assert result.metrics["visits"].total == sum(VISITS[0]) + sum(VISITS[3])


def test_the_report_of_another_analysis(tmp_path):
    """Scalasca has a metric for each kind of operation, and wait states, which are not read."""
    written = [
        *metrics()[1:3],
        Metric("bytes_sent", "EXCLUSIVE", "INTEGER", "bytes", {0: [1] * LOCATIONS}),
        Metric("bytes_rcvd", "EXCLUSIVE", "INTEGER", "bytes", {1: [2] * LOCATIONS}),
        Metric("bytes_cout", "EXCLUSIVE", "INTEGER", "bytes", {5: [3] * LOCATIONS}),
        Metric("bytes_cin", "EXCLUSIVE", "INTEGER", "bytes", {}),
        Metric("mpi_latesender", "EXCLUSIVE", "FLOAT", "sec", {1: [0.5] * LOCATIONS}),
        Metric("execution", "PREDERIVED_EXCLUSIVE", "DOUBLE", "sec", cubepl="metric::time(e)"),
    ]
    result = whywait.load(write(tmp_path / "scout.cubex", written, Style(attributes={"Creator": "Scalasca 2.6"})))
    totals = [result.metrics[name].total for name in ("bytes_sent", "bytes_rcvd", "bytes_cout", "bytes_cin")]
    assert totals == [4, 8, 12, 0]
    assert "mpi_latesender" not in result.metrics
    assert any("wait states" in one["text"] and "not read" in one["text"] for one in result.warnings)


def test_xml_that_is_not_well_formed(tmp_path):
    path = write(tmp_path / "a.cubex", metrics(), Style(anchor_first=True))
    content = path.read_bytes()
    assert content.count(b"<doc><mirrors></mirrors></doc>") == 1
    for text in (b"<doc>a & b \x01 \xe9</doc>", b"<doc>AT&T &amp; &#65;</doc>"):
        odd = text.ljust(len(b"<doc><mirrors></mirrors></doc>"))
        path.write_bytes(content.replace(b"<doc><mirrors></mirrors></doc>", odd))
        assert by_path(whywait.load(path), "time") == sums(OWN)


# Files that cannot be read


def said(path):
    with pytest.raises(whywait.ArchiveError, match="cannot be read as a profile: ") as raised:
        whywait.load(path)
    return str(raised.value).partition("profile: ")[2]


def test_errors_say_what_is_wrong(tmp_path):
    path = tmp_path / "a.cubex"
    path.write_bytes(b"")
    assert said(path) == "it is no Cube 4 file"
    path.write_bytes(b"\x89PNG" * 500)
    assert said(path) == "it is no Cube 4 file"
    path.write_bytes(b'<?xml version="1.0"?><cube version="3.0">' + b" " * 1000)
    assert "Cube 3" in said(path)
    write(path, metrics()[2:])
    assert said(path) == "it has no times, only visits, bytes_sent, max_time"
    whole = write(path, metrics()).read_bytes()
    path.write_bytes(whole[: whole.index(b"anchor.xml") - 100])
    assert "anchor.xml" in said(path)
    assert "incomplete" in said(path)
    path.write_bytes(whole[: whole.index(b"<program>")])
    assert said(path).startswith("anchor.xml ends after ")
    path.write_bytes(whole.replace(b'calleeId="10"', b'calleeId="99"', 1))
    assert said(path) == "a call path has region 99, which is not defined"
    path.write_bytes(whole.replace(b'cnode id="3"', b'cnode id="x"', 1))
    assert said(path) == "anchor.xml: id of <cnode> is 'x'"
    path.write_bytes(whole.replace(b"</program>", b"</progrxm>"))
    assert said(path).startswith("anchor.xml: mismatched tag")
    assert main(["tree", str(path)]) == 3


@pytest.mark.parametrize("style", [Style(), Style(compressed=True, dense=True, order=">", gzipped=True)])
def test_damaged_files_are_refused_or_read(tmp_path, style):
    path = write(tmp_path / "a.cubex", metrics(), style)
    whole, chance = path.read_bytes(), np.random.default_rng(7)
    for number in range(300):
        broken = bytearray(whole)
        for _ in range(1 + number % 3):
            broken[chance.integers(len(whole))] = chance.integers(256)
        if number % 2:
            broken = broken[: chance.integers(len(whole))]
        path.write_bytes(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with contextlib.suppress(whywait.ArchiveError):
                whywait.load(path).metrics["time"].by_callpath()


def test_sizes_that_no_file_has(tmp_path):
    path = write(tmp_path / "a.cubex", metrics()[1:2], Style(compressed=True))
    whole = path.read_bytes()
    at = whole.index(b"ZCUBEX.DATA") + 11
    for count in (2**63, 2**40, 10**6):
        path.write_bytes(whole[:at] + struct.pack("<Q", count) + whole[at + 8 :])
        assert said(path).startswith(("0.data ends after ", "time: its data have an incomplete list of rows"))


# Profiles of others


@pytest.mark.parametrize("case", ["profile_no_paradigm", "profile_two_roots"])
def test_profiles_from_the_field(case, capsys):
    """They are the profile of another case without its terms, and with another root."""
    path = SHARED / "field" / case
    original = SHARED / "cases/counters_user/profile.cubex"
    if not path.exists() or not original.exists():
        pytest.skip(UNRECORDED)
    found, expected = whywait.load(path), whywait.load(original)
    for name in (
        "time",
        "comp",
        "mpi",
        "mpi_collective",
        "mpi_init_exit",
        "omp_synchronization",
        "visits",
        "bytes_cin",
    ):
        assert by_path(found, name) == pytest.approx(by_path(expected, name)), name
        assert found.metrics[name].total > 0
    assert main(["tree", str(path)]) == 0
    assert "Warning:" not in capsys.readouterr().err


def test_times_below_the_time_are_no_counters(tmp_path):
    times = [Metric(name, "INCLUSIVE", "DOUBLE", "sec", inclusive(OWN), depth=depth) for depth, name in enumerate(
        ("time", "execution", "mpi", "mpi_point2point"))]  # fmt: skip
    others = [
        Metric("PAPI_TOT_CYC", "INCLUSIVE", "UINT64", "#", inclusive(BYTES)),
        Metric("cycles_of_calls", "INCLUSIVE", "UINT64", "#", inclusive(BYTES), depth=1),
        Metric("watched", "INCLUSIVE", "DOUBLE", "sec", inclusive(OWN)),
    ]
    result = whywait.load(write(tmp_path / "summary.cubex", [*times, *others]))
    assert by_path(result, "time") == sums(OWN)
    assert set(result.counters) == {"PAPI_TOT_CYC", "cycles_of_calls", "watched"}


@pytest.mark.skipif(not SHARED.is_dir(), reason=UNRECORDED)
def test_a_summary_of_scalasca_has_each_time_once(capsys):
    assert main(["tree", str(SHARED / "field4/cube_stored_times/summary.cubex"), "--focus", "all"]) == 0
    metrics, _, _ = capsys.readouterr().out.partition("\n\nCall")
    for name, time in (("MPI", "7.00 s"), ("Point-to-point", "5.00 s"), ("Init/Finalize", "2.00 s")):
        assert [line.split()[-4:-2] for line in metrics.splitlines() if line.split()[0] == name] == [time.split()]
    assert "Counters" not in metrics
