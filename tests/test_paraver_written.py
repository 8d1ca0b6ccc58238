"""Traces that are written for Paraver have the form that it reads, whatever was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import whywait

from tests.paraver_grammar import check

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    "name", ["p2p", "collectives", "stencil", "intercomm", "mixed", "omp_nested", "rma_fence", "workers", "profile"]
)
def test_a_written_trace_has_the_form_of_the_format(name, tmp_path):
    (anchor,) = (DATA / name).rglob("traces.otf2")
    result = whywait.analyze(anchor)
    written = result.write_paraver(tmp_path / "run.prv.gz")
    counts = check(tmp_path / "run.prv.gz")
    assert sum(counts.values()) == written["records"]
    assert counts.get("3", 0) == written["messages"]


def test_a_part_has_the_form_too(tmp_path):
    result = whywait.analyze(DATA / "stencil" / "traces.otf2")
    length = result.run.info()["length"]
    parts = [{"ranks": [1, 3]}, {"window": (length / 3, length / 2)}, {"min_duration": 1e-4}]
    for number, options in enumerate(parts):
        result.write_paraver(tmp_path / f"part{number}.prv", **options)
        assert check(tmp_path / f"part{number}.prv", is_part=True)
