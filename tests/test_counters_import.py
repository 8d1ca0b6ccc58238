"""Files of Open MPI's software performance counters, put into a trace: dissertation of Eberius, 3.6.1 and 3.8."""

from __future__ import annotations

import json
import struct

import pytest
import whywait
from whywait.cli import main

from tests.tracedsl import trace_from_text

TRACE = """
    *: MPI_Init [1, 2]
    0: MPI_Send(1, bytes=800) [4, 4.5]
    1: MPI_Recv(0) [3, 5]
    *: MPI_Finalize [10, 11]
"""

# Rules and bins follow the values; those of a counter fill a cache line.
RULES, BINS = 64, 72
COLLECTIVE_RULES, COLLECTIVE_BINS = 128, 144
NAMES = ("OMPI_SPC_SEND", "OMPI_SPC_MATCH_TIME", "OMPI_SPC_UNEXPECTED_IN_QUEUE", "OMPI_SPC_MAX_UNEXPECTED_IN_QUEUE",
         "OMPI_SPC_P2P_MESSAGE_SIZE", "OMPI_SPC_NEW_ONE")  # fmt: skip


class Files:
    """The files of a run, as Open MPI writes them."""

    def __init__(self, directory, names=NAMES):
        self.directory, self.names = directory, names
        directory.mkdir()
        self.xml()

    def xml(self, name="spc_data.node.job.xml", count=None, clock=2000):
        """Write a file as in the wiki of Open MPI; counters without bins have offsets of -1."""
        bins = {
            name: (RULES, BINS) if name.endswith("MESSAGE_SIZE") else (COLLECTIVE_RULES, COLLECTIVE_BINS)
            for name in self.names
            if name.endswith("MESSAGE_SIZE") or "_BASE_" in name
        }
        counters = "".join(
            f"\t<counter>\n\t\t<name>{name}</name>\n\t\t<value_offset>{8 * i}</value_offset>\n"
            f"\t\t<rules_offset>{bins.get(name, (-1, -1))[0]}</rules_offset>\n"
            f"\t\t<bin_offset>{bins.get(name, (-1, -1))[1]}</bin_offset>\n\t</counter>\n"
            for i, name in enumerate(self.names)
        )
        count = len(self.names) if count is None else count
        head = f"\t<filename>/dev/shm/{name.removesuffix('.xml')}</filename>\n\t<file_size>4096</file_size>\n"
        head += f"\t<num_counters>{count}</num_counters>\n\t<freq_mhz>{clock}</freq_mhz>\n"
        (self.directory / name).write_text(f'<?xml version="1.0"?>\n<SPC>\n{head}{counters}</SPC>\n')

    def data(self, rank, values, time=None, bins=(0, 0), collective=(0, 0, 0, 0), name="spc_data.node.job"):
        """Write a data file: its first rule is the number of bins."""
        name = f"{name}.{rank}" + ("" if time is None else f".{time}")
        content = struct.pack(f"<{len(values)}q", *values).ljust(RULES, b"\0")
        content += struct.pack("<2i2q", 2, 12288, *bins).ljust(COLLECTIVE_RULES - RULES, b"\0")
        content += struct.pack("<4i4q", 4, 12288, 64, 0, *collective)
        (self.directory / name).write_bytes(content)
        return self.directory / name


@pytest.fixture
def trace(tmp_path):
    return trace_from_text(TRACE, tmp_path / "trace")


@pytest.fixture
def files(tmp_path):
    files = Files(tmp_path / "spc")
    for rank in range(2):
        files.data(rank, (10 + rank, 4000, 1, 3, 7, 5), bins=(6, 1))
    return files


def imported(files, trace, target, *options):
    assert main(["counters", "import", str(files.directory), str(trace), "-o", str(target), *options]) == 0
    return whywait.analyze(target, causes=False)


