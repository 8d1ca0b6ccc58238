"""What findings say is so: a second implementation finds the same figures, names, ranks and counts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import whywait
from hypothesis import given, note, settings
from whywait.analysis.findings import rules

from tests import naive_functions  # noqa: F401  registers its checks
from tests.naive_findings import CHECKS, agrees, differences
from tests.naive_raw import Raw
from tests.programs import programs
from tests.results import SHARED
from tests.team_programs import team_programs
from tests.test_finding_rules import examples, repeated
from tests.test_sampling import steps
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
# Larger ones take the oracle too long.
_BYTES = 400_000


def small(anchors):
    return [
        anchor
        for anchor in sorted(anchors)
        if not anchor.is_dir() and sum(file.stat().st_size for file in anchor.parent.rglob("*.evt")) < _BYTES
    ]


SHIPPED = small(DATA.rglob("*.otf2"))
RECORDED = small([*SHARED.glob("cases/*/archive/*.otf2"), *SHARED.glob("real/*/archive/*.otf2")])


def check(anchor, directory) -> None:
    # The oracle reads the times that were measured.
    result = whywait.analyze(anchor, clocks="measured")
    result.write(Path(directory) / "results")
    assert list(differences(Raw(anchor, Path(directory) / "results"))) == []


@pytest.mark.parametrize("anchor", SHIPPED, ids=lambda anchor: str(anchor.parent.relative_to(DATA)))
def test_shipped_traces(anchor, tmp_path):
    check(anchor, tmp_path)


@pytest.mark.skipif(not RECORDED, reason=f"no recorded cases: {SHARED} is not there")
@pytest.mark.parametrize("anchor", RECORDED, ids=lambda anchor: anchor.parents[1].name)
def test_recorded_traces(anchor, tmp_path):
    check(anchor, tmp_path)


@pytest.mark.parametrize(("trace", "expected"), list(examples()))
def test_the_examples_of_rules(trace, expected, tmp_path):
    del expected
    check(trace_from_text(repeated(trace), tmp_path / "trace"), tmp_path)


@pytest.mark.parametrize(
    ("late", "header", "use", "names"),
    [
        ("a b b b", "contexts", "", {"sampled_function", "function_cost", "function_error", "functions_samples"}),
        ("a b c d", "contexts", "", {"sampled_function", "function_part"}),
        ("a b", "contexts perf 0.5", "stime=0.9, minflt=4096", {"more_system", "more_faults"}),
        ("a b", "contexts perf 0.5", "nivcsw=7", {"more_preemptions"}),
        ("a b", "contexts perf 0.5", "nvcsw=7", {"more_waits"}),
    ],
)
def test_sampled_programs(late, header, use, names, tmp_path):
    lines = steps(late=late, header=header)
    if use:
        lines = lines.replace("1: sample main/step/b ", f"1: sample main/step/b({use}) ")
    anchor = trace_from_text(lines, tmp_path)
    whywait.analyze(anchor).write(tmp_path / "results")
    # The official reader has no call paths of calling contexts, so only what is said of functions is checked.
    raw, figures = Raw(anchor, tmp_path / "results"), rules()["functions"].figures
    said = [(row, value) for row in raw.findings for value in row.values if value["name"] in figures]
    assert {value["name"] for _, value in said} >= names
    for row, value in said:
        expected = CHECKS[row.rule, value["name"]](raw, row)
        assert agrees(expected, value["value"]), (value["name"], value["value"], expected)


@settings(max_examples=15)
@given(trace=programs())
def test_random_programs(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        check(trace_from_text(trace, Path(directory) / "trace"), directory)


@settings(max_examples=10)
@given(trace=team_programs())
def test_random_teams(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        check(trace_from_text(trace, Path(directory) / "trace"), directory)


def test_every_figure_of_every_rule_is_checked():
    for name, rule in rules().items():
        for figure in rule.figures:
            assert any(key[1] == figure for key in CHECKS), (name, figure)
            if rule.finds:
                assert (name, figure) in CHECKS, (name, figure)
