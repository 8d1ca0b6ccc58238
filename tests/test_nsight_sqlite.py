"""Exports of Nsight Systems as files of SQLite: pages, encodings, rows, and damage."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing

import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from whywait.cli import main

from tests.nsight_files import START, Report, thread, visits


@pytest.mark.parametrize("page_size", [512, 1024, 65536])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_pages_and_encodings_of_sqlite_are_read(page_size, encoding, tmp_path):
    report = Report()
    long = "a name that is longer than a page of 512 bytes " * 40
    ranges = [(f"größe {number}" if number % 7 else long, number, number + 0.5) for number in range(400)]
    for name, begin, end in ranges:
        report.range(name, begin, end)
    path = report.write(tmp_path / "report.sqlite", page_size=page_size, encoding=encoding)
    assert visits(whywait.open(path)) == ranges


@settings(max_examples=25, deadline=None)
@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Nd"], exclude_characters="=\0"), min_size=1, max_size=600),
        min_size=1,
        max_size=30,
    ),
    page_size=st.sampled_from([512, 4096]),
    step=st.integers(1, 10**12),
)
def test_all_rows_come_in_order_with_their_values(names, page_size, step, tmp_path_factory):
    report = Report()
    for number, name in enumerate(names):
        report.add(
            "NVTX_EVENTS",
            start=number * step * 2,
            end=number * step * 2 + step,
            eventType=59,
            domainId=0,
            globalTid=thread(),
            **({"text": name} if number % 2 else {"textId": report.name(name)}),
        )
    path = report.write(tmp_path_factory.mktemp("rows") / "report.sqlite", page_size=page_size)
    read = [(name, round(begin * 1e6), round(end * 1e6)) for name, begin, end in visits(whywait.open(path))]
    wanted = [(name, number * step * 2, number * step * 2 + step) for number, name in enumerate(names)]
    assert [name for name, _, _ in read] == names
    assert [begin for _, begin, _ in read] == pytest.approx([begin for _, begin, _ in wanted], rel=1e-9, abs=1)


def test_tables_and_columns_are_found_whatever_else_there_is(tmp_path):
    report = Report().range("work", 1, 4).range("again", 5, 6)
    renamed = {"NVTX_EVENTS": "NVTX_EVENTS_V3"}
    path = report.write(
        tmp_path / "report.sqlite",
        rename=renamed.items(),
        statements=[
            "CREATE TABLE NVTX_EVENTS_V2 (start INTEGER, end INTEGER, eventType INTEGER)",
            "INSERT INTO NVTX_EVENTS_V2 VALUES (1, 2, 59)",
            "CREATE TABLE other (start INTEGER PRIMARY KEY) WITHOUT ROWID",
            "CREATE VIEW v AS SELECT * FROM StringIds",
            "CREATE INDEX i ON NVTX_EVENTS_V3 (start)",
            "ALTER TABLE NVTX_EVENTS_V3 ADD COLUMN later INTEGER",
            "ALTER TABLE NVTX_EVENTS_V3 RENAME COLUMN text TO TEXT",
        ],
    )
    assert visits(whywait.open(path)) == [("work", 1, 4), ("again", 5, 6)]
    # Numbers may be written as text, and whole ones as fractions; others cost their row.
    changes = [
        "UPDATE NVTX_EVENTS_V3 SET start = '1000000', end = 4000000.0 WHERE text = 'work'",
        "UPDATE NVTX_EVENTS_V3 SET start = 'soon' WHERE text = 'again'",
    ]
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE typeless AS SELECT * FROM NVTX_EVENTS_V3")
        base.execute("DROP TABLE NVTX_EVENTS_V3")
        columns = "start, end, eventType, rangeId, domainId, text, textId, globalTid, endGlobalTid, binaryData, later"
        base.execute(f"CREATE TABLE NVTX_EVENTS_V3 ({columns})")
        base.execute("INSERT INTO NVTX_EVENTS_V3 SELECT * FROM typeless")
        for change in changes:
            base.execute(change)
        base.commit()
    run = whywait.open(path)
    assert visits(run) == [("work", 1, 4)]
    assert [text for _, _, text in run.oddities] == [
        "NVTX_EVENTS_V3: 1 rows have values that cannot be, and are left out"
    ]


def test_a_table_without_row_numbers_is_refused(tmp_path):
    path = (
        Report()
        .range("work", 1, 4)
        .write(
            tmp_path / "report.sqlite",
            statements=[
                "DROP TABLE MPI_RANKS",
                "CREATE TABLE MPI_RANKS (globalTid INTEGER PRIMARY KEY, rank) WITHOUT ROWID",
            ],
        )
    )
    with pytest.raises(whywait.ArchiveError, match="MPI_RANKS is WITHOUT ROWID"):
        whywait.open(path)


def test_a_file_that_is_not_all_there_is_is_refused(tmp_path):
    path = Report().range("work", 1, 4).write(tmp_path / "report.sqlite")
    beside = path.with_name("report.sqlite-wal")
    beside.write_bytes(b"changes")
    with pytest.raises(whywait.ArchiveError, match=r"report.sqlite-wal beside it has changes.*VACUUM INTO"):
        whywait.open(path)
    beside.write_bytes(b"")
    journal = path.with_name("report.sqlite-journal")
    journal.write_bytes(bytes(28))
    assert visits(whywait.open(path)) == [("work", 1, 4)]
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7")
    with pytest.raises(whywait.ArchiveError, match=r"report\.sqlite-journal beside it"):
        whywait.open(path)


def test_space_that_others_keep_at_the_end_of_pages_is_left_alone(tmp_path):
    report = Report()
    long = "a name that is longer than a page of 512 bytes " * 40
    ranges = [(long if number % 9 == 0 else f"range {number}", number, number + 0.5) for number in range(300)]
    for name, begin, end in ranges:
        report.range(name, begin, end)
    path = tmp_path / "report.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.executescript("PRAGMA page_size = 512; VACUUM; CREATE TABLE a (b); DROP TABLE a")
    empty = bytearray(path.read_bytes())
    # Extensions of SQLite keep checksums there: the first page has no cells yet.
    empty[20] = 32
    empty[105:107] = struct.pack(">H", 480)
    path.write_bytes(empty[:512])
    empty[28:32] = struct.pack(">I", 1)
    empty[32:40] = bytes(8)
    path.write_bytes(empty[:512])
    report.write(path, page_size=512, is_new=False)
    assert path.read_bytes()[20] == 32
    assert visits(whywait.open(path)) == ranges


@pytest.mark.parametrize("number", [0, 1, 127, -128, 1 << 14, 1 << 23, -(1 << 23), 1 << 31, 1 << 40, 1 << 47, 1 << 55])
def test_numbers_of_all_lengths_are_read(number, tmp_path):
    report = Report().add(
        "NVTX_EVENTS", start=number, end=number + 1, eventType=59, domainId=0, globalTid=thread(), text="work"
    )
    run = whywait.open(report.write(tmp_path / "report.sqlite"))
    begin, end = (event["time"] for event in run.events(0).to_pylist())
    assert (begin - START, end - begin) == (number, 1)


def test_a_row_whose_end_is_missing_is_left_out(tmp_path):
    report = Report()
    for number in range(400):
        report.range("long " * 800 if number == 7 else f"range {number}", number, number + 0.5)
    path = report.write(tmp_path / "report.sqlite", page_size=512)
    content = bytearray(path.read_bytes())
    # The second page of the text, which has a number and nothing else but text, is the last one now.
    page = next(page for page in range(0, len(content), 512) if content[page + 4 : page + 512].count(b"long ") > 90)
    content[page : page + 4] = bytes(4)
    path.write_bytes(content)
    run = whywait.open(path)
    assert len(visits(run)) == 399
    assert [text for _, _, text in run.oddities] == ["NVTX_EVENTS: 1 rows have values that cannot be, and are left out"]


def pages_of(path, table, page_size):
    """Return the first page of a table and the number of all pages."""
    with closing(sqlite3.connect(path)) as base:
        (root,) = base.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table]).fetchone()
    return root, path.stat().st_size // page_size


def test_damaged_pages_are_left_out_or_refused(tmp_path):
    report = Report()
    for number in range(4000):
        report.range(f"range {number % 3}", number, number + 0.5)
    path = report.write(tmp_path / "report.sqlite", page_size=512)
    whole = path.read_bytes()
    root, pages = pages_of(path, "NVTX_EVENTS", 512)
    leaves = [page for page in range(1, pages) if whole[page * 512] == 13 and b"range " in whole[page * 512 :][:512]]
    assert len(leaves) > 200
    damaged = bytearray(whole)
    damaged[leaves[9] * 512] = 77
    path.write_bytes(damaged)
    run = whywait.open(path)
    assert 3980 < len(visits(run)) < 4000
    assert [text for _, _, text in run.oddities] == [
        f"NVTX_EVENTS: 1 pages cannot be read, the first of them page {leaves[9] + 1}: their rows are left out"
    ]
    for page in leaves[:20]:
        damaged[page * 512 + 3 : page * 512 + 5] = b"\xff\xff"
    path.write_bytes(damaged)
    with pytest.raises(whywait.ArchiveError, match=r"\d+ of \d+ pages of its table NVTX_EVENTS cannot be read"):
        whywait.open(path)
    # A page that is its own child is looked at once.
    damaged = bytearray(whole)
    damaged[(root - 1) * 512 + 8 : (root - 1) * 512 + 12] = struct.pack(">I", root)
    path.write_bytes(damaged)
    run = whywait.open(path)
    assert 3000 < len(visits(run)) < 4000
    assert any("NVTX_EVENTS: 1 pages cannot be read" in text for _, _, text in run.oddities)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_a_file_that_is_cut_says_so(share, tmp_path):
    report = Report()
    for number in range(4000):
        report.range("range", number, number + 0.5)
    path = report.write(tmp_path / "report.sqlite", page_size=512)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    run = whywait.open(path)
    said = " ".join(text for _, _, text in run.oddities)
    assert "the file is shorter than its header says" in said
    assert "NVTX_EVENTS" in said
    assert run.events(0).num_rows < 8000


@pytest.mark.parametrize("length", [16, 50, 99, 100, 511])
def test_a_file_that_is_hardly_there_is_an_error(length, tmp_path, capsys):
    path = Report().range("work", 1, 4).write(tmp_path / "report.sqlite")
    path.write_bytes(path.read_bytes()[:length])
    assert main(["info", str(path)]) in (2, 3)
    assert str(path) in capsys.readouterr().err


# Runs