def test_values_at_the_end_are_totals_of_the_run(files, trace, tmp_path, capsys):
    result = imported(files, trace, tmp_path / "new")
    assert "8 counters of 2 processes" in capsys.readouterr().out
    counters = result.counters
    assert counters["OMPI_SPC_SEND"].total == 10 + 11
    assert counters["OMPI_SPC_SEND"].by_location()["value"].to_pylist() == [10, 11]
    # 4000 cycles of a clock of 2 GHz.
    assert counters["OMPI_SPC_MATCH_TIME"].total == pytest.approx(2 * 2e-6)
    assert counters["OMPI_SPC_MATCH_TIME"].unit == "s"
    assert counters["OMPI_SPC_UNEXPECTED_IN_QUEUE"].mode == "ABSOLUTE_NEXT"
    longest = counters["OMPI_SPC_MAX_UNEXPECTED_IN_QUEUE"]
    assert (longest.mode, longest.maximum) == ("ABSOLUTE_LAST", 3)
    assert counters["OMPI_SPC_P2P_MESSAGE_SIZE[<=12288]"].total == 12
    assert counters["OMPI_SPC_P2P_MESSAGE_SIZE[>12288]"].total == 2
    # An unknown counter is kept.
    assert (counters["OMPI_SPC_NEW_ONE"].total, counters["OMPI_SPC_NEW_ONE"].unit) == (10, "#")
    # The rest of the trace is unchanged.
    before = whywait.analyze(trace, causes=False)
    wait_states = [one.wait_states().select(["kind", "rank", "path", "enter", "waiting"]) for one in (result, before)]
    assert wait_states[0] == wait_states[1]
    assert result.facts["length"] == before.facts["length"]
    assert result.warnings == []


def test_bins_of_collective_operations_are_small_and_large(trace, tmp_path):
    files = Files(tmp_path / "spc", ["OMPI_SPC_SEND", "OMPI_SPC_BASE_BCAST_BINOMIAL"])
    for rank in range(2):
        files.data(rank, (1, 10), collective=(1, 2, 3, 4))
    counters = imported(files, trace, tmp_path / "new").counters
    name = "OMPI_SPC_BASE_BCAST_BINOMIAL"
    assert {key: counter.total for key, counter in counters.items() if key.startswith(name)} == {
        name: 20, f"{name}[small,small]": 2, f"{name}[small,large]": 4, f"{name}[large,small]": 6,
        f"{name}[large,large]": 8,
    }  # fmt: skip


def test_counters_that_are_0_everywhere_are_left_out(trace, tmp_path, capsys):
    """Open MPI also writes 0 for counters that are off. Of a counter that counts all bins are known."""
    from whywait.analysis.counters.spc import available

    files = Files(tmp_path / "spc", ["OMPI_SPC_SEND", "OMPI_SPC_RECV", "OMPI_SPC_P2P_MESSAGE_SIZE"])
    for rank in range(2):
        files.data(rank, (rank, 0, 4 * rank), bins=(4 * rank, 0))
    result = imported(files, trace, tmp_path / "new")
    assert "\n1 more is 0 in all files and left out" in capsys.readouterr().out
    assert {name: counter.total for name, counter in result.counters.items()} == {
        "OMPI_SPC_SEND": 1, "OMPI_SPC_P2P_MESSAGE_SIZE": 4, "OMPI_SPC_P2P_MESSAGE_SIZE[<=12288]": 4,
        "OMPI_SPC_P2P_MESSAGE_SIZE[>12288]": 0,
    }  # fmt: skip
    states = {row["name"]: row["state"] for row in available(result)}
    assert (states["SEND"], states["RECV"]) == ("recorded", "derived")


def test_each_process_has_the_clock_of_its_node(files, trace, tmp_path):
    """Open MPI writes an XML file for each process, with the clock rate that its node had."""
    (files.directory / "spc_data.node.job.xml").unlink()
    files.xml("spc_data.node.job.0.xml", clock=2000)
    files.xml("spc_data.node.job.1.xml", clock=1000)
    spent = imported(files, trace, tmp_path / "new").counters["OMPI_SPC_MATCH_TIME"]
    assert spent.by_rank()["value"].to_pylist() == pytest.approx([2e-6, 4e-6])


def test_the_directory_for_shared_memory_has_other_files(files, trace, tmp_path):
    (files.directory / "vader_segment.node.1000.0").write_bytes(b"")
    (files.directory / "settings.xml").write_text("<settings/>")
    assert imported(files, trace, tmp_path / "new").counters["OMPI_SPC_SEND"].total == 21


