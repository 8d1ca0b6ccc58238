"""What the core declares once is what everything else says."""

from pathlib import Path

import pytest
from whywait import _native
from whywait.model.metrics import metric_tree
from whywait.model.schema import cost_classes, patterns
from whywait.report.html.words import LOOK_AT, WAITS_FOR

ROOT = Path(__file__).parents[1]
TREE = metric_tree()


def test_the_metric_tree_has_what_the_core_stores():
    computed = set(_native.stored_metrics())
    # These are made of others in Python.
    made = {metric.name for metric in TREE if not metric.derived} - computed
    assert computed <= {metric.name for metric in TREE}
    assert not {name for name in made if TREE[name].kind in {"wait", "completion"}}


def test_wait_states_of_the_tree_are_patterns():
    waits = {metric.name for metric in TREE if metric.kind in {"wait", "completion"}}
    bounds = {name for name in patterns() if name.endswith("_last_call")}
    assert patterns().keys() - bounds == waits
    for pattern in patterns().values():
        if pattern.kind not in bounds:
            whole = TREE.wait_state(pattern.kind)
            assert pattern.is_completion == (TREE[pattern.kind].kind == "completion")
            assert pattern.part_of == (None if whole.name == pattern.kind else whole.name)
            (paradigm,) = {above.paradigm for above in TREE.path(pattern.kind)} - {None}
            assert paradigm == pattern.paradigm.lower()


@pytest.mark.parametrize("pattern", patterns().values(), ids=lambda pattern: pattern.kind)
def test_each_pattern_has_a_document_with_an_example(pattern):
    text = (ROOT / "tests/patterns" / f"{pattern.document}.md").read_text(encoding="utf-8")
    # A document of calls that synchronize also holds for calls that communicate, and that of locks for mutexes.
    names = {pattern.kind, pattern.kind.replace("_comm_", "_sync_")}
    assert pattern.paradigm == "PTHREAD" or any(name in text for name in names), pattern
    assert f"{pattern.document}.md" in (ROOT / "docs/patterns.md").read_text(encoding="utf-8")


def test_each_wait_state_that_counts_has_words():
    counting = {pattern.kind for pattern in patterns().values() if pattern.part_of is None}
    assert counting <= WAITS_FOR.keys()
    assert counting <= LOOK_AT.keys()
    assert {name for name in WAITS_FOR if name.startswith(("mpi", "omp", "pthread"))} <= counting


def test_costs_are_booked_on_metrics_of_the_tree():
    charged = {pattern.cost_class for pattern in patterns().values()} - {None, "library"}
    assert charged | {"ompidle"} == cost_classes().keys()
    for cost_class in cost_classes().values():
        booked = (cost_class.short_term, cost_class.long_term, cost_class.indirect, cost_class.propagating)
        assert all(name in TREE for name in booked if name is not None)
