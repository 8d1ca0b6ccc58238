"""Files of other tools are named, with what to do."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest
import whywait
from whywait.cli import main

from tests.results import SHARED, UNRECORDED

DATA = Path(__file__).parent / "data"

TEXTS = {
    "run.pcf": (b"DEFAULT_OPTIONS\n", "a file with the labels of a Paraver trace"),
    "run.slog2": (b"\0\x0aSLOG 2.0.6", "a SLOG-2 trace"),
    "anything": (b"CLOG-02.44", "a CLOG-2 trace"),
    "old.otf": (b"1:1,2\n", "an OTF 1 trace"),
    "old.1.events.z": (b"\x78\x9c", "an OTF 1 trace"),
    "summary.cube": (b'<?xml version="1.0"?>\n<cube version="3.0">\n</cube>', "a Cube 3 profile"),
    "epik.cube.gz": (gzip.compress(b'<?xml version="1.0"?>\n<cube version="3.0">'), "a Cube 3 profile"),
    "trace.json": (b'{"displayTimeUnit": "ms", "traceEvents": []}', "a trace in Chrome's JSON format"),
    "list.json": (b'[\n {"name": "f", "ph": "B", "ts": 1}]', "a trace in Chrome's JSON format"),
    "rank0.json.gz": (gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}'), "a trace of the PyTorch profiler"),
    "report1.nsys-rep": (b"NVIDIA Tegra Profiler Report 2023", "NVIDIA's own format, which only nsys reads"),
    "old.qdrep": (b"NVIDIA Tegra Profiler Report 2020", "an older one of NVIDIA's own formats, which only nsys reads"),
    "NVTX_EVENTS.parquet": (b"PAR1", "an export of Nsight Systems that is not read"),
    "profile.0.0.0": (b"12 templated_functions_MULTI_TIME\n", "a profile of TAU"),
    "tautrace.0.0.0.trc": (b"\0", "a trace of TAU"),
    "a.hpcrun": (b"HPCRUN-profile____02.00", "a file of HPCToolkit"),
    "perf.data": (b"PERFILE2", "a profile of perf"),
    "gmon.out": (b"gmon\1", "a profile of gprof"),
    "solver.stf": (b"\0", "a trace of Intel Trace Collector"),
    "epik.esd": (b"EPILOG", "an EPILOG trace of Scalasca 1"),
    "run.pftrace": (b"\x0a\x10", "a trace of Perfetto"),
    "meta.db": (b"HPCTOOLKITmeta\4\0", "a file of HPCToolkit"),
    "experiment.xml": (b'<?xml version="1.0"?>\n<!DOCTYPE x []>\n<HPCToolkitExperiment>', "a file of HPCToolkit"),
    "metadata": (b"\x57\x1d\xd1\x75", "a trace in the Common Trace Format"),
    "solver.4.1.1.mpiP": (b"@ mpiP\n", "a profile of mpiP"),
    "job.xml": (b'<?xml version="1.0"?>\n<ipm_job_profile>', "a profile of IPM"),
    "solver.ap2": (b"\0", "a file of CrayPat"),
    "r000hs.vtune": (b"<?xml", "a result of VTune"),
    "callgrind.out.17": (b"version: 1\n", "a profile of Valgrind"),
    "heap": (b"desc: --time-unit=B\ncmd: ./solver\n", "a profile of Valgrind"),
    "flames": (b'{"$schema": "https://www.speedscope.app/file-format-schema.json"}', "a flame graph of speedscope"),
    "cpu.pb.gz": (gzip.compress(b"\x0a\4"), "a profile of pprof"),
}


def said(path, capsys, verb="analyze"):
    arguments = [verb, str(path)] + (["-o", str(path) + ".results"] if verb == "analyze" else [])
    assert main(arguments) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("name", TEXTS)
def test_a_foreign_file_is_named_with_what_to_do(name, tmp_path, capsys):
    content, kind = TEXTS[name]
    (tmp_path / "run").mkdir()
    file = tmp_path / "run" / name
    file.write_bytes(content)
    for verb in ("analyze", "info", "tree"):
        for path in (file, file.parent):
            err = said(path, capsys, verb)
            assert err.startswith(f"whywait: {file} is {kind}"), err
            assert len(err.partition(kind)[2].partition(". ")[2]) > 20
    with pytest.raises(whywait.ArchiveError, match=r" is (an? |NVIDIA)"):
        whywait.analyze(file)


def test_databases_are_told_apart(tmp_path, capsys):
    for name, table, words in (
        ("report.sqlite", "META_DATA_EXPORT", ": an export of Nsight Systems has a table StringIds, which it has not"),
        ("other.sqlite", "people", " is an SQLite database. Exports of Nsight Systems are read"),
        ("run.rpd", "rocpd_api", " is a database of ROCm's profilers. For a trace"),
    ):
        with sqlite3.connect(tmp_path / name) as base:
            base.execute(f"CREATE TABLE {table} (start INT)")
        base.close()
        assert f"{tmp_path / name}{words}" in said(tmp_path / name, capsys)


@pytest.mark.parametrize("damage", [(b"TABLE people", b"TABL\xc5 people"), (b"people", b"peo\xc4le")])
def test_a_damaged_schema_is_an_error(damage, tmp_path):
    file = tmp_path / "report.sqlite"
    with sqlite3.connect(file) as base:
        base.execute("CREATE TABLE people (start INT)")
    base.close()
    file.write_bytes(file.read_bytes().replace(*damage))
    with pytest.raises(whywait.Error):
        whywait.analyze(file)


EXPORT = 'for f in *.{0}; do nsys export --type=sqlite --include-blobs=true -o "${{f%.{0}}}.sqlite" "$f"; done'
OWN = "is NVIDIA's own format, which only nsys reads. Export it: " + EXPORT.format("nsys-rep")
OLDER = "is an older one of NVIDIA's own formats, which only nsys reads. Export it, with nsys of that age or newer: "
EXPORTED = "is an export of Nsight Systems that is not read. Export the report to SQLite: " + EXPORT.format("nsys-rep")
LIKE_EXPORTED = (
    "is a file of a kind that is not read, in which Nsight Systems exports, too. If it is such an export, export the "
    "report to SQLite: " + EXPORT.format("nsys-rep")
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("report.0.nsys-rep", OWN),
        ("report.0.qdrep", OLDER + EXPORT.format("qdrep")),
        ("report.0.qdstrm", OLDER + EXPORT.format("qdstrm")),
        ("report.0_pqtdir/CUPTI_ACTIVITY_KIND_RUNTIME.parquet", EXPORTED),
        ("report.0_arwdir/StringIds.arrow", EXPORTED),
        ("report.0.arrow", EXPORTED),
        ("report.0.arrows", EXPORTED),
        ("report.0.jsonl", EXPORTED),
        ("report.0.h5", EXPORTED),
        ("run.arrow", LIKE_EXPORTED),
        ("run.jsonl", LIKE_EXPORTED),
        ("run.h5", LIKE_EXPORTED),
    ],
)
def test_the_command_that_exports_reports_is_said(name, words, tmp_path, capsys):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"NVIDIA Tegra Profiler Report " if name.endswith("nsys-rep") else b"\0")
    for path in (file, file.parent):
        assert f"{file} {words}" in said(path, capsys)


def test_other_files_are_not_named(tmp_path, capsys):
    for name, content in (("a.txt", b"hello"), ("b.json", json.dumps({"a": 1}).encode()), ("c.gz", b"\x1f\x8b\x08")):
        (tmp_path / name).write_bytes(content)
        assert "expected an OTF2 anchor file" in said(tmp_path / name, capsys)
    # What is wrong with an archive is said, whatever lies beside it.
    (tmp_path / "traces.otf2").write_bytes(b"nothing")
    (tmp_path / "gmon.out").write_bytes(b"gmon")
    for path in (tmp_path, tmp_path / "traces.otf2"):
        assert "gprof" not in said(path, capsys)


@pytest.mark.skipif(not SHARED.is_dir(), reason=UNRECORDED)
def test_files_of_real_tools(capsys):
    assert "Cube 3" in said(SHARED / "field4/foreign_files/old.cube.gz", capsys, "info")