def test_names_of_hosts_may_have_dots(files, trace, tmp_path):
    for path in files.directory.iterdir():
        path.unlink()
    for rank in range(2):
        files.xml(f"spc_data.node.site.123.{rank}.xml")
        files.data(rank, (10 + rank, 0, 0, 0, 0, 0), name="spc_data.node.site.123")
    assert imported(files, trace, tmp_path / "new").counters["OMPI_SPC_SEND"].total == 21


def test_snapshots_go_from_init_to_finalize(files, trace, tmp_path, capsys):
    for rank in range(2):
        for time, sent in ((100, 0), (101, 4), (104, 10)):
            files.data(rank, (sent, 0, 0, 0, 0, 0), time)
    result = imported(files, trace, tmp_path / "new")
    assert "Snapshots span 4 s by their names, MPI_Init to MPI_Finalize 8 s" in capsys.readouterr().out
    # 2 s, 4 s and 10 s: 4 in the first two seconds, 6 in the next six.
    window = result.counters.window(2, 4)["OMPI_SPC_SEND"]
    assert window.by_location()["value"].to_pylist() == [4, 4]
    assert result.counters.window(4, 7)["OMPI_SPC_SEND"].total == 2 * 3
    assert result.counters["OMPI_SPC_SEND"].total == 21


def test_an_offset_takes_times_as_they_are(files, trace, tmp_path, capsys):
    for rank in range(2):
        for time, sent in ((100, 0), (101, 4)):
            files.data(rank, (sent, 0, 0, 0, 0, 0), time)
    options = ("--offset", "-97", "--json")
    result = imported(files, trace, tmp_path / "new", *options)
    assert json.loads(capsys.readouterr().out)["snapshot_span"] is None
    assert result.counters.window(3, 4)["OMPI_SPC_SEND"].total == 8


@pytest.mark.parametrize("offset", ["97", "-120", "nan", "inf", "1e300"])
def test_an_offset_puts_snapshots_into_the_run(files, trace, tmp_path, capsys, offset):
    for rank in range(2):
        for time in (100, 101):
            files.data(rank, (1, 0, 0, 0, 0, 0), time)
    command = ["counters", "import", str(files.directory), str(trace), "-o", str(tmp_path / "new"), "--offset", offset]
    assert main(command) == 2
    assert "snapshots of rank 0 begin at" in capsys.readouterr().err


def test_recorded_counters_of_open_mpi_are_found(files, trace, tmp_path):
    from whywait.analysis.counters.spc import available

    result = imported(files, trace, tmp_path / "new")
    rows = {row["name"]: row for row in available(result)}
    assert (rows["SEND"]["state"], rows["SEND"]["value"]) == ("recorded", 21)
    # Written in seconds, shown in microseconds: 4000 cycles of 2 GHz in each process.
    assert (rows["MATCH_TIME"]["value"], rows["MATCH_TIME"]["unit"]) == (pytest.approx(4), "us")


def test_counters_that_the_appendix_lacks_have_their_kinds(trace, tmp_path):
    from whywait.analysis.counters.spc import available

    files = Files(tmp_path / "spc", ["OMPI_SPC_OOS_MATCH_TIME", "OMPI_SPC_OOS_QUEUE_HOPS"])
    for rank in range(2):
        files.data(rank, (4000, 7))
    result = imported(files, trace, tmp_path / "new")
    rows = {row["name"]: (row["kind"], row["value"], row["unit"]) for row in available(result)}
    assert rows["OOS_MATCH_TIME"] == ("timer", pytest.approx(4), "us")
    assert rows["OOS_QUEUE_HOPS"] == ("regular", 14, "hops")
    assert result.counters["OMPI_SPC_OOS_QUEUE_HOPS"].unit == "hops"


