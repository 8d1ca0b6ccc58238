"""How long waits are: against the definitions, against Scalasca's statistics files, and as they are written."""

import json
import re
from pathlib import Path

import numpy as np
import pycubexr
import pytest
import whywait
from whywait import cli
from whywait.analysis.focus import focused
from whywait.analysis.statistics import statistics

from tests.results import UNRECORDED, cases

DATA = Path(__file__).parent / "data"
HEAD = "PatternName Count Mean Median Minimum Maximum Sum Variance Quartil25 Quartil75".split()
WORST = re.compile(r"- cnode (\d+) enter: (\S+) exit: (\S+) duration: (\S+) rank: (\d+)")


def read(path):
    """Return the lines of a statistics file: by pattern the values, and the worst instances."""
    head, *lines = path.read_text("ascii").splitlines()
    assert head.split() == HEAD
    patterns: dict[str, tuple[dict[str, float], list]] = {}
    worst: list = []
    for line in filter(None, lines):
        if match := WORST.fullmatch(line):
            callpath, enter, leave, duration, rank = match.groups()
            worst.append((int(callpath), float(enter), float(leave), float(duration), int(rank)))
        else:
            name, *values = line.split()
            worst = []
            patterns[name] = (dict(zip(HEAD[1:], map(float, values), strict=False)), worst)
    return patterns


@pytest.fixture(scope="module")
def result():
    return whywait.analyze(DATA / "stencil")


def test_statistics_follow_from_the_waits(result):
    waits = result.wait_states()
    by_kind = {}
    for kind, waiting in zip(waits["kind"].to_pylist(), waits["waiting"].to_pylist(), strict=True):
        by_kind.setdefault(kind, []).append(waiting)
    rows = {row.pop("metric"): row for row in result.statistics().to_pylist()}
    assert by_kind.keys() <= rows.keys()
    # Messages in wrong order have no rows of their own here.
    assert rows.keys() - by_kind.keys() == {"mpi_latesender_wo"}
    assert rows["mpi_latesender_wo"] == rows["mpi_lswo_different"]
    for kind, values in by_kind.items():
        values.sort()
        row, last = rows[kind], len(values) - 1
        assert row["count"] == len(values)
        assert row["minimum"] == values[0]
        assert row["maximum"] == values[-1]
        assert row["sum"] == pytest.approx(sum(values), rel=1e-12)
        assert row["mean"] == pytest.approx(sum(values) / len(values), rel=1e-12)
        squares = sum((value - row["mean"]) ** 2 for value in values)
        assert row["variance"] == pytest.approx(squares / len(values), rel=1e-9, abs=1e-30)
        for name, at in (("quartile25", 0.25 * last), ("median", 0.5 * last), ("quartile75", 0.75 * last)):
            below = values[int(at)]
            above = values[min(int(at) + 1, last)]
            assert row[name] == pytest.approx(below + (above - below) * (at - int(at)), rel=1e-12)


def test_the_statistics_file_equals_the_table(result, tmp_path):
    result.write(tmp_path)
    patterns = read(tmp_path / "report.stat")
    rows = result.statistics().to_pylist()
    assert list(patterns) == [row["metric"] for row in rows]
    assert min(row["count"] for row in rows) < 5 <= max(row["count"] for row in rows)
    waits = result.tables.wait_states.to_pylist()
    for row in rows:
        values, worst = patterns[row["metric"]]
        named = "Count Mean Median Minimum Maximum Sum".split()
        expected = dict(zip(named, (row[n] for n in "count mean median minimum maximum sum".split()), strict=True))
        if row["count"] >= 2:
            expected["Variance"] = row["variance"]
        if row["count"] >= 5:
            expected |= {"Quartil25": row["quartile25"], "Quartil75": row["quartile75"]}
        assert values == pytest.approx(expected, abs=5.1e-8)
        # The longest wait of each call path, five of them, the longest first.
        longest = {}
        for wait in waits:
            if row["metric"] in (wait["kind"], {"mpi_lswo_different": "mpi_latesender_wo"}.get(wait["kind"])):
                longest[wait["callpath"]] = max(longest.get(wait["callpath"], 0), wait["waiting"])
        assert [one[3] for one in worst] == pytest.approx(sorted(longest.values(), reverse=True)[:5], abs=1e-10)
        for callpath, enter, leave, duration, rank in worst:
            assert duration == pytest.approx(longest[callpath], abs=1e-10)
            assert any(
                wait["callpath"] == callpath
                and result.places.rank[wait["location"]] == rank
                and np.allclose((wait["enter"], wait["leave"], wait["waiting"]), (enter, leave, duration), 0, 1e-10)
                for wait in waits
            )


