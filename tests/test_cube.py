"""Cube files: what pycubexr reads back is what was written."""

import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import whywait
from hypothesis import given, settings
from otf2.enums import LocationType, MetricMode
from whywait.report import cube
from whywait.report.cube import write_cube

from tests import fake_native
from tests.fake_native import dense
from tests.results import UNRECORDED
from tests.test_counters_input import Archive
from tests.test_metrics import analyses

pycubexr = pytest.importorskip("pycubexr")


def rows(parser, name, **convert):
    """Read a metric as {cnode id: values of all locations}."""
    values = parser.get_metric_values(parser.get_metric_by_name(name))
    return {cnode.id: values.cnode_values(cnode, **convert) for cnode in parser.all_cnodes()}


def check(result, path):
    """Compare everything in a file with the result it was made of."""
    profile, tree = result.profile, result.tree
    with pycubexr.CubexParser(str(path)) as parser:
        assert [location.id for location in parser.get_locations()] == list(range(profile.locations))
        names = {cnode.id: parser.get_region(cnode).name for cnode in parser.all_cnodes()}
        (root,) = parser.get_root_cnodes()
        assert (root.id == len(tree)) == (len(tree.roots) != 1)
        for callpath in range(len(tree)):
            assert names[callpath] == tree.path(callpath)[-1]
            parent = parser.get_cnode(callpath).parent
            expected = tree.parents[callpath] if tree.parents[callpath] >= 0 or len(tree.roots) == 1 else len(tree)
            assert (parent.id if parent else -1) == expected
        assert [metric.name for metric in parser.all_metrics()] == [metric.name for metric in profile.metrics]
        for metric in profile.metrics:
            if metric.name in profile.void:
                with pytest.raises(pycubexr.utils.exceptions.MissingMetricError):
                    rows(parser, metric.name)
                continue
            expected = dense(profile, metric.name)
            exclusive = rows(parser, metric.name, convert_to_exclusive=True)
            inclusive = rows(parser, metric.name, convert_to_inclusive=True)
            for callpath in range(len(tree)):
                assert np.allclose(exclusive[callpath], expected[callpath], rtol=1e-12, atol=1e-9), metric.name
            assert np.allclose(inclusive[root.id], expected.sum(axis=0), rtol=1e-12)
            if root.id == len(tree):
                assert np.allclose(exclusive[root.id], 0)


@pytest.fixture
def written(tmp_path):
    def write(result):
        path = tmp_path / "report.cubex"
        result.write_cube(path)
        assert [file.name for file in tmp_path.iterdir()] == ["report.cubex"]
        return path

    return write


def test_a_cube_file_holds_all_metrics_with_their_types(written):
    result = fake_native.result(fake_native.small())
    path = written(result)
    check(result, path)
    with pycubexr.CubexParser(str(path)) as parser:
        late = parser.get_metric_by_name("mpi_latesender")
        assert (late.metric_type, late.data_type, late.units) == ("EXCLUSIVE", "DOUBLE", "sec")
        assert parser.get_metric_by_name("time").metric_type == "INCLUSIVE"
        assert parser.get_metric_by_name("bytes").data_type == "UINT64"
        region = parser.get_region_by_name("MPI_Recv")
        assert (region.paradigm, region.role, region.mod) == ("mpi", "point2point", "main.c")
        assert parser.get_region_by_name(fake_native.SOLVE[0])
        stored = parser.get_metric_values(parser.get_metric_by_name("time"))
        assert stored.cnode_values(parser.get_root_cnodes()[0]) == pytest.approx(
            dense(result.profile, "time").sum(axis=0)
        )


def test_wide_order_of_ids_that_are_not_in_preorder(written):
    # 4 > (2 > (7, 0), 6 > (1 > 3, 5)): children first, then what is below each.
    parents = [2, 6, 4, 1, None, 6, 4, 2]
    values = {"time": {(c, 0): 2.0**c for c in range(8)}, "mpi_latesender": {(c, 1): 3.0**c for c in (3, 5, 7)}}
    kinds = [fake_native.MAIN, *[fake_native.RECV] * 7]
    result = fake_native.result(fake_native.FakeAnalysis(parents, kinds, [(0, 0), (1, 0)], values))
    assert result.tree.wide.tolist() == [4, 2, 6, 0, 7, 1, 5, 3]
    assert result.tree.preorder.tolist() == [4, 2, 0, 7, 6, 1, 3, 5]
    path = written(result)
    check(result, path)
    with tarfile.open(path) as archive:
        index = archive.extractfile("0.index").read()
    assert index[:22] == b"CUBEX.INDEX\1\0\0\0\0\0\1\10\0\0\0"
    assert np.frombuffer(index[22:], "<u4").tolist() == list(range(8))


