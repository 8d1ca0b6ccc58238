"""A result in other libraries: pictures of Matplotlib, and graph frames of Hatchet."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import whywait

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


def test_a_plot_has_the_account_as_bars(stencil):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = stencil.plot()
    account = stencil.account()
    lengths = {bar.get_label(): bar.patches[0].get_width() for bar in ax.containers}
    assert sum(lengths.values()) == pytest.approx(sum(account["time"].to_pylist()))
    assert lengths["Late Sender"] == pytest.approx(0.487, abs=5e-4)
    assert [label.get_text() for label in ax.get_yticklabels()][-1] == "Computation"
    assert stencil.plot(ax, focus="all") is ax


def test_a_graph_frame_is_made_of_the_same_as_for_hatchet(stencil, monkeypatch):
    """Whether Hatchet reads that, tests/test_hatchet.py asks."""
    frames = types.SimpleNamespace(from_literal=lambda literal: literal)
    monkeypatch.setitem(sys.modules, "hatchet", types.SimpleNamespace(GraphFrame=frames))
    assert stencil.to_graphframe(["time"], rank=1) == stencil.to_hatchet(["time"], rank=1)


@pytest.mark.parametrize(("method", "library"), [("plot", "matplotlib"), ("to_graphframe", "hatchet")])
def test_a_library_that_is_missing_is_named(method, library, stencil, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(whywait.UsageError, match=f"pip install {library}"):
        getattr(stencil, method)()
