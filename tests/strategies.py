"""Random archives, written by the official library from raw records: every kind of record, whatever it refers to.

What fields a record has is asked of the library itself, so that no list here can miss one.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import _otf2
from _otf2.Config import EnumBitset
from hypothesis import strategies as st
from otf2.enums import Compression, FileMode, FileSubstrate, FlushType, MappingType, Type

if TYPE_CHECKING:
    from pathlib import Path

# Kinds of definition that the content of an archive hangs on: exactly these, and not at random.
BASE = {"ClockProperties", "String", "SystemTreeNode", "LocationGroup", "Location"}
# Kinds that share the numbers of another.
SHARED_IDS = {"MetricInstance": "MetricClass", "InterComm": "Comm", "IoDirectory": "IoRegularFile"}
# Number of bits of a typed value; all others are references.
WIDTH = {"8": 8, "16": 16, "32": 32, "64": 64, "FLOAT": 32, "DOUBLE": 64, "LOCATION": 64}
TYPES = [value for number, value in sorted(Type._names.items()) if number]
KEPT: list[Any] = []  # functions that the library may call


def kinds(module: Any, prefix: str, writer: str) -> dict[str, list[tuple[str, Any]]]:
    """The names and C types of the fields of all records that can be written and read back."""
    found = {}
    for name in dir(module):
        match = re.fullmatch(rf"_{prefix}_FP_(\w+)", name)
        if match and hasattr(_otf2, writer + match[1]):
            function = getattr(_otf2, writer + match[1])
            skip = {"writerHandle", "writer", "attributeList", "time"}
            names = [p for p in inspect.signature(function).parameters if p not in skip]
            types = list(getattr(module, name)._argtypes_)[1 if "Def" in writer else 4 :]
            # An array comes as a number and a pointer, and two arrays may share their number.
            fields: list[Any] = []
            for position, kind in enumerate(types):
                pointers = types[position + 1 : position + 2]
                if not (pointers and hasattr(pointers[0], "contents") and not hasattr(kind, "contents")):
                    fields.append(kind)
            found[match[1]] = list(zip(names, fields, strict=True))
    return found


# The package hides these modules behind classes of the same name.
DEFINITION_KINDS = kinds(
    sys.modules["_otf2.GlobalDefReaderCallbacks"], "GlobalDefReaderCallback", "GlobalDefWriter_Write"
)
EVENT_KINDS = kinds(sys.modules["_otf2.GlobalEvtReaderCallbacks"], "GlobalEvtReaderCallback", "EvtWriter_")


def integers(width: int) -> st.SearchStrategy[int]:
    """Numbers of some bits: small, of every length, and undefined."""
    top = (1 << width) - 1
    return st.one_of(st.integers(0, 9), st.integers(0, top), st.sampled_from((0, 255, 256, 65535, top - 1, top)).map(
        lambda n: min(n, top)
    ))  # fmt: skip


def value(kind: Any) -> st.SearchStrategy[Any]:
    """Draw a value of a C type as the writer takes it."""
    if hasattr(kind, "contents"):
        return st.lists(value(kind._type_), max_size=4)
    if isinstance(kind, type) and issubclass(kind, EnumBitset):
        return st.lists(st.sampled_from(sorted(kind._names))).map(lambda bits: kind(sum(set(bits))))
    if hasattr(kind, "_names"):
        return st.sampled_from(sorted(kind._names)).map(kind)
    if kind is ctypes.c_char_p:
        return st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=300)
    width = 8 * ctypes.sizeof(kind)
    if kind(-1).value < 0:
        return st.one_of(st.integers(-9, 9), st.integers(-(1 << width - 1), (1 << width - 1) - 1))
    return integers(width)


@st.composite
def typed_value(draw) -> tuple[Any, Any]:
    """Draw a type and a value of it."""
    name = draw(st.sampled_from(TYPES))
    number = re.search(r"\d+$|FLOAT|DOUBLE|^LOCATION$", name)
    union = _otf2.AttributeValue()
    union.uint64 = draw(integers(WIDTH[number[0]] if number else 32))
    return getattr(Type, name), union


@st.composite
def metric_values(draw) -> tuple[list[Any], list[Any]]:
    """Draw the types and values of a metric event."""
    types = draw(st.lists(st.sampled_from((Type.INT64, Type.UINT64, Type.DOUBLE)), max_size=5))
    values = []
    for _ in types:
        values.append(_otf2.MetricValue())
        values[-1].unsigned_int = draw(integers(64))
    return types, values


@st.composite
def record(draw, fields: list[tuple[str, Any]], number: int = 0) -> list[Any]:
    """Draw the fields of a record; `number` is what it is called if it has an id."""
    names = [name for name, _ in fields]
    if "metricValues" in names:
        return [draw(integers(32)), *draw(metric_values())]
    if "types" in names:  # an I/O paradigm with properties
        properties = draw(st.lists(st.sampled_from(sorted(_otf2.IoParadigmProperty._names)), unique=True))
        pairs = [draw(typed_value()) for _ in properties]
        lists = [list(map(_otf2.IoParadigmProperty, properties)), [t for t, _ in pairs], [v for _, v in pairs]]
        return [number, *(draw(value(kind)) for _, kind in fields[1:-3]), *lists]
    values = [number if name == "self" else None for name, _ in fields]
    if names[-2:] == ["type", "value"]:
        values[-2:] = draw(typed_value())
    return [draw(value(kind)) if v is None else v for v, (_, kind) in zip(values, fields, strict=True)]


@dataclass
class Content:
    """What is in an archive."""

    definitions: list[tuple[str, list[Any]]] = field(default_factory=list)
    # By location id: (time, attributes as (id, type, value), kind, fields)
    events: dict[int, list[tuple[int, list[tuple[int, Any, Any]], str, list[Any]]]] = field(default_factory=dict)
    maps: dict[int, dict[str, list[int]]] = field(default_factory=dict)  # by location and what is mapped
    clocks: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def write(self, directory: Path) -> Path:
        """Write it with the official library."""
        handle = _otf2.Archive_Open(
            str(directory), "traces", FileMode.WRITE, 256 * 1024, 256 * 1024, FileSubstrate.POSIX, Compression.NONE
        )
        KEPT[:] = [_otf2.FlushCallbacks(pre_flush=lambda *_: FlushType.FLUSH, post_flush=None)]
        _otf2.Archive_SetFlushCallbacks(handle, KEPT[0], None)
        _otf2.Archive_SetSerialCollectiveCallbacks(handle)
        _otf2.Archive_OpenEvtFiles(handle)
        for location, events in self.events.items():
            writer = _otf2.Archive_GetEvtWriter(handle, location)
            for time, attributes, kind, values in events:
                given = _otf2.AttributeList_New() if attributes else None
                for attribute in attributes:
                    _otf2.AttributeList_AddAttribute(given, *attribute)
                getattr(_otf2, f"EvtWriter_{kind}")(writer, given, time, *values)
                if given:
                    _otf2.AttributeList_Delete(given)
            _otf2.Archive_CloseEvtWriter(handle, writer)
        _otf2.Archive_CloseEvtFiles(handle)
        _otf2.Archive_OpenDefFiles(handle)
        for location in self.events:
            writer = _otf2.Archive_GetDefWriter(handle, location)
            for mapped, numbers in self.maps.get(location, {}).items():
                table = _otf2.IdMap_CreateFromUint64Array(numbers, optimizeSize=len(numbers) % 2 == 0)
                if table:  # the identity is none
                    _otf2.DefWriter_WriteMappingTable(writer, getattr(MappingType, mapped), table)
                    _otf2.IdMap_Free(table)
            for time, offset in self.clocks.get(location, ()):
                _otf2.DefWriter_WriteClockOffset(writer, time, offset, 0.0)
            _otf2.Archive_CloseDefWriter(handle, writer)
        _otf2.Archive_CloseDefFiles(handle)
        writer = _otf2.Archive_GetGlobalDefWriter(handle)
        for kind, values in self.definitions:
            getattr(_otf2, f"GlobalDefWriter_Write{kind}")(writer, *values)
        _otf2.Archive_CloseGlobalDefWriter(handle, writer)
        _otf2.Archive_Close(handle)
        return directory / "traces.otf2"


def base(locations: dict[int, int]) -> list[tuple[str, list[Any]]]:
    """The definitions that every archive needs, for locations with so many events."""
    process = _otf2.LocationGroupType.PROCESS
    return [
        ("ClockProperties", [1000, 1, 1 << 40, 0]),
        ("String", [0, ""]),
        ("SystemTreeNode", [0, 0, 0, 0xFFFFFFFF]),
        ("LocationGroup", [0, 0, process, 0, 0xFFFFFFFF]),
        *(("Location", [ref, 0, _otf2.LocationType.CPU_THREAD, n, 0]) for ref, n in locations.items()),
    ]


@st.composite
def attribute_lists(draw) -> list[tuple[int, Any, Any]]:
    """Draw the attributes of an event, no attribute twice."""
    return [(ref, *draw(typed_value())) for ref in draw(st.lists(st.integers(0, 9), unique=True, max_size=3))]


@st.composite
def archives(draw) -> Content:
    """Draw an archive."""
    content = Content()
    for ref in draw(st.lists(st.one_of(st.integers(0, 5), integers(63)), min_size=1, max_size=3, unique=True)):
        time, events = draw(st.integers(1, 1 << 60)), []
        start = time
        for _ in range(draw(st.integers(0, 25))):
            time += draw(st.one_of(st.just(0), st.integers(0, 1 << 40)))
            kind = draw(st.sampled_from(sorted(EVENT_KINDS)))
            values = draw(record(EVENT_KINDS[kind]))
            if kind == "BufferFlush":
                values = [time + draw(st.integers(0, 1000))]
            events.append((time, draw(st.one_of(st.just([]), attribute_lists())), kind, values))
        content.events[ref] = events
        mapped = draw(st.sets(st.sampled_from(sorted(MappingType._names.values())), max_size=4))
        sizes = st.integers(1, 12).flatmap(lambda n: st.permutations(range(n)))
        content.maps[ref] = {what: draw(sizes) for what in sorted(mapped)}
        times = draw(st.lists(st.integers(max(0, start - 1000), time + 1000), unique=True, max_size=4))
        content.clocks[ref] = [(t, draw(st.integers(0, 1 << 40))) for t in sorted(times)]
    content.definitions = base({ref: len(events) for ref, events in content.events.items()})
    numbers: dict[str, int] = {}
    for kind in draw(st.lists(st.sampled_from(sorted(DEFINITION_KINDS.keys() - BASE)), max_size=20)):
        space = SHARED_IDS.get(kind, kind)
        numbers[space] = numbers.get(space, -1) + 1
        content.definitions.append((kind, draw(record(DEFINITION_KINDS[kind], numbers[space]))))
    return content
