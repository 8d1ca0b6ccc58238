"""Metrics, patterns and tables are declared once in the core; everything else agrees."""

import inspect
import json
import re

import pyarrow as pa
import pytest
import whywait
from whywait import _native
from whywait.model.clocks import CLOCK_TABLES
from whywait.model.metrics import metric_tree
from whywait.model.schema import cost_classes, patterns, tables
from whywait.model.tables import empty_numbered
from whywait.store.dataset import type_name

from tests.test_docs import ROOT, SITE

TREE = metric_tree()


def test_the_metric_tree_has_what_the_core_stores():
    computed = set(_native.stored_metrics())
    # These are made of others in Python.
    made = {metric.name for metric in TREE if not metric.derived} - computed
    assert computed <= {metric.name for metric in TREE}
    assert not {name for name in made if TREE[name].kind in {"wait", "completion"}}


def test_wait_states_stand_in_the_tree_where_their_rows_say():
    assert {metric.name for metric in TREE if metric.kind in {"wait", "completion"}} <= patterns().keys()
    for pattern in patterns().values():
        metric = TREE[pattern.kind]
        assert (metric.parent, metric.display_name) == (pattern.below, pattern.display_name)
        if not pattern.is_bound:
            whole = TREE.wait_state(pattern.kind)
            assert pattern.part_of == (None if whole.name == pattern.kind else whole.name)
        (paradigm,) = {above.paradigm for above in TREE.path(pattern.kind)} - {None}
        assert paradigm == pattern.paradigm.lower()


@pytest.mark.parametrize("pattern", patterns().values(), ids=lambda pattern: pattern.kind)
def test_each_pattern_has_a_document_with_an_example(pattern):
    text = (ROOT / "tests/patterns" / f"{pattern.document}.md").read_text(encoding="utf-8")
    # A document of calls that synchronize also holds for calls that communicate, and that of locks for mutexes.
    names = {pattern.kind, pattern.kind.replace("_comm_", "_sync_")}
    assert pattern.paradigm == "PTHREAD" or any(name in text for name in names), pattern