def test_more_counters_than_one_record_holds_are_imported(trace, tmp_path):
    """A metric record has a byte for the number of its values."""
    files = Files(tmp_path / "spc", [f"OMPI_SPC_X{i}" for i in range(300)])
    for rank in range(2):
        (files.directory / f"spc_data.node.job.{rank}").write_bytes(struct.pack("<300q", *range(1, 301)))
    result = imported(files, trace, tmp_path / "new")
    assert len(result.counters) == 300
    assert result.counters["OMPI_SPC_X299"].total == 2 * 300


def break_nothing(files):
    for path in files.directory.glob("*.xml"):
        path.unlink()


def cut(files):
    path = files.data(1, (1, 2, 3, 4, 5, 6))
    path.write_bytes(path.read_bytes()[:44])


def no_bins(files):
    path = files.data(0, (1, 2, 3, 4, 5, 6))
    content = bytearray(path.read_bytes())
    content[RULES] = 0
    path.write_bytes(content)


def all_off(files):
    for rank in range(2):
        files.data(rank, (0,) * 6)


def negative_offset(files):
    path = files.directory / "spc_data.node.job.xml"
    path.write_text(path.read_text().replace("<value_offset>8<", "<value_offset>-8<"))


def other_counters(files):
    files.names = NAMES[:-1]
    files.xml("spc_data.node.job.1.xml")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (break_nothing, "the XML file that describes the counters is missing"),
        (cut, "44 bytes, where the XML file has a value at"),
        (all_off, "all counters are 0; mpi_spc_attach selects those to count"),
        (negative_offset, "bytes, where the XML file has a value at -8"),
        (no_bins, "OMPI_SPC_P2P_MESSAGE_SIZE has 0 bins, with rules at 64 and bins at 72"),
        (other_counters, "the counters differ from those in"),
        (lambda files: files.xml(count=9), "declares 9 counters but contains 6"),
        (lambda files: (files.directory / "spc_data.node.job.xml").write_text("<SPC>"), "no element found"),
        (lambda files: files.data(2, (0,) * 6), "files of ranks 0, 1, 2, but the trace has ranks 0, 1"),
    ],
)
def test_bad_files_are_named(files, trace, tmp_path, capsys, damage, text):
    damage(files)
    assert main(["counters", "import", str(files.directory), str(trace), "-o", str(tmp_path / "new")]) == 3
    assert text in capsys.readouterr().err
    assert not list((tmp_path / "new").glob("*.otf2"))


