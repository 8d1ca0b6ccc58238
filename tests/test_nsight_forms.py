"""One run in many forms: exports of other versions, options, and machines give the same waits."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from functools import cache

import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from whywait.cli import main

from tests.nsight_cases import DATA, case, found, right
from tests.nsight_files import TABLES
from tests.results import everything

# The bits of the process and of the thread in the numbers of both.
NUMBERS = 1 << 48
# All runs; the names of the reports of those in the second list tell their ranks.
CASES = ["clocks", "halo", "late_sender", "late_sender_2022", "late_sender_2023", "nccl", "requests", "subcomms"]
NAMED = ["nccl"]


def tables(base):
    return [name for (name,) in base.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]


def columns(base, table):
    return [row[1] for row in base.execute(f"PRAGMA table_info({table})")]


def replaced(base, table, select, order=""):
    """Replace a table by what a query selects of it."""
    base.execute(f"CREATE TABLE replacement AS SELECT {select} FROM {table} {order}")
    base.execute(f"DROP TABLE {table}")
    base.execute(f"ALTER TABLE replacement RENAME TO {table}")


def backwards(base, _):
    for table in tables(base):
        replaced(base, table, ", ".join(f'"{column}"' for column in reversed(columns(base, table))))


def with_more_columns(base, _):
    for table in tables(base):
        more = [f"'x' AS more{number}, \"{column}\"" for number, column in enumerate(columns(base, table))]
        replaced(base, table, ", ".join([*more, "NULL AS last"]))


def shuffled(base, _):
    """Rows are in no order, but those of one call."""
    base.create_function("place", 1, lambda number: (number or 0) * 2654435761 % 1000003)
    for table in tables(base):
        of_call = "start" if "start" in columns(base, table) else "rowid"
        replaced(base, table, "*", f"ORDER BY place({of_call}), rowid")


def of_a_later_version(base, _):
    for table in tables(base):
        if table.endswith("_EVENTS") or table.startswith("CUPTI"):
            base.execute(f"ALTER TABLE {table} RENAME TO {table}_V3")
            base.execute(f"CREATE TABLE {table}_V2 (start INTEGER)")


def in_capitals(base, _):
    for table in tables(base):
        for column in columns(base, table):
            base.execute(f'ALTER TABLE {table} RENAME COLUMN "{column}" TO "{column.upper()}"')


def without_ranks(base, _):
    base.execute("DROP TABLE IF EXISTS MPI_RANKS")


def with_other_names(base, rank):
    """Ids of names are those of each report."""
    base.execute("UPDATE StringIds SET id = id + 1000000 * ?", [rank + 1])
    for table in tables(base):
        for column in {"textId", "nameId", "shortName", "demangledName"} & set(columns(base, table)):
            base.execute(f"UPDATE {table} SET {column} = {column} + 1000000 * ?", [rank + 1])


def with_negative_numbers(base, _):
    """The highest bits are of the hardware."""
    for table in tables(base):
        for column in {"globalTid", "globalPid", "endGlobalTid"} & set(columns(base, table)):
            base.execute(f"UPDATE {table} SET {column} = {column} | (-9223372036854775807 - 1)")


def with_text_for_numbers(base, _):
    for table in tables(base):
        if table.endswith("_EVENTS") or table.startswith("CUPTI"):
            cast = [
                f'CAST("{column}" AS TEXT) AS "{column}"' for column in columns(base, table) if column != "binaryData"
            ]
            rest = ["binaryData"] if "binaryData" in columns(base, table) else []
            replaced(base, table, ", ".join(cast + rest))


def with_equal_handles(base, _):
    """Handles are local: the same on all ranks, and negative."""
    for table in tables(base):
        for column in {"requestHandle"} & set(columns(base, table)):
            base.execute(f"UPDATE {table} SET {column} = -(({column} & 4095) + 1) WHERE {column} > 0")
            base.execute(f"UPDATE {table} SET {column} = 0 WHERE {column} IS NULL")


def with_equal_correlations(base, rank):
    for table in tables(base):
        if "correlationId" in columns(base, table):
            base.execute(f"UPDATE {table} SET correlationId = correlationId - 100 * ?", [rank])


def later_in_its_session(base, rank):
    late = 12_345_678 * (rank + 1)
    moved(base, late, late)


def normalized(base, _):
    """Times are UTC already."""
    (utc,) = base.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()
    moved(base, utc, 0)


def moved(base, times, start):
    for table in tables(base):
        for column in {"start", "end", "timestamp"} & set(columns(base, table)):
            base.execute(f'UPDATE {table} SET "{column}" = "{column}" + ?', [times])
    for column in {"utcEpochNs", "systemClockNs"} & set(columns(base, "TARGET_INFO_SESSION_START_TIME")):
        base.execute(f"UPDATE TARGET_INFO_SESSION_START_TIME SET {column} = {column} - ?", [start])


def with_empty_tables(base, _):
    known = set(tables(base))
    for table, declared in TABLES.items():
        if table not in known:
            base.execute(f"CREATE TABLE {table} ({declared})")


def with_a_launcher(base, _):
    base.execute("INSERT INTO PROCESSES (globalPid, pid, name) VALUES (?, 7, 'mpirun')", [NUMBERS | 7 << 24])
    base.execute("INSERT INTO ThreadNames (nameId, globalTid) VALUES (1, ?)", [NUMBERS | 7 << 24 | 7])


def with_calls_of_the_system(base, _):
    """In each call of MPI, the library polls; the program itself calls often and shortly."""
    base.execute("CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER)")
    base.execute("INSERT INTO StringIds VALUES (999999, 'poll')")
    for table in tables(base):
        if table.startswith("MPI") and "end" in columns(base, table):
            base.execute(f"INSERT INTO OSRT_API SELECT start, end, globalTid, 999999 FROM {table}")
    base.execute(
        "INSERT INTO OSRT_API SELECT start + 5, start + 90005, globalTid, 999999 FROM NVTX_EVENTS "
        "WHERE end - start > 200000"
    )


def with_indexes(base, _):
    for number, table in enumerate(tables(base)):
        base.execute(f'CREATE INDEX i{number} ON {table} ("{columns(base, table)[0]}")')
        base.execute(f"CREATE VIEW v{number} AS SELECT * FROM {table}")
        base.execute(f"ANALYZE {table}")


def with_free_pages(base, _):
    base.execute("CREATE TABLE gone AS SELECT randomblob(3000) FROM StringIds, StringIds")
    base.execute("DROP TABLE gone")
    base.execute("CREATE TABLE gap (a)")


def written_ahead(base, _):
    base.commit()
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("CREATE TABLE later (a)")


FORMS = [
    backwards,
    with_more_columns,
    shuffled,
    of_a_later_version,
    in_capitals,
    without_ranks,
    with_other_names,
    with_negative_numbers,
    with_text_for_numbers,
    with_equal_handles,
    with_equal_correlations,
    later_in_its_session,
    normalized,
    with_empty_tables,
    with_a_launcher,
    with_calls_of_the_system,
    with_indexes,
    with_free_pages,
    written_ahead,
]
# What matters for devices, too.
FORMS_OF_DEVICES = [
    shuffled,
    with_other_names,
    with_negative_numbers,
    with_equal_correlations,
    with_calls_of_the_system,
    normalized,
]


@cache
def of_case(name):
    return everything(case(name))


def copied(case, to):
    """Copy the reports of a case, each with its number."""
    to.mkdir()
    files = sorted(case.glob("*.sqlite"))
    for file in files:
        shutil.copyfile(file, to / file.name)
    return list(enumerate(to / file.name for file in files))


@pytest.mark.parametrize(
    ("name", "form"), [("requests", form) for form in FORMS] + [("nccl", form) for form in FORMS_OF_DEVICES]
)
def test_forms_of_one_run_give_the_same_waits(name, form, tmp_path):
    for rank, file in copied(DATA / name, tmp_path / "reports"):
        with closing(sqlite3.connect(file)) as base:
            form(base, rank)
            base.commit()
    assert found(whywait.analyze(tmp_path / "reports")) == right(name)


@pytest.mark.parametrize(("name", "each"), [("requests", 4), ("nccl", 2), ("halo", 4), ("subcomms", 2)])
def test_reports_of_several_processes_give_the_same_waits(name, each, tmp_path):
    files = copied(case(name), tmp_path / "reports")
    for first in range(0, len(files), each):
        with closing(sqlite3.connect(files[first][1])) as base:
            for _, file in files[first + 1 : first + each]:
                joined(base, file)
                file.unlink()
    assert found(whywait.analyze(tmp_path / "reports")) == right(name)


def joined(base, file):
    """Add the rows of another report to a report, as if one session had recorded both."""
    base.execute("ATTACH ? AS other", [str(file)])
    clock = "systemClockNs" if "systemClockNs" in columns(base, "TARGET_INFO_SESSION_START_TIME") else "utcEpochNs"
    begins = [
        base.execute(f"SELECT {clock} FROM {schema}.TARGET_INFO_SESSION_START_TIME") for schema in ("other", "main")
    ]
    (late,), (begin,) = [row.fetchone() for row in begins]
    known = dict(base.execute("SELECT value, id FROM StringIds"))
    for (text,) in base.execute("SELECT value FROM other.StringIds").fetchall():
        if text not in known:
            known[text] = max(known.values()) + 1
            base.execute("INSERT INTO StringIds VALUES (?, ?)", [known[text], text])
    once = ("StringIds", "META_DATA_", "EXPORT_META_DATA", "TARGET_INFO_SESSION", "NVTX_PAYLOAD", "ENUM_", "ANALYSIS")
    for table in tables(base):
        if table.startswith((*once, "TARGET_INFO_SYSTEM")):
            continue
        own = columns(base, table)
        rows = base.execute(f"SELECT {', '.join(own)} FROM other.{table}").fetchall()
        names = dict(base.execute("SELECT id, value FROM other.StringIds"))
        of_times = [own.index(column) for column in ("start", "end", "timestamp") if column in own]
        of_names = [own.index(column) for column in ("textId", "nameId", "shortName", "demangledName") if column in own]
        rows = [
            [
                known[names[value]]
                if place in of_names and value in names
                else value + late - begin
                if place in of_times and value is not None
                else value
                for place, value in enumerate(row)
            ]
            for row in rows
        ]
        base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(own))})", rows)
    base.commit()
    base.execute("DETACH other")


def in_any_order(base, choice):
    """Rows are in any order, but the two of a call that sends and receives: nothing else tells them apart."""
    for table in tables(base):
        own, calls = columns(base, table), {}
        of_call = [own.index(column) for column in ("globalTid", "start")] if table == "MPI_P2P_EVENTS" else []
        for number, row in enumerate(base.execute(f"SELECT * FROM {table}").fetchall()):
            calls.setdefault(tuple(row[place] for place in of_call) or number, []).append(row)
        groups = list(calls.values())
        choice.shuffle(groups)
        base.execute(f"DELETE FROM {table}")
        rows = [row for group in groups for row in group]
        base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(own))})", rows)


def with_other_processes(base):
    """Processes have other numbers in the system, in the opposite order."""
    for table in tables(base):
        for column in {"globalTid", "globalPid", "endGlobalTid"} & set(columns(base, table)):
            base.execute(
                f"UPDATE {table} SET {column} = {column} + ((16777215 - 2 * ({column} >> 24 & 16777215)) << 24)"
            )
        if "pid" in columns(base, table):
            base.execute(f"UPDATE {table} SET pid = 16777215 - pid")


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=2, deadline=None)
@given(choice=st.randoms(use_true_random=False), has_other_numbers=st.booleans())
def test_the_order_of_reports_processes_and_rows_changes_nothing(name, choice, has_other_numbers, tmp_path_factory):
    files = sorted(case(name).glob("*.sqlite"))
    names = [file.name for file in files]
    if name not in NAMED:
        choice.shuffle(names)
    directory = tmp_path_factory.mktemp("reports")
    for file, other in zip(files, names, strict=True):
        shutil.copyfile(file, directory / other)
        with closing(sqlite3.connect(directory / other)) as base:
            in_any_order(base, choice)
            if has_other_numbers:
                with_other_processes(base)
            base.commit()
    assert everything(directory) == of_case(name)


@pytest.mark.parametrize("name", CASES)
def test_an_archive_of_a_run_gives_the_same(name, tmp_path):
    # Elsewhere, an archive is written at the times of the analysis only if all clocks of a node are one.
    how = [] if name == "clocks" else ["--clocks", "measured"]
    assert main(["clocks", str(case(name)), *how, "-o", str(tmp_path / "archive")]) == 0
    assert everything(tmp_path / "archive") == of_case(name)


# Where constraints bound clocks from both sides; elsewhere a correction moves them no more than these demand.
@pytest.mark.parametrize(
    ("name", "session", "by"),
    [
        ("clocks", 0, 7_000_000),
        ("clocks", 3, -3_000_000),
        ("late_sender_2022", 0, -40_000_000),
        ("late_sender_2022", 1, 7_000_000),
        ("late_sender_2022", 3, -3_000_000),
    ],
)
def test_a_constant_added_to_the_clock_of_a_session_changes_nothing_after_correction(name, session, by, tmp_path):
    files = copied(case(name), tmp_path / "reports")
    with closing(sqlite3.connect(files[session][1])) as base:
        base.execute("UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", [by])
        base.commit()
    own, moved = waiting(case(name)), waiting(tmp_path / "reports")
    assert {key: moved.get(key, 0) for key in own | moved} == pytest.approx(
        {key: own.get(key, 0) for key in own | moved}, abs=30
    )


def waiting(path):
    """Return the waiting of each rank by pattern, in us."""
    of_all = {}
    for pattern, rank, _, length in found(whywait.analyze(path)):
        of_all[pattern, rank] = of_all.get((pattern, rank), 0) + length / 1000
    return of_all


# Of data in a form that is not known, what is said.
UNKNOWN = "ranges of NCCL have data of a form that is not known: their kernels are matched by order, or not at all"
WITHOUT = "ranges of NCCL say nothing of their communicators: nsys export --include-blobs=true has these"
DEFECTS = [
    ("UPDATE NVTX_EVENTS SET binaryData = NULL", WITHOUT),
    ("UPDATE NVTX_EVENTS SET binaryData = x''", WITHOUT),
    ("UPDATE NVTX_EVENTS SET binaryData = hex(binaryData)", UNKNOWN),
    ("UPDATE NVTX_EVENTS SET binaryData = substr(binaryData, 1, 36)", UNKNOWN),
    ("UPDATE NVTX_EVENTS SET binaryData = substr(binaryData, 33)", UNKNOWN),
    ("UPDATE NVTX_EVENTS SET binaryData = zeroblob(length(binaryData))", UNKNOWN),
    ("UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET offset = NULL", UNKNOWN),
    ("UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET type = 99", UNKNOWN),
    ("UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET name = 'a ' || name", UNKNOWN),
    ("UPDATE NVTX_PAYLOAD_SCHEMA_ENTRIES SET schemaId = schemaId + 100", UNKNOWN),
    ("DROP TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES", UNKNOWN),
]


@pytest.mark.parametrize("silent", [range(4), [2]], ids=["all", "one"])
@pytest.mark.parametrize(("change", "words"), DEFECTS)
def test_what_nccl_says_in_an_unknown_form_is_not_used(change, words, silent, tmp_path):
    for rank, file in copied(DATA / "nccl", tmp_path / "reports"):
        if rank in silent:
            with closing(sqlite3.connect(file)) as base:
                base.execute(change)
                base.commit()
    run = whywait.open(tmp_path / "reports")
    assert [text for _, _, text in run.oddities if "ranges of NCCL" in text] == [f"3 {words}"] * len(silent)
    # Which ranks the communicator has is not recorded, so one of which nothing is known may be of it.
    (group,) = run.traces["groups"]
    assert (group["method"], group["instances"]) == ("order of all operations (inferred)", 3)
    forgotten = [count for what, count in run.nsight["notes"] if what.startswith("kernels of NCCL whose communicator")]
    assert forgotten == ([] if len(silent) == 4 else [9])
    assert found(whywait.analyze(run)) == right("nccl")


def test_what_joins_calls_and_devices_is_said_not_to_be_read(tmp_path):
    ((_, file), *_) = copied(DATA / "nccl", tmp_path / "reports")
    with closing(sqlite3.connect(file)) as base:
        base.execute("UPDATE NVTX_EVENTS SET jsonText = '{\"apiId\": 7}' WHERE domainId = 1 AND eventType = 59")
        base.execute(
            "INSERT INTO NVTX_EVENTS (start, eventType, globalTid, domainId) SELECT start, 901, globalTid, 1 "
            "FROM NVTX_EVENTS WHERE eventType = 75"
        )
        base.execute("CREATE TABLE NCCL_DEVICE_EVENTS (start INTEGER)")
        base.execute("INSERT INTO NCCL_DEVICE_EVENTS VALUES (1)")
        base.commit()
    run = whywait.open(tmp_path / "reports")
    assert [text for _, _, text in run.oddities if "ranges of NCCL" in text] == [
        f"1 {UNKNOWN}",
        "3 ranges of NCCL have numbers (apiId) that join them to what devices do, which are not read",
    ]
    assert run.nsight["unread"] == ["NCCL_DEVICE_EVENTS"]
    assert found(whywait.analyze(run)) == right("nccl")


def without(base, column):
    """Drop a column of all tables with events."""
    for table in tables(base):
        own = columns(base, table)
        if column in own and (table.endswith("_EVENTS") or table.startswith("CUPTI")):
            replaced(base, table, ", ".join(f'"{other}"' for other in own if other != column))


NAMELESS = ["which calls its rows are is not known"] * 3
REQUESTS = ["which calls complete which others is not known, so nobody waits in them"] * 3
MESSAGES = ["which messages there are is not known"]
LAUNCHES = ["which call launched what is known by order only"] * 3
BARRIERS = {"mpi_barrier_wait"}
ALL = BARRIERS | {"mpi_latesender"}
# Case, column, what is said of tables without it, and the kinds of waits that are left.
LACKING = [
    ("halo", "commHandle", ["all its calls are taken as on one communicator"] * 2, ALL),
    ("halo", "requestHandle", REQUESTS, BARRIERS),
    ("halo", "remoteRank", MESSAGES, BARRIERS),
    ("halo", "tag", MESSAGES, BARRIERS),
    ("halo", "textId", NAMELESS, set()),
    ("halo", "correlationId", LAUNCHES, ALL),
    ("halo", "size", [], ALL),
    ("halo", "eventClass", [], ALL),
    ("nccl", "correlationId", LAUNCHES, {"ccl_wait_nxn"}),
    ("nccl", "textId", ["names that are registered are not known"], {"ccl_wait_nxn"}),
    ("nccl", "domainId", [], {"ccl_wait_nxn"}),
]


@pytest.mark.parametrize(("name", "column", "words", "kinds"), LACKING)
def test_what_is_not_known_without_a_column_is_said(name, column, words, kinds, tmp_path):
    reports = copied(case(name), tmp_path / "reports")
    for _, file in reports:
        with closing(sqlite3.connect(file)) as base:
            without(base, column)
            base.commit()
    run = whywait.open(tmp_path / "reports")
    said = [text.partition(": it has no column ")[2] for _, _, text in run.oddities]
    assert [text for text in said if text] == [f"{column}: {consequence}" for consequence in words] * len(reports)
    assert not any("sends and receives" in what for what, _ in run.nsight["notes"])
    whole, partial = found(whywait.analyze(case(name))), found(whywait.analyze(run))
    assert {pattern for pattern, *_ in partial} == kinds
    assert set(partial) <= set(whole)
