"""Paraver traces: waits are those of the programs, and what is odd or damaged is said."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import whywait
from whywait.cli import main

from tests.paraver_grammar import check
from tests.results import SHARED, UNRECORDED

DATA = Path(__file__).parent / "data"
CASES = SHARED / "paraver"
shared = pytest.mark.skipif(not CASES.is_dir(), reason=UNRECORDED)

HEADER = "#Paraver (01/01/2026 at 12:00):10000_ns:1(2):1:2(1:1,1:1),1"
# A late sender of 2000 ns, and a barrier in which the sender waits for 1000 ns.
BODY = """c:1:1:2:1:2
1:1:1:1:1:0:1000:1
1:2:1:2:1:0:3000:1
1:1:1:1:1:1000:3500:3
2:1:1:1:1:1000:50000001:2
1:2:1:2:1:3000:3200:4
2:2:1:2:1:3000:50000001:1
3:2:1:2:1:3000:3200:1:1:1:1:1000:3500:8:7
1:2:1:2:1:3200:5000:1
2:2:1:2:1:3200:50000001:0
1:1:1:1:1:3500:6000:1
2:1:1:1:1:3500:50000001:0
1:2:1:2:1:5000:6100:13
2:2:1:2:1:5000:50000002:8:50100001:0:50100002:0:50100004:1
1:1:1:1:1:6000:6100:13
2:1:1:1:1:6000:50000002:8:50100001:0:50100002:0:50100004:1
1:1:1:1:1:6100:10000:1
1:2:1:2:1:6100:10000:1
2:1:1:1:1:6100:50000002:0
2:2:1:2:1:6100:50000002:0
"""


def waits(path: Path | str, **options: Any) -> dict[str, dict[str, float]]:
    """Return the waiting of each kind by rank, in ticks."""
    result = whywait.analyze(whywait.open(path, **options))
    resolution = result.run.info()["timer_resolution"]
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for wait in result.wait_states().to_pylist():
        found[wait["kind"]][str(wait["rank"])] += wait["waiting"] * resolution
    return found


def agree(found: dict[str, dict[str, float]], right: dict[str, Any]) -> None:
    for kind, ranks in right.items():
        if kind.startswith("mpi_"):
            for rank, ticks in ranks.items():
                assert found[kind][rank] == pytest.approx(ticks, abs=1e-3), (kind, rank)


def write(directory: Path, text: str, name: str = "run.prv") -> Path:
    (directory / name).write_text(text)
    return directory / name


def oddities(path: Path) -> list[str]:
    return [text for _, _, text in whywait.open(path).oddities]


@shared
@pytest.mark.parametrize("case", ["p2p", "collectives", "chopped"])
def test_waits_are_those_of_the_cases(case):
    right = json.loads((CASES / case / "right.json").read_text())
    agree(waits(CASES / case / "trace.prv"), right)
    if "oddities" in right:
        said = [text.partition(", ")[0] for text in oddities(CASES / case / "trace.prv")]
        assert sorted(said) == sorted(f"{name}: {count}" for name, count in right["oddities"].items())
    # What is odd there is no damage.
    assert main(["info", "--check", str(CASES / case / "trace.prv")]) == 0


@shared
def test_call_paths_are_those_of_callers_with_the_line_of_the_call():
    result = whywait.analyze(CASES / "p2p" / "trace.prv")
    rows = [wait for wait in result.wait_states().to_pylist() if wait["path"].endswith("solve/exchange/MPI_Recv")]
    assert [round(row["waiting"] * 1e9) for row in rows] == [2000]
    regions = result.run.definitions["Region"].to_pylist()
    assert ("MPI_Recv", 12) in {(region["name"], region["begin_line_number"]) for region in regions}


@shared
def test_completion_of_nonblocking_sends_is_inferred_and_says_so():
    path = CASES / "p2p" / "trace.prv"
    result = whywait.analyze(path)
    inferred = [wait for wait in result.wait_states().to_pylist() if wait["inferred"]]
    assert [(wait["kind"], wait["rank"], round(wait["waiting"] * 1e9)) for wait in inferred] == [
        ("mpi_latereceiver", 2, 5000)
    ]
    note = next(note for note in result.warnings if note["kind"] == "inferred_completion")
    assert note["count"] == 1
    assert "; 1 case, of 5.00 us, rests on this assumption" in note["text"]
    assert dict(waits(path, inference=False)["mpi_latereceiver"]) == pytest.approx({"0": 4000})
    assert not whywait.analyze(whywait.open(path, inference=False)).warnings


@shared
def test_processes_of_two_applications_do_not_share_a_world():
    right = json.loads((CASES / "two_applications" / "right.json").read_text())
    path = CASES / "two_applications" / "trace.prv.gz"
    names = right["processes"]
    found = waits(path)
    for kind in ("mpi_latesender", "mpi_barrier_wait"):
        for name, ticks in right[kind].items():
            assert found[kind][str(names.index(name))] == pytest.approx(ticks, abs=1e-3)
    assert whywait.open(path).definitions["LocationGroup"]["name"].to_pylist() == names
    alone = waits(path, application=2)
    assert {rank: round(ticks) for rank, ticks in alone["mpi_barrier_wait"].items()} == {"0": 2000, "1": 1000}
    assert "mpi_latesender" not in alone
    with pytest.raises(whywait.UsageError, match="no application 3: the trace has 2"):
        whywait.open(path, application=3)


@shared
def test_waits_of_threads_for_barriers_and_locks():
    right = json.loads((CASES / "openmp" / "right.json").read_text())
    result = whywait.analyze(CASES / "openmp" / "trace.prv")
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for wait in result.wait_states().to_pylist():
        found[wait["kind"]][f"{wait['rank']}.{wait['thread']}"] += wait["waiting"] * 1e9
    for name, kind in (
        ("omp_ebarrier_wait", "omp_ebarrier_wait"),
        ("lock_wait", "omp_lock_contention_critical"),
    ):
        for thread, ticks in right[name].items():
            if thread != "rule":
                assert found[kind][thread] == pytest.approx(ticks, abs=1e-3), (name, thread)
    assert result.metrics["comp"].total * 1e9 == pytest.approx(sum(right["running_ns"].values()))
    assert not oddities(CASES / "openmp" / "trace.prv")


@shared
def test_variants_are_the_same_run_or_say_what_is_wrong(capsys, tmp_path):
    known = json.loads((CASES / "variants" / "right.json").read_text())
    for name, say in known["say"].items():
        path = CASES / "variants" / f"{name}.prv"
        if say.get("same"):
            scale = say.get("scale", 1)
            assert scale in (1, 1000)
            agree(waits(path), known["p2p"])
            assert whywait.open(path).info()["length"] == pytest.approx(60000 * scale * 1e-9)
        if "oddity" in say:
            assert any(text.startswith(say["oddity"]) for text in oddities(path)), name
    assert main(["info", str(CASES / "variants" / "empty.prv")]) == 3
    assert "not a Paraver trace" in capsys.readouterr().err
    assert main(["analyze", str(CASES / "variants" / "only_header.prv"), "-o", str(tmp_path / "o")]) == 0


@shared
def test_a_cut_file_names_the_line_and_is_read_up_to_there(capsys, tmp_path):
    path = CASES / "variants" / "truncated.prv"
    lines = path.read_text().count("\n")
    assert main(["analyze", str(path), "-o", str(tmp_path / "o")]) == 3
    said = capsys.readouterr().err
    assert f"line {lines + 1} is cut off: {lines - 2} whole records before it" in said
    assert f"head -n {lines} {path}" in said
    assert main(["analyze", str(path), "--truncated", "-o", str(tmp_path / "o")]) == 0
    assert "cut off in line" in "".join(text for _, _, text in whywait.open(path, truncated=True).oddities)


@shared
@pytest.mark.parametrize(
    ("name", "published", "measured"),
    [
        (
            "epoch_2proc",
            (99.378252, 99.760930, 99.616405),
            {
                "mpi_latesender": 72870765,
                "mpi_latebroadcast": 8192278,
                "mpi_barrier_wait": 5588100,
                "mpi_wait_nxn": 3845143,
            },
        ),
        (
            "epoch_4proc",
            (97.349953, 98.687584, 98.644580),
            {
                "mpi_latesender": 222627961,
                "mpi_wait_nxn": 242011774,
                "mpi_latereceiver": 539898,
                "mpi_barrier_wait": 18169040,
            },
        ),
    ],
)
def test_real_traces_have_their_published_efficiencies(name, published, measured, capsys):
    path = CASES / "real" / f"{name}.prv.gz"
    found = waits(path)
    assert {kind: round(sum(found[kind].values())) for kind in measured} == measured
    assert not [text for text in oddities(path) if "message" in text]
    if name == "epoch_2proc":
        # Published: 87,640,358,419 instructions in useful states.
        rows = whywait.analyze(path, causes=False).severities("PAPI_TOT_INS").to_pylist()
        own = sum(row["value"] for row in rows if not row["callpath"][-1].startswith(("MPI_", "state: ", "flush")))
        assert own == pytest.approx(87_640_358_419, rel=1e-3)
    assert main(["efficiency", str(path), "--focus", "all", "--json"]) == 0
    text = capsys.readouterr().out
    rows = json.loads(text)["methods"]["cube"][0]["efficiencies"]
    names = ("parallel_efficiency", "load_balance", "communication_efficiency")
    assert [round(100 * rows[one]["value"], 6) for one in names] == list(published)


@pytest.mark.parametrize("name", ["p2p", "collectives", "stencil", "flood", "sor_p2p", "pairs/split/before", "profile"])
def test_an_exported_trace_has_the_same_waits(name, tmp_path):
    original = whywait.analyze(DATA / name / "traces.otf2", clocks="measured")
    written = original.write_paraver(tmp_path / "run.prv")
    again = whywait.analyze(tmp_path / "run.prv", clocks="measured")
    assert written["records"] == sum(
        not line.startswith(("#", "c")) for line in (tmp_path / "run.prv").read_text().splitlines()
    )

    def sums(result: whywait.Result) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for wait in result.wait_states().to_pylist():
            # Windows are not in such traces, nor are the begin and end of an operation within its call.
            if "rma" not in wait["kind"] and not wait["kind"].endswith("_completion"):
                found[wait["kind"]] += wait["waiting"]
        return found

    assert sums(again) == pytest.approx(sums(original), abs=1e-7)
    assert again.facts["clock_violations_p2p"] == original.facts["clock_violations_p2p"]
    for metric in ("comp", "mpi"):
        assert again.metrics[metric].total == pytest.approx(original.metrics[metric].total, abs=1e-7)
    paths = {wait["path"].partition("/")[0] for wait in original.wait_states().to_pylist()}
    assert {wait["path"].partition("/")[0] for wait in again.wait_states().to_pylist()} <= paths | {"main"}


def test_an_exported_trace_of_threads_computes_as_long(tmp_path):
    original = whywait.analyze(DATA / "workers" / "traces.otf2")
    original.write_paraver(tmp_path / "run.prv")
    again = whywait.analyze(tmp_path / "run.prv")
    assert again.metrics["comp"].total == pytest.approx(original.metrics["comp"].total, rel=0.01)
    contention = "omp_lock_contention_critical"
    assert original.metrics[contention].total > 0.1
    assert again.metrics[contention].total == pytest.approx(original.metrics[contention].total, abs=1e-7)
    assert again.metrics["mpi"].total == pytest.approx(original.metrics["mpi"].total, abs=1e-7)


@pytest.mark.skipif(not (SHARED / "cases").is_dir(), reason=UNRECORDED)
def test_an_exported_trace_of_posix_threads_has_the_same_waits(tmp_path):
    (anchor,) = (SHARED / "cases" / "pthread_mutex").rglob("traces.otf2")
    original = whywait.analyze(anchor)
    original.write_paraver(tmp_path / "run.prv")
    check(tmp_path / "run.prv")
    again = whywait.analyze(tmp_path / "run.prv")
    assert original.metrics["pthread_join_wait"].total > 0.1
    for name, error in (("pthread_join_wait", 1e-7), ("pthread_lock_contention_mutex_lock", 1e-4), ("comp", 1e-3)):
        assert again.metrics[name].total == pytest.approx(original.metrics[name].total, abs=error), name
    assert again.metrics["critical_path"].total == pytest.approx(original.metrics["critical_path"].total, abs=1e-6)
    joins = [wait for wait in again.wait_states().to_pylist() if wait["kind"] == "pthread_join_wait"]
    assert [(wait["thread"], wait["cause_thread"]) for wait in joins] == [(0, 1), (0, 2), (0, 3)]
    assert {wait["callpath"][-1] for wait in joins} == {"pthread_join"}


def test_an_export_says_who_is_waited_for(tmp_path):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    out = tmp_path / "out" / "waits.prv.gz"
    assert main(["export", "paraver", str(path), "-o", str(out)]) == 0
    assert sorted(file.name for file in out.parent.iterdir()) == ["waits.cfg", "waits.pcf", "waits.prv.gz", "waits.row"]
    lines = gzip.decompress(out.read_bytes()).decode().splitlines()
    # The receiver waits 2000 ns for task 2.
    late = next(line for line in lines if line.startswith("2:1:1:1:1:1000:97000001"))
    pairs = late.split(":")[6:]
    events = dict(zip(pairs[::2], pairs[1::2], strict=True))
    assert (events["97000002"], events["97000004"]) == ("2", "2000")
    labels = (out.parent / "waits.pcf").read_text()
    assert f"\n{events['97000001']}   Late Sender\n" in labels
    assert f"\n{events['97000003']}   main/MPI_Send\n" in labels
    assert "2:1:1:1:1:3000:97000001:0:97000002:0:97000003:0:97000007:0" in lines
    # The send delays the receiver from its begin to its end, and the path leads there.
    assert "2:2:1:2:1:3000:97000006:2000" in lines
    assert any(":97000005:1" in line for line in lines)
    # States are those of Extrae, without waits; messages have their times.
    assert {line.split(":")[7] for line in lines if line.startswith("1:")} == {"1", "3", "4", "13"}
    assert "3:2:1:2:1:3000:3200:1:1:1:1:1000:3500:8:7" in lines
    views = (out.parent / "waits.cfg").read_text()
    assert views.count("NEW DISPLAYING WINDOW") == 6
    assert views.count("NEW ANALYZER2D") == 2


def test_an_export_has_the_findings_where_they_are(tmp_path):
    result = whywait.analyze(DATA / "stencil" / "traces.otf2")
    shown = result.findings().shown
    result.write_paraver(tmp_path / "run.prv")
    labels = (tmp_path / "run.pcf").read_text()
    for number, finding in enumerate(shown, 1):
        assert f"\n{number}   {finding.sentence}\n" in labels
    times: dict[tuple[int, int], int] = defaultdict(int)
    begun: dict[int, tuple[int, int]] = {}
    for line in (tmp_path / "run.prv").read_text().splitlines():
        if not line.startswith("2:") or ":97000008:" not in line:
            continue
        fields = [int(field) for field in line.split(":")]
        task, time = fields[3], fields[5]
        value = dict(zip(fields[6::2], fields[7::2], strict=True))[97000008]
        if task in begun:
            number, begin = begun.pop(task)
            times[task - 1, number] += time - begin
        if value:
            begun[task] = (value, time)
    assert not begun
    first = shown[0]
    assert first.ranks
    assert {rank for rank, number in times if number == 1} == set(first.ranks)
    rows = result.severities("time").to_pylist()
    for rank in first.ranks:
        own = sum(row["value"] for row in rows if row["rank"] == rank and row["callpath_id"] in first.causes)
        assert times[rank, 1] * 1e-9 == pytest.approx(own, abs=1e-6)


def test_a_part_of_a_run_is_exported(tmp_path, capsys):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    out = tmp_path / "part.prv"
    assert main(["export", "paraver", str(path), "-o", str(out), "--ranks", "1", "--no-causes"]) == 0
    lines = out.read_text().splitlines()
    assert {line.split(":")[3] for line in lines if line[0] in "12"} == {"2"}
    assert not [line for line in lines if line.startswith("3:")]
    assert main(["export", "paraver", str(path), "-o", str(tmp_path / "x.txt")]) == 2
    assert "ends with .prv or .prv.gz" in capsys.readouterr().err


def test_waits_of_a_written_trace(tmp_path):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    right = {"mpi_latesender": {"0": 2000}, "mpi_barrier_wait": {"1": 1000}}
    agree(waits(path), right)
    (tmp_path / "gz").mkdir()
    packed = tmp_path / "gz" / "run.prv.gz"
    packed.write_bytes(gzip.compress(f"{HEADER}\n{BODY}".encode()))
    for same in (packed, packed.parent):
        agree(waits(same), right)
    (tmp_path / "run.pcf").write_text("EVENT_TYPE\n9 50000001 MPI\nVALUES\n2 MPI_Recv\n")
    agree(waits(tmp_path / "run.pcf"), right)


def test_a_gap_between_states_is_no_computation(tmp_path):
    def computes(text: str) -> float:
        return whywait.analyze(write(tmp_path, text)).metrics["comp"].total * 1e9

    whole = f"{HEADER}\n{BODY}"
    assert computes(whole) == pytest.approx(1000 + 2500 + 3900 + 3000 + 1800 + 3900)
    gap = whole.replace("1:1:1:1:1:3500:6000:1\n", "1:1:1:1:1:3500:4000:1\n1:1:1:1:1:4200:6000:1\n")
    assert computes(gap) == pytest.approx(1000 + 2300 + 3900 + 3000 + 1800 + 3900)


def test_efficiencies_say_that_start_up_is_left_out(tmp_path, capsys):
    calls = [(100, 31), (200, 0), (9000, 32), (9500, 0)]
    more = [f"2:{task}:1:{task}:1:{time}:50000003:{value}\n" for task in (1, 2) for time, value in calls]
    path = write(tmp_path, f"{HEADER}\n{BODY}{''.join(more)}")
    for options, is_said in (((), True), (("--focus", "all"), False)):
        assert main(["efficiency", str(path), *options]) == 0
        assert ("Start-up and shutdown are left out; --focus all" in capsys.readouterr().out) == is_said


def test_order_of_lines_of_one_instant_does_not_matter(tmp_path):
    right = {"mpi_latesender": {"0": 2000, "1": 500}, "mpi_barrier_wait": {"1": 1000}}
    # A call begins when the one before it ends.
    more = (
        "2:2:1:2:1:3200:50000001:2\n2:2:1:2:1:4000:50000001:0\n2:1:1:1:1:3700:50000001:1\n2:1:1:1:1:3800:50000001:0\n"
    )
    more += "3:1:1:1:1:3700:3800:2:1:2:1:3200:4000:8:7"
    lines = BODY.splitlines() + more.splitlines()
    for seed in range(5):
        order = random.Random(seed)  # noqa: S311
        mixed = sorted(lines[1:], key=lambda line: (int(line.split(":")[5 + (line[0] == "3")]), order.random()))
        path = write(tmp_path, "\n".join([HEADER, lines[0], *mixed]) + "\n")
        agree(waits(path), right)


@shared
@pytest.mark.parametrize("case", ["p2p", "collectives", "chopped", "openmp"])
def test_order_of_lines_of_one_instant_does_not_matter_in_the_cases(case, tmp_path):
    def found(path: Path) -> tuple[Any, ...]:
        result = whywait.analyze(path, causes=False)
        rows = [
            (wait["kind"], wait["rank"], wait["thread"], wait["path"], round(wait["waiting"] * 1e9))
            for wait in result.wait_states().to_pylist()
        ]
        times = {
            (row["rank"], "/".join(row["callpath"])): round(row["value"] * 1e9)
            for row in result.severities("time").to_pylist()
        }
        return rows, times, [text for text in oddities(path) if "order" not in text]

    lines = (CASES / case / "trace.prv").read_text().splitlines()
    (tmp_path / "run.pcf").write_text((CASES / case / "trace.pcf").read_text())
    records = [line for line in lines if line[0] in "123"]
    others = [line for line in lines if line[0] not in "123"]
    right = found(CASES / case / "trace.prv")
    for seed in range(3):
        order = random.Random(seed)  # noqa: S311
        mixed = sorted(records, key=lambda line: (int(line.split(":")[5 + (line[0] == "3")]), order.random()))
        assert found(write(tmp_path, "\n".join([*others, *mixed]) + "\n")) == right


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", 3, "not a Paraver trace: it is empty"),
        ("new format\n1:2\n", 3, 'a trace in Paraver\'s "new format"'),
        ("hello\n", 3, "its first line does not begin with #Paraver"),
        ("#Paraver (1):x\n", 3, "the header has no length"),
        ("#Paraver (1):5_ns:1(2):1:2(1:1)\n", 3, "the header has no tasks of application 1"),
        ("#Paraver (1):5_ns:0:1:0()\n", 3, "the header has no tasks"),
        ("#Paraver (1):5_ns:0:1:1(1:1)\n2:1:1:1:1:3:6000050:51\n", 3, "types of events: 6000050"),
        ("#Paraver (1):5_ns:0:1:1(1:1)\n2:1:1:1:1:3:50000001:1\n2:1:1", 3, "line 3 is cut off: 1 whole records"),
        (
            "#Paraver (1):5_ns:0:1:1(1:1)\n2:1:1:1:1:3:50000001:1\n2:1:1:1:1:4:7\n",
            3,
            "line 3 is cut off: 1 whole records",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(text, code, said, tmp_path, capsys):
    path = write(tmp_path, text)
    assert main(["analyze", str(path), "-o", str(tmp_path / "o")]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("it is empty") == (not text)
    assert error.count("\n") == 1


def test_compressed_traces_that_are_damaged_are_cut_or_refused(tmp_path, capsys):
    packed = gzip.compress(f"{HEADER}\n{BODY}".encode(), mtime=0)
    path = tmp_path / "run.prv.gz"
    for length in range(2, len(packed), 29):
        path.write_bytes(packed[:length])
        assert main(["info", str(path)]) == 3
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "first line is damaged" in error or "is cut off" in error, length


def test_an_application_without_mpi_is_left_out(tmp_path):
    header = HEADER.replace(":1:2(1:1,1:1),1", ":2:3(1:1,1:1,1:1),2(1:1,1:1),1")
    lines = ["c:2:1:2:1:2", "2:1:1:1:1:10:46000001:5"]  # the first application only counts
    for fields in (line.split(":") for line in BODY.splitlines()[1:]):
        for application in (2, 8)[: 1 + (fields[0] == "3")]:
            fields[application] = "2"
        lines.append(":".join(fields))
    path = write(tmp_path, "\n".join([header, *lines]) + "\n")
    agree(waits(path), {"mpi_latesender": {"0": 2000}, "mpi_barrier_wait": {"1": 1000}})
    assert any("application 1 is left out" in text for text in oddities(path))
    assert whywait.open(path).definitions["LocationGroup"]["name"].to_pylist() == ["2.1", "2.2"]


def test_applications_end_apart(tmp_path):
    header = "#Paraver (1):9000_ns:1(4):2:2(1:1,1:1),2(1:1,1:1),2"
    lines = ["c:1:1:2:1:2", "c:2:2:2:1:2"]
    ends = {(1, 1): 1000, (1, 2): 2000, (2, 1): 5000, (2, 2): 7500}
    for cpu, ((application, task), begin) in enumerate(ends.items(), 1):
        end = 2100 if application == 1 else 7600
        lines += [f"2:{cpu}:{application}:{task}:1:{time}:50000003:{value}" for time, value in ((begin, 32), (end, 0))]
    path = write(tmp_path, "\n".join([header, *lines]) + "\n")
    found = waits(path)["mpi_finalize_wait"]
    assert {rank: round(ticks) for rank, ticks in found.items()} == {"0": 1000, "2": 2500}


def test_receives_without_a_message_are_counted_by_rank(tmp_path):
    path = write(tmp_path, f"{HEADER}\n" + "\n".join(line for line in BODY.splitlines() if line[0] != "3") + "\n")
    assert "receive without message: 1, whose waiting is unknown (rank 0)" in oddities(path)
    assert "mpi_latesender" not in waits(path)


def test_a_table_of_paraver_is_refused(tmp_path, capsys):
    write(tmp_path, "LEVEL NODE SIZE 0\n", "run.row")
    table = write(tmp_path, "1;2\n", "run.csv")
    assert main(["info", str(table)]) == 3
    assert "a table that Paraver saved (.csv)" in capsys.readouterr().err


def test_several_traces_in_a_directory_are_listed(tmp_path, capsys):
    for name in ("a.prv", "b.prv"):
        write(tmp_path, f"{HEADER}\n{BODY}", name)
    assert main(["info", str(tmp_path)]) == 2
    assert "2 Paraver traces; name one of them:" in capsys.readouterr().err


def test_other_types_are_regions_on_request(tmp_path):
    text = "#Paraver (1):50_ns:0:1:1(1:1)\n2:1:1:1:1:3:6000050:51\n2:1:1:1:1:13:6000050:0\n"
    path = write(tmp_path, text)
    (tmp_path / "run.pcf").write_text("EVENT_TYPE\n0 6000050 Phase\nVALUES\n51 solve\n")
    result = whywait.analyze(whywait.open(path, types=[6000050]))
    names = result.run.definitions["Region"]["name"].to_pylist()
    assert "Phase: solve" in names


def test_damaged_traces_end_in_a_result_or_an_error(tmp_path):
    whole = f"{HEADER}\n{BODY}".encode()
    order = random.Random(1)  # noqa: S311
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(order.randrange(1, 6)):
            damaged[order.randrange(len(damaged))] = order.choice(b"0123456789:-\n#ac")
        path = tmp_path / "run.prv"
        path.write_bytes(damaged[: order.choice([len(damaged), order.randrange(len(damaged))])])
        with suppress(whywait.Error):
            whywait.analyze(whywait.open(path, truncated=True))


def test_info_says_what_the_trace_has(tmp_path, capsys):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "Paraver trace of Extrae, 1 application, 2 tasks, 10.0 us, cut: no, MPI yes, no callers" in said
    assert "1 messages, 1 collective operations" in said
    # It is no archive.
    assert "trace format" not in said
    assert "event bytes" not in said


def test_whose_computation_it_is_is_said(tmp_path, capsys):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    function = "2:1:1:1:1:10:60000019:3\n2:1:1:1:1:9000:60000019:0\n"
    summary = ["analyze", str(path), "--focus", "all", "-o", str(tmp_path / "o"), "--force"]
    for text, count in ((BODY, 1), (BODY + function, 0)):
        write(tmp_path, f"{HEADER}\n{text}")
        for arguments in (summary, ["info", str(path)]):
            assert main(arguments) == 0
            printed = " ".join(capsys.readouterr().out.split())
            assert printed.count("the computation between calls is that of main") == count


def test_a_run_has_the_name_of_its_file(tmp_path, capsys):
    path = write(tmp_path, f"{HEADER}\n{BODY}", "waves.prv")
    assert main(["analyze", str(path), "-o", str(tmp_path / "o")]) == 0
    assert capsys.readouterr().out.startswith("waves: 2 ranks")
    assert whywait.load(tmp_path / "o").summary()["run"] == {"name": "waves", "path": str(path), "program": None}


def test_a_written_result_finds_its_trace_again(tmp_path):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    assert main(["analyze", str(path), "--no-inference", "-q", "-o", str(tmp_path / "o")]) == 0
    loaded = whywait.load(tmp_path / "o")
    assert loaded.run.info()["events"] > 0
    assert main(["export", "perfetto", str(tmp_path / "o"), "-o", str(tmp_path / "run.pftrace")]) == 0


def test_a_trace_is_corrected_to_an_archive(tmp_path):
    path = write(tmp_path, f"{HEADER}\n{BODY}", "some.run.prv")
    written = whywait.correct(path, tmp_path / "archive")["written"]
    assert written.endswith("some.run.otf2")
    agree(waits(written), {"mpi_latesender": {"0": 2000}, "mpi_barrier_wait": {"1": 1000}})


def test_a_simulated_run_is_exported(tmp_path, capsys):
    path = write(tmp_path, f"{HEADER}\n{BODY}")
    assert main(["whatif", str(path), "--scale", "main=0.5", "-o", str(tmp_path / "half")]) == 0
    assert main(["export", "paraver", str(tmp_path / "half"), "-o", str(tmp_path / "half.prv")]) == 0
    capsys.readouterr()
    assert whywait.open(tmp_path / "half.prv").info()["length"] < whywait.open(path).info()["length"]
    agree(waits(tmp_path / "half.prv"), {"mpi_latesender": {"0": 1000}})