def variants():
    """Return the variant of each wait state by its unique name, from the rows of the core."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "rust/core/src/schema/rows").glob("*.rs")}
    found = {}
    for text in texts.values():
        found |= {name: variant for variant, name in re.findall(r'^ +(\w+) = "(\w+)" \{$', text, re.MULTILINE)}
    # Libraries besides MPI name the variants of common rows, whose unique names begin with a prefix.
    common = texts["one_sided_library"]
    parameters = re.findall(r"\$(\w+):ident", common.partition("metrics: [")[2].partition("]")[0])
    endings = dict(re.findall(r'\$(\w+) = \(concat!\(\$prefix, "(\w+)"\)\) \{', common))
    for library in ("shmem", "armci", "pgas"):
        named = texts[library].partition("metrics: [")[2].partition("]")[0].split()
        pairs = zip(parameters, named, strict=True)
        found |= {library + endings[parameter]: variant for parameter, variant in pairs if parameter in endings}
    return found


def test_each_pattern_has_a_detector():
    rooms = (ROOT / "rust/core/src" / room for room in ("waits", "matching"))
    detectors = "".join(path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.rs"))
    booked = set(re.findall(r"Metric::(\w+)", detectors))
    assert variants().keys() == patterns().keys()
    assert not {variant for variant in variants().values() if variant not in booked}


def test_costs_are_booked_on_metrics_of_the_tree():
    charged = {pattern.cost_class for pattern in patterns().values()} - {None, "library"}
    assert charged | {"ompidle"} == cost_classes().keys()
    for cost_class in cost_classes().values():
        booked = (cost_class.short_term, cost_class.long_term, cost_class.indirect, cost_class.propagating)
        assert all(name in TREE for name in booked if name is not None)


@pytest.fixture(scope="module")
def result():
    return whywait.analyze(whywait.open(ROOT / "tests/data/stencil"), queues="estimate", queue_bins=4)


@pytest.fixture(scope="module")
def stored(result, tmp_path_factory):
    """Return the tables of a written result by its manifest."""
    directory = tmp_path_factory.mktemp("result")
    result.write(directory, transfers=True, html=True)
    return json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["tables"]


# Nothing is violated.
CLOCKS = set(CLOCK_TABLES)


def columns(schema):
    return {field.name: type_name(field.type) for field in schema}


def declared(table):
    return {column.name: column.type for column in table.columns}


def test_the_dataset_has_the_tables_that_are_declared(stored):
    for name, written in stored.items():
        found = list(written["columns"].items())
        kept = [(column.name, column.type) for column in tables()[name].columns if not column.is_joined]
        if name == "iterations":
            # It has a column for each wait state that occurs besides.
            found, waits = found[: len(kept)], dict(found[len(kept) :])
            assert waits
            assert all(TREE.wait_state(kind) and kind_type == "double" for kind, kind_type in waits.items())
        assert found == kept, name
    # The trace has no counters, no devices, no files, and no samples.
    missing = {name for name, table in tables().items() if table.is_stored} - stored.keys()
    assert (
        missing
        <= {
            "counters",
            "counter_cells",
            "timeline_counters",
            "device_account",
            "io",
            "prices",
            "samples",
            "profile",
            "delay_functions",
        }
        | CLOCKS
    )


METHODS = [(method, name) for name, table in tables().items() for method in table.methods]


@pytest.mark.parametrize(("method", "name"), METHODS)
def test_results_return_the_tables_that_are_declared(result, method, name):
    returned = getattr(result, method)()
    assert list(columns(returned.schema).items()) == list(declared(tables()[name]).items())


def test_each_method_that_returns_a_table_without_a_question_is_declared():
    # What answers a question has columns that depend on it.
    questions = {"waits_between", "account"}
    hints = {name: getattr(whywait.Result, name) for name in dir(whywait.Result) if not name.startswith("_")}
    found = {
        name for name, member in hints.items() if getattr(member, "__annotations__", {}).get("return") == "pa.Table"
    }
    assert found - questions == {method for method, _ in METHODS}


NATIVE = ("account", "clock_pairs", "counter_cells", "critical_path", "delay_functions", "device_account", "io")
NATIVE += ("network", "profile", "samples", "transfers", "wait_states")


@pytest.mark.parametrize("name", NATIVE)
def test_native_tables_have_the_declared_columns_with_numbers(result, name):
    native = result.tables.analysis
    found = native.clock_table(name) if name in CLOCKS else getattr(native, name)()
    assert sorted(pa.table(found).column_names) == sorted(empty_numbered(name).column_names)


@pytest.mark.parametrize(("method", "name"), METHODS)
def test_the_columns_of_tables_are_part_of_the_documentation(method, name):
    text = " ".join(inspect.getdoc(getattr(whywait.Result, method)).split())
    assert f"docs/tables.md#{name}" in text
    assert all(f"``{column.name}``" in text for column in tables()[name].columns)


def test_columns_are_explained_and_the_dataset_is_listed():
    listed = (ROOT / "docs/dataset.md").read_text(encoding="utf-8")
    for name, table in tables().items():
        assert table.columns
        assert all(column.meaning for column in table.columns), name
        assert table.schema.names == list(declared(table))
        assert (f"[`{name}`]({SITE}tables.html#{name})" in listed) == table.is_stored
        assert isinstance(table.schema, pa.Schema)


def test_the_tree_has_the_metrics_of_queues():
    queues = set(_native.queue_metrics())
    assert queues
    assert queues <= {metric.name for metric in TREE}


def test_what_balance_removes_is_said_once():
    flagged = {metric.name for metric in TREE if metric.is_balanced_away}
    assert "omp_idle_threads" in flagged
    assert not flagged & patterns().keys()