def test_several_programs_get_a_root(written):
    parents = [None, None, 1]
    kinds = [fake_native.MAIN, ("other", "USER", "FUNCTION"), fake_native.RECV]
    values = {"time": {(0, 0): 1.0, (1, 1): 2.0, (2, 1): 4.0}, "visits": {(2, 1): 3.0}}
    result = fake_native.result(fake_native.FakeAnalysis(parents, kinds, [(0, 0), (1, 0)], values))
    check(result, written(result))


@pytest.mark.filterwarnings("ignore:.*divide.*:RuntimeWarning")
@settings(max_examples=40)
@given(analyses())
def test_any_call_forest(tmp_path_factory, analysis):
    result = fake_native.result(analysis)
    path = tmp_path_factory.mktemp("cube") / "report.cubex"
    write_cube(result, path)
    check(result, path)


def test_names_that_xml_cannot_say(written):
    kinds = [("operator<\"&'>\x00\x1b\N{SNOWMAN}", "USER", "FUNCTION"), ("a -> b", "USER", "FUNCTION")]
    values = {"time": {(0, 0): 1.0, (1, 0): 1.0}}
    path = written(fake_native.result(fake_native.FakeAnalysis([None, 0], kinds, [(0, 0)], values)))
    with pycubexr.CubexParser(str(path)) as parser:
        names = [cnode.region.name for cnode in parser.all_cnodes()]
    assert names == ["operator<\"&'>\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}\N{SNOWMAN}", "a -> b"]


def test_deep_recursion_of_the_program_is_written(written):
    depth = 3_000
    analysis = fake_native.FakeAnalysis(
        [None, *range(depth - 1)], [fake_native.MAIN] * depth, [(0, 0)], {"time": {(depth - 1, 0): 1.0}}
    )
    with tarfile.open(written(fake_native.result(analysis))) as archive:
        anchor = archive.extractfile("anchor.xml").read()
        data = archive.extractfile("0.data").read()
    assert anchor.count(b"</cnode>") == depth
    assert np.frombuffer(data[10:], "<f8").tolist() == [1.0] * depth


SYSTEM = {
    "SystemTreeNode": [
        {"id": 5, "name": "cluster", "class_name": "machine", "parent": 0xFFFFFFFF},
        {"id": 6, "name": "node7", "class_name": "node", "parent": 5},
        {"id": 8, "name": "node9", "class_name": "node", "parent": 5},
    ],
    "LocationGroup": [
        {"id": 0, "name": "MPI Rank 0", "location_group_type": "PROCESS", "system_tree_parent": 6},
        {"id": 1, "name": "MPI Rank 1", "location_group_type": "PROCESS", "system_tree_parent": 8},
    ],
    "CartDimension": [
        {"id": 3, "name": "x", "size": 2, "cart_periodicity": "TRUE"},
        {"id": 4, "name": None, "size": 1, "cart_periodicity": "FALSE"},
    ],
    "CartTopology": [{"id": 0, "name": "grid", "communicator": 9, "cart_dimensions": [3, 4]}],
    "CartCoordinate": [
        {"cart_topology": 0, "rank": 0, "coordinates": [1, 0]},
        {"cart_topology": 0, "rank": 1, "coordinates": [0, 0]},
        {"cart_topology": 0, "rank": 1, "coordinates": [2, 0]},
        {"cart_topology": 0, "rank": 2, "coordinates": [0, 0]},
    ],
    "Comm": [{"id": 9, "group": 12}],
    "Group": [
        {"id": 11, "group_type": "COMM_LOCATIONS", "paradigm": "MPI", "members": [0, 1]},
        {"id": 12, "group_type": "COMM_GROUP", "paradigm": "MPI", "members": [1, 0]},
    ],
}


@pytest.mark.parametrize("size", [0, 4711, (8 << 30) - 1, 8 << 30])
def test_headers_of_members_are_those_of_tarfile(size):
    for name in ("0.index", "233.data", "anchor.xml"):
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = size, 0o600
        assert cube._header(name, size) == entry.tobuf(tarfile.PAX_FORMAT)


