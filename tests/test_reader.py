"""The reader gives what the official one gives, record by record; the writer writes what the official one reads."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import _otf2
import pyarrow as pa
import pytest
import whywait._native as native
from _otf2 import AttributeValue
from hypothesis import given, settings
from otf2.enums import Type

from tests import official
from tests.results import SHARED, UNRECORDED
from tests.strategies import DEFINITION_KINDS, EVENT_KINDS, Content, archives, base

ARCHIVES = sorted({*SHARED.glob("re*/*/archive/traces.otf2"), *SHARED.glob("samples/*/traces.otf2")})
EZTRACE = sorted(SHARED.glob("samples/eztrace-*/*.otf2"))
NAME = {"ids": lambda path: path.relative_to(SHARED).parts[1]}

each_archive = pytest.mark.parametrize("anchor", ARCHIVES, **NAME)
needs_shared = pytest.mark.skipif(not ARCHIVES, reason=UNRECORDED)
needs_print = pytest.mark.skipif(shutil.which("otf2-print") is None, reason="otf2-print (otf2-tools) is not installed")

# Kept for readers of OTF2 1.x, and derived from other fields: the official library does not hand them out.
COMPATIBILITY = {"region_type", "group_type_pre12", "string_value"}


def events(run: native.Run, index: int) -> list[official.Event]:
    """The events of a location in the form in which tests/official.py gives them."""
    rows = []
    table = pa.table(run.events(index))
    assert len(set(table.column_names)) == len(table.column_names), "two columns of one name"
    for row in table.to_pylist():
        time, kind, attributes = row.pop("time"), row.pop("type"), row.pop("attributes") or ()
        fields = {name: value for name, value in row.items() if value is not None}
        given = {a["attribute"]: (a["type"], a["bits"]) for a in attributes}
        rows.append(official.Event(time, kind, fields, given))
    return rows


def with_names_of(found: official.Event, expected: official.Event) -> official.Event:
    """Take `atomic_type` or `type_` for `type`: equal names of different things need something more."""
    fields = {}
    for name, value in found.fields.items():
        short = [e for e in expected.fields if name == f"{e}_" or name.endswith(f"_{e}")]
        fields[name if name in expected.fields or not short else short[0]] = value
    return found._replace(fields=fields)


def check(anchor: Path, archive: official.Archive) -> None:
    """Compare all definitions and all events."""
    run = native.Run(str(anchor))
    assert set(run.definition_kinds()) == archive.definitions.keys()
    for kind, expected in archive.definitions.items():
        found = pa.table(run.definitions(kind)).to_pylist()
        found = [{name: value for name, value in row.items() if name not in COMPATIBILITY} for row in found]
        assert found == expected, kind
    locations = pa.table(run.locations()).to_pylist()
    assert {row["id"] for row in locations} == archive.events.keys()
    for row in locations:
        expected, found = archive.events[row["id"]], events(run, row["location"])
        for n, (a, b) in enumerate(zip(found, expected, strict=False)):
            assert with_names_of(a, b) == b, f"event {n} of location {row['id']}"
        assert len(found) == len(expected)


def long_archive() -> Content:
    """An archive of several chunks, of records of every length, some with attributes."""
    names = ["main", "a function with a name so long that it hardly ends", *map(str, range(300))]
    value = AttributeValue()
    value.uint64 = 0x123456789ABCDEF0
    events = []
    for n in range(40_000):
        attributes = [(n % 7, Type.UINT64, value)] if n % 5 == 0 else []
        kind, fields = [
            ("Enter", [n % 300]),
            ("ProgramBegin", [n % 300, [n % 2] * (n % 90)]),
            ("MpiCollectiveBegin", []),
        ][n % 3]
        events.append((1 + n // 2, attributes, kind, fields))
    content = Content(base({0: len(events)}), {0: events})
    content.definitions += [("String", [n + 1, name]) for n, name in enumerate(names)]
    return content


def printed(anchor: Path) -> list[tuple]:
    """What otf2-print says of the events: kind, location, time, and the numbers in its text by their names."""
    # It warns of what is odd about these archives, and goes on.
    text = subprocess.run(["otf2-print", str(anchor)], capture_output=True, text=True, check=False).stdout
    rows = []
    for kind, location, time, rest in re.findall(r"^([A-Z_]+) +(\d+) +(\d+)  ?(.*)$", text, re.MULTILINE):
        found = dict(re.findall(r"(Region|Communicator): .*?<(\d+)>", rest))
        found |= dict(re.findall(r"(Receiver|Sender|Tag|Length|Request|Sent|Received): (\d+)", rest))
        rows.append((kind, int(location), int(time), {name: int(value) for name, value in found.items()}))
    return rows


PRINTED = {
    "region": "Region",
    "communicator": "Communicator",
    "receiver": "Receiver",
    "sender": "Sender",
    "msg_tag": "Tag",
    "msg_length": "Length",
    "request_id": "Request",
    "size_sent": "Sent",
    "size_received": "Received",
}


@needs_print
@pytest.mark.skipif(not EZTRACE, reason=UNRECORDED)
@pytest.mark.parametrize("anchor", EZTRACE, **NAME)
def test_archive_that_the_official_reader_refuses(anchor):
    """Duplicate groups, wrong numbers of events, huge ids: everything is read, and what was odd is listed."""
    run = native.Run(str(anchor))
    assert any("defined more than once" in text for _, _, text in run.oddities())
    by_location: dict[int, list] = {}
    for kind, location, time, fields in printed(anchor):
        by_location.setdefault(location, []).append((kind, time, fields))
    for row in pa.table(run.locations()).to_pylist():
        found = [
            (upper(e.kind), e.time, {PRINTED[n]: v for n, v in e.fields.items() if n in PRINTED})
            for e in events(run, row["location"])
        ]
        assert found == by_location[row["id"]]


def upper(kind: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", kind).upper()


def check_copy(anchor: Path, directory: Path) -> None:
    """Read an archive, copy it through the program, and let the official reader compare both."""
    original = official.read(anchor)
    check(anchor, original)
    native.copy_archive(str(anchor), str(directory))
    copy = official.read(directory / anchor.name)
    assert copy.definitions == original.definitions
    assert copy.events.keys() == original.events.keys()
    for location, expected in original.events.items():
        assert copy.events[location] == expected, f"location {location}"


def test_a_location_of_many_chunks_is_read_as_by_the_official_reader(tmp_path):
    """Chunks of the smallest size, with times, attributes and long records up to their borders."""
    anchor = long_archive().write(tmp_path)
    assert (tmp_path / "traces" / "0.evt").stat().st_size > 3 * 256 * 1024
    (tmp_path / "copy").mkdir()
    check_copy(anchor, tmp_path / "copy")


@needs_shared
@each_archive
def test_a_recorded_archive_and_its_copy(anchor, tmp_path):
    check_copy(anchor, tmp_path)


@settings(max_examples=60)
@given(content=archives())
def test_a_random_archive_and_its_copy(content):
    with tempfile.TemporaryDirectory() as source, tempfile.TemporaryDirectory() as target:
        check_copy(content.write(Path(source)), Path(target))


@needs_print
@needs_shared
@each_archive
def test_otf2_print_accepts_a_copy(anchor, tmp_path):
    native.copy_archive(str(anchor), str(tmp_path))
    run = ["otf2-print", "--silent", str(tmp_path / anchor.name)]
    result = subprocess.run(run, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "error" not in result.stderr.lower()


def test_random_archives_hold_every_kind_of_record():
    """The strategy leaves nothing out that the official library can write and read back."""
    assert {"Metric", "ProgramBegin", "RmaAtomic", "NonBlockingCollectiveComplete", "IoSeek"} <= EVENT_KINDS.keys()
    writers = {name.removeprefix("EvtWriter_") for name in dir(_otf2) if name.startswith("EvtWriter_")}
    others = {n for n in writers - EVENT_KINDS.keys() if not n.startswith(("Get", "Set", "Clear", "Rewind", "Store"))}
    assert not others
    assert len(DEFINITION_KINDS) == 38
