"""Kept truths are those of the trace and the oracle as they are now."""

from __future__ import annotations

import shutil

import pytest

from tests import truths
from tests.naive_causes import Analysis, read, table
from tests.tracedsl import trace_from_text

TRACE = """
ranks 2
0: work [1, {late}]
0: MPI_Send(1) [{late}, 8]
1: MPI_Recv(0) [2, 8]
"""


@pytest.fixture
def analyses(tmp_path, monkeypatch):
    """Keep truths in a directory of this test; return what the oracle is asked."""
    asked = []
    monkeypatch.setattr(truths.Kept, "directory", tmp_path)
    monkeypatch.setattr(truths, "Analysis", lambda *given: asked.append(given) or Analysis(*given))
    return asked


def written(directory, late):
    return trace_from_text(TRACE.format(late=late), directory)


def test_truths_are_those_of_the_oracle_and_kept(analyses, tmp_path):
    anchor = written(tmp_path / "trace", 5)
    first, again = (truths.costs(anchor, "thesis") for _ in range(2))
    assert len(analyses) == 1
    assert first == again == (table(Analysis(read(anchor), "thesis").cells()), "")
    assert first.cells["delay_latesender"]


def test_truths_follow_the_trace_wherever_it_is(analyses, tmp_path):
    """The name of a trace does not count, its bytes do."""
    anchor = written(tmp_path / "trace", 5)
    early = truths.costs(anchor, "thesis")
    shutil.copytree(anchor.parent, tmp_path / "copy")
    assert truths.costs(tmp_path / "copy" / anchor.name, "thesis") == early
    assert len(analyses) == 1
    shutil.rmtree(anchor.parent)
    assert truths.costs(written(anchor.parent, 7), "thesis").cells != early.cells
    assert len(analyses) == 2


def test_truths_follow_model_and_oracle(analyses, tmp_path, monkeypatch):
    anchor = written(tmp_path / "trace", 5)
    for model, limit in (("thesis", None), ("scalasca", None), ("scalasca", 1)):
        truths.costs(anchor, model, limit)
    assert len(analyses) == 3
    monkeypatch.setattr(truths, "oracle", lambda: b"another")
    truths.costs(anchor, "thesis", None)
    assert len(analyses) == 4