def test_system_tree_and_topology(written):
    ranks = [(0, 0), (0, 1), (1, 0)]
    analysis = fake_native.FakeAnalysis([None], [fake_native.MAIN], ranks, {"time": {(0, 0): 1.0}})
    path = written(fake_native.result(analysis, definitions=SYSTEM))
    with pycubexr.CubexParser(str(path)) as parser:
        assert [(location.id, location.rank) for location in parser.get_locations()] == [(0, "0"), (1, "1"), (2, "0")]
    with tarfile.open(path) as archive:
        system = ET.fromstring(archive.extractfile("anchor.xml").read()).find("system")  # noqa: S314
    (machine,) = system.findall("systemtreenode")
    assert (machine.findtext("name"), machine.findtext("class")) == ("cluster", "machine")
    nodes = machine.findall("systemtreenode")
    assert [node.findtext("name") for node in nodes] == ["node7", "node9"]
    assert [group.findtext("name") for node in nodes for group in node.findall("locationgroup")] == [
        "MPI Rank 0", "MPI Rank 1",
    ]  # fmt: skip
    (cart,) = system.findall("topologies/cart")
    assert cart.attrib == {"name": "grid", "ndims": "2"}
    assert [dim.attrib["periodic"] for dim in cart.findall("dim")] == ["true", "false"]
    assert [(coord.attrib["locId"], coord.text) for coord in cart.findall("coord")] == [("2", "1 0"), ("0", "0 0")]


def test_a_system_without_definitions_has_one_machine(written):
    path = written(fake_native.result(fake_native.small()))
    with tarfile.open(path) as archive:
        system = ET.fromstring(archive.extractfile("anchor.xml").read()).find("system")  # noqa: S314
    assert len(system.findall("systemtreenode")) == 1
    assert [group.findtext("rank") for group in system.iter("locationgroup")] == ["0", "1", "2"]


@pytest.mark.parametrize("case", fake_native.shared_cases() or [None], ids=lambda case: case and case.name)
def test_scalascas_values_survive_a_round_trip(case, written):
    if case is None:
        pytest.skip(UNRECORDED)
    analysis, scout = fake_native.from_scout(case)
    result = fake_native.result(analysis)
    path = written(result)
    check(result, path)
    with pycubexr.CubexParser(str(path)) as parser:
        for name in set(scout["totals"]) & set(fake_native.STORED):
            exclusive = rows(parser, name, convert_to_exclusive=True)
            assert sum(values.sum() for values in exclusive.values()) == pytest.approx(scout["totals"][name]), name


def test_levels_and_maxima_are_below_counters_and_metric_locations_are_left_out(tmp_path_factory, written):
    """A metric location is defined before the thread it counts for: 3 for 4 s, then 7 for 6 s; a total of 4."""
    archive = Archive(tmp_path_factory.mktemp("trace"))
    recorder, thread = archive.stream(kind=LocationType.METRIC), archive.stream()
    level, total = archive.metric("level", mode=MetricMode.ABSOLUTE_NEXT), archive.metric("total")
    instance = archive.definitions.metric_instance(level, recorder, scope=archive.groups[0])
    for time, value in ((0, 3), (40, 7), (100, 0)):
        archive.sample(recorder, time, instance, value)
    for time, value in ((0, 1), (100, 5)):
        archive.sample(thread, time, total, value)
    result = archive.analyze()
    assert sorted(result.places.table["type"].to_pylist()) == ["CPU_THREAD", "METRIC"]
    path = written(result)
    with pycubexr.CubexParser(str(path)) as parser:
        (location,) = parser.get_locations()
        assert (location.id, location.type) == (0, "thread")
        (counters,) = (metric for metric in parser.get_metrics() if metric.display_name == "Counters")
        assert [metric.name for metric in counters.childs] == ["total", "level", "max:level"]
        (main,) = parser.get_root_cnodes()
        found = {}
        for metric in counters.childs:
            values = parser.get_metric_values(metric).cnode_values(
                main, convert_to_exclusive=metric.name != "max:level"
            )
            found[metric.name, metric.data_type] = values.astype(float).tolist()
        assert found == {
            ("total", "UINT64"): [4],
            ("level", "DOUBLE"): [3 * 4 + 7 * 6],
            ("max:level", "MAXDOUBLE"): [7],
        }
        assert parser.get_metric_values(parser.get_metric_by_name("time")).cnode_values(main).tolist() == [10]


def test_the_longest_queues_are_maxima_at_the_root(written):
    result = whywait.analyze(Path(__file__).parent / "data" / "stencil", causes=False, queues="send")
    path = written(result)
    with pycubexr.CubexParser(str(path)) as parser:
        metric = parser.get_metric_by_name("mpi_max_requests")
        (root,) = parser.get_root_cnodes()
        found = parser.get_metric_values(metric).cnode_values(root).astype(float).tolist()
        assert (metric.data_type, metric.units) == ("MAXDOUBLE", "requests")
        # The parser makes zeros of rows that are not there, and cannot make them maxima.
        elsewhere = [node for node in parser.all_cnodes() if node.id != root.id]
        assert all(parser.get_metric_values(metric).cnode_values(node).astype(float).max() < 0 for node in elsewhere)
    rows = [
        row for row in result.queue_levels().to_pylist() if row["metric"] == "mpi_requests" and row["rank"] is not None
    ]
    assert [found[row["location"]] for row in rows] == [row["maximum"] for row in rows]
    assert len(rows) > 1