def test_operands_are_checked(files, trace, tmp_path, capsys):
    for arguments, text in (
        (["import", str(files.directory)], "TRACE, -o/--output"),
        (["import", str(files.directory), str(trace)], "-o/--output"),
        ([str(trace), "-o", str(tmp_path)], "unrecognized arguments: -o"),
        ([str(trace), str(trace)], "unrecognized arguments"),
        ([], "required: TRACE"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["counters", *arguments])
        assert text in capsys.readouterr().err
    assert main(["counters", "import", str(tmp_path / "none"), str(trace), "-o", str(tmp_path / "new")]) == 2
    assert "no such directory" in capsys.readouterr().err


def test_help_tells_of_the_import(capsys):
    for arguments, texts in (
        (["counters", "-h"], ("whywait counters [options] TRACE", "import", "--metric")),
        (["counters", "import", "-h"], ("usage: whywait counters import", "SPC_DIR", "--offset")),
    ):
        with pytest.raises(SystemExit, match="0"):
            main(arguments)
        printed = capsys.readouterr().out
        assert [text for text in texts if text not in printed] == []


def test_a_trace_is_named_before_or_behind_options(trace, capsys):
    for arguments in (["--json", str(trace)], [str(trace), "--json"]):
        assert main(["counters", *arguments]) == 0
        assert "counters" in json.loads(capsys.readouterr().out)


# Files without a trace


def shown(files, capsys, *options, code=0):
    assert main(["counters", str(files.directory), *options]) == code
    out, error = capsys.readouterr()
    return error if code else json.loads(out) if "--json" in options else out


def test_files_without_a_trace_are_shown_by_rank(files, capsys):
    data = shown(files, capsys, "--json")
    assert data["ranks"] == [0, 1]
    counters = {one["name"]: one for one in data["counters"]}
    assert list(counters)[4:7] == [f"OMPI_SPC_P2P_MESSAGE_SIZE{one}" for one in ("", "[<=12288]", "[>12288]")]
    send = counters["OMPI_SPC_SEND"]
    assert (send["values"], send["total"], send["unit"], send["meaning"]) == ([10, 11], 21, "calls", "of MPI_Send")
    # 4000 cycles of a clock of 2 GHz.
    assert counters["OMPI_SPC_MATCH_TIME"]["values"] == [2e-6, 2e-6]
    assert counters["OMPI_SPC_MATCH_TIME"]["unit"] == "s"
    longest = counters["OMPI_SPC_MAX_UNEXPECTED_IN_QUEUE"]
    assert (longest["kind"], longest["total"], longest["values"]) == ("watermark", None, [3, 3])
    assert counters["OMPI_SPC_UNEXPECTED_IN_QUEUE"]["kind"] == "level"
    assert counters["OMPI_SPC_P2P_MESSAGE_SIZE[<=12288]"]["values"] == [6, 6]
    assert (counters["OMPI_SPC_NEW_ONE"]["values"], counters["OMPI_SPC_NEW_ONE"]["meaning"]) == ([5, 5], "")
    lines = shown(files, capsys).splitlines()
    row = next(line for line in lines if line.startswith("OMPI_SPC_SEND"))
    assert row.split() == ["OMPI_SPC_SEND", "21", "10", "11", "calls", "of", "MPI_Send"]


def test_one_counter_of_all_ranks_and_snapshots(files, capsys):
    for rank, value in ((0, 3), (1, 4)):
        files.data(rank, (value, 0, 0, 0, 0, 0), time=100)
    data = shown(files, capsys, "--metric", "send", "--json")
    assert [(row["rank"], row["value"], row["snapshots"]) for row in data["rows"]] == [
        (1, 11, [{"time": 100, "value": 4}]), (0, 10, [{"time": 100, "value": 3}])
    ]  # fmt: skip
    text = shown(files, capsys, "--metric", "OMPI_SPC_SEND", "--top", "1")
    assert "4 at 100" in text
    assert "3 at 100" not in text
    assert "1 more ranks" in text
    assert "no counter 'RECV'" in shown(files, capsys, "--metric", "RECV", code=2)


def test_many_ranks_have_extremes_and_missing_ones_are_named(files, capsys):
    for rank in (2, 3, 5):
        files.data(rank, (100 * rank, 0, 0, 0, 0, 0))
    text = shown(files, capsys)
    assert "no files of rank 4" in text
    row = next(line for line in text.splitlines() if line.startswith("OMPI_SPC_SEND"))
    assert row.split()[1:5] == ["1,021", "10", "500", "5"]


def test_values_of_a_run_without_final_files_are_those_of_the_last_snapshot(tmp_path, capsys):
    files = Files(tmp_path / "spc", ["OMPI_SPC_SEND", "OMPI_SPC_RECV"])
    for time in (7, 9):
        files.data(0, (time, 0), time=time)
    text = shown(files, capsys)
    assert next(line for line in text.splitlines() if line.startswith("OMPI_SPC_SEND")).split()[1] == "9"
    assert "1 more is zero" in text
    assert "OMPI_SPC_RECV" in text


def test_what_needs_a_trace_is_refused(files, trace, capsys):
    for options in (["--window", "0:1"], ["--spc"], ["--by", "rank", "--metric", "SEND"], ["--arrival", "send"]):
        assert f"{options[0]} needs a trace" in shown(files, capsys, *options, code=2)
    (files.directory / "spc_data.node.job.1").write_bytes(b"1234")
    assert "spc_data.node.job.1: 4 bytes" in shown(files, capsys, code=3)
    (files.directory / "spc_data.node.job.xml").unlink()
    assert "the XML file that describes the counters is missing" in shown(files, capsys, code=3)
    # With a trace beside them, the directory is that of the trace.
    assert main(["counters", str(trace)]) == 0


def test_every_counter_has_a_meaning():
    from whywait.analysis.counters import spc

    assert all(one.meaning for one in (*spc.definitions(), *spc.FURTHER))
