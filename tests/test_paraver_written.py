"""Traces that are written for Paraver have the form that it reads, whatever was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import whywait

from tests.paraver_grammar import check
from tests.paraver_traces import Trace

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


def test_counters_are_written_as_increases(tmp_path):
    (anchor,) = (DATA / "profile").rglob("traces.otf2")
    original = whywait.analyze(anchor)
    original.write_paraver(tmp_path / "run.prv")
    again = whywait.analyze(tmp_path / "run.prv")
    assert original.metrics["ru_nvcsw"].total > 0
    assert again.metrics["ru_nvcsw"].total == original.metrics["ru_nvcsw"].total
    assert again.metrics["ru_utime, 10^-6 s"].total == pytest.approx(original.metrics["ru_utime"].total * 1e6)
    # Levels and real numbers are not.
    assert "residual" not in (tmp_path / "run.pcf").read_text()


def test_counters_of_papi_keep_their_types(tmp_path):
    run = Trace(10000, (((1, 1),) * 2,), ((1, 1, (1, 2)),))
    run.collective("Barrier", {(1, 1, 1): (1000, 2000), (1, 2, 1): (1500, 2000)}, 1)
    for time, value in ((500, 1), (1000, 100), (3000, 200)):
        run.events((1, 1, 1), time, (42000050, value), (42009999, 2 * value))
    path = run.write(tmp_path)
    (tmp_path / "trace.pcf").write_text("EVENT_TYPE\n7 42000050 PAPI_TOT_INS [Instr completed]\n7 42009999 OWN\n")
    whywait.analyze(path).write_paraver(tmp_path / "again.prv")
    assert check(tmp_path / "again.prv")
    lines = (tmp_path / "again.prv").read_text().splitlines()
    counted = [line.split(":", 5)[5] for line in lines if ":42000050:" in line]
    assert [line.split(":42000050:")[1].split(":")[0] for line in counted] == ["1", "100", "200"]