def test_the_report_names_the_file(result, tmp_path):
    result.write(tmp_path)
    assert b'<attr key="statisticfile" value="report.stat"/>' in (tmp_path / "report.cubex").read_bytes()
    with pycubexr.CubexParser(str(tmp_path / "report.cubex")) as cube:
        assert cube.get_metrics()
    # A report by itself has no such file beside it.
    result.write_cube(tmp_path / "alone.cubex")
    assert b"statisticfile" not in (tmp_path / "alone.cubex").read_bytes()


CASES = [case for case in cases() if (case / "scout.stat").exists()]


@pytest.mark.skipif(not CASES, reason=UNRECORDED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_statistics_equal_scalascas(case, tmp_path):
    """Quartiles are estimates there, and the worst of a collective operation are sums over ranks."""
    whywait.analyze(case / "archive" / "traces.otf2", clocks="measured").write(tmp_path)
    ours = read(tmp_path / "report.stat")
    compared = 0
    for name, (expected, worst) in read(case / "scout.stat").items():
        values, our_worst = ours[name]
        assert values["Count"] == expected["Count"], name
        for key in ("Minimum", "Maximum", "Sum", "Variance"):
            assert values.get(key) == pytest.approx(expected.get(key), abs=1.1e-9), (name, key)
        assert values["Mean"] == pytest.approx(expected["Mean"], abs=1.1e-7), name
        if name in ("mpi_latesender", "mpi_latereceiver", "omp_ibarrier_wait", "omp_ebarrier_wait"):
            assert [(duration, enter, rank) for _, enter, _, duration, rank in our_worst] == [
                (pytest.approx(duration, abs=1.1e-9), pytest.approx(enter, abs=1.1e-9), rank)
                for _, enter, _, duration, rank in worst
            ], name
            compared += 1
    assert compared or not {"mpi_latesender", "mpi_latereceiver"} & ours.keys()


@pytest.fixture(scope="module")
def written(tmp_path_factory, result):
    directory = tmp_path_factory.mktemp("written")
    result.write(directory)
    return str(directory)


def test_waits_statistics_draws_a_box_per_wait_state(written, result, capsys):
    assert cli.main(["waits", written, "--statistics"]) == 0
    focus, _, head, *lines, scale = capsys.readouterr().out.replace("CPU\ntime", "CPU time").splitlines()
    assert focus.startswith("Focus: ")
    assert head.split() == ["wait", "state", "waits", "waiting"]
    assert scale.endswith("logarithmic scale")
    assert all(len(line) <= 80 for line in (head, *lines, scale))
    whole = [m.name for m in result.profile.metrics if result.profile.metrics.wait_state(m.name) is m]
    inside = statistics(result.profile.metrics, focused(result).tables.wait_states)
    rows = [row for row in inside.to_pylist() if row["metric"] in whole]
    assert len(lines) == 3 * len(rows)
    for row, name, box, text in zip(rows, lines[::3], lines[1::3], lines[2::3], strict=True):
        assert name.startswith(result.profile.metrics[row["metric"]].display_name)
        assert f"{row['count']:,}" in name
        drawn = box.strip()
        # What overlaps what: whiskers, a box, one mark.
        assert re.fullmatch("─*█*│█*─*", drawn)
        assert ("half of them" in text) == (row["count"] > 1)
    boxes = lines[1::3]
    first = min(range(len(rows)), key=lambda i: rows[i]["minimum"])
    last = max(range(len(rows)), key=lambda i: rows[i]["maximum"])
    assert boxes[first].index(boxes[first].strip()) == 3
    assert len(boxes[last]) == 80


def test_waits_statistics_as_json(written, result, capsys):
    assert cli.main(["waits", written, "--statistics", "--metric", "mpi_latesender", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = told["statistics"]
    assert row == next(row for row in result.statistics().to_pylist() if row["metric"] == "mpi_latesender")
    assert told["instances"] == row["count"]


def test_statistics_without_waits_say_so(written, capsys):
    assert cli.main(["waits", written, "--statistics", "--metric", "mpi_earlyscan"]) == 0
    assert capsys.readouterr().out.endswith("\n\nNo wait states.\n")
