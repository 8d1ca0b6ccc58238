"""Archives as the official library sees them: every record with its raw fields.

The `otf2` package turns references into objects and refuses what it cannot resolve. Below it the same library hands out
the numbers as they are after mapping and clock correction; that is what another reader has to agree with.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from typing import Any, NamedTuple

import _otf2

DEFINITIONS = re.compile(r"GlobalDefReaderCallbacks_Set(\w+)Callback")
EVENTS = re.compile(r"GlobalEvtReaderCallbacks_Set(\w+)Callback")


class Event(NamedTuple):
    """An event record."""

    time: int
    kind: str
    fields: dict[str, Any]
    attributes: dict[int, tuple[str, int]]  # {attribute: (type, bits)}


class Archive(NamedTuple):
    """Everything in an archive: definitions by kind, events by location id."""

    definitions: dict[str, list[dict[str, Any]]]
    events: dict[int, list[Event]]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def field_names(function: str) -> list[str]:
    """Names of the fields of a record, which are the parameters of the function that writes it."""
    skip = {"writerHandle", "writer", "attributeList", "time"}
    return [snake(p) for p in inspect.signature(getattr(_otf2, function)).parameters if p not in skip]


# The library remembers the last of several names; this one is deprecated.
NAMES = {("LocationType", 2): "ACCELERATOR_STREAM"}


def plain(value: Any) -> Any:
    """Turn enums into their names (what has none into its number as a text), arrays into lists."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(type(value), "_names"):
        return NAMES.get((type(value).__name__, value.value)) or type(value)._names.get(value.value, str(value.value))
    return value.value if isinstance(value, ctypes._SimpleCData) else value


def bits(value: Any, kind: str) -> int:
    """The 64 bits in which a value of an attribute, a property or a metric is kept."""
    if isinstance(value, _otf2.MetricValue):
        return value.unsigned_int
    if re.fullmatch(r"INT\d+", kind):  # as many bits as the type has
        return getattr(value, f"u{kind.lower()}")
    if kind.startswith("UINT"):
        return getattr(value, kind.lower())
    return {"FLOAT": value.uint32, "DOUBLE": value.uint64, "LOCATION": value.uint64}.get(kind, value.uint32)


def typed(kinds: list[Any], values: list[Any]) -> list[dict[str, Any]]:
    return [{"type": plain(t), "bits": bits(v, plain(t))} for t, v in zip(kinds, values, strict=True)]


def record_fields(names: list[str], values: tuple) -> dict[str, Any]:
    """The fields of a record; values that carry their type become a list of type and bits."""
    fields = dict(zip(names, values, strict=True))
    if isinstance(fields.get("value"), _otf2.AttributeValue):
        fields["value"] = typed([fields.pop("type")], [fields["value"]])
    elif "metric_values" in fields:
        fields["metric_values"] = typed(fields.pop("type_ids"), fields["metric_values"])
    elif "types" in fields:
        keys = [{"property": plain(key)} for key in fields["properties"]]
        values = typed(fields.pop("types"), fields.pop("values"))
        fields["properties"] = [key | value for key, value in zip(keys, values, strict=True)]
    return {key: plain(value) for key, value in fields.items()}


def read(anchor: Any) -> Archive:
    """Read a whole archive."""
    archive = Archive({}, {})
    handle = _otf2.Reader_Open(str(anchor))
    _otf2.Reader_SetSerialCollectiveCallbacks(handle)
    _definitions(handle, archive)
    for location in archive.definitions["Location"]:
        _otf2.Reader_SelectLocation(handle, location["id"])
        archive.events[location["id"]] = []
    _events(handle, archive)
    _otf2.Reader_Close(handle)
    return archive


def _definitions(handle: Any, archive: Archive) -> None:
    def recorder(kind: str) -> Any:
        # ClockProperties and the rest are written by functions of the same name.
        names = ["id" if n == "self" else n for n in field_names(f"GlobalDefWriter_Write{kind}")]

        def record(_: Any, *values: Any) -> None:
            archive.definitions.setdefault(kind, []).append(record_fields(names, values))

        return record

    reader = _otf2.Reader_GetGlobalDefReader(handle)
    callbacks = _otf2.GlobalDefReaderCallbacks_New()
    kept = []  # the library keeps its hands on the functions, not on the objects
    for name in dir(_otf2):
        if (match := DEFINITIONS.fullmatch(name)) and hasattr(_otf2, f"GlobalDefWriter_Write{match[1]}"):
            kept.append(recorder(match[1]))
            getattr(_otf2, name)(callbacks, kept[-1])
    _otf2.Reader_RegisterGlobalDefCallbacks(handle, reader, callbacks, archive)
    _otf2.Reader_ReadAllGlobalDefinitions(handle, reader)
    _otf2.GlobalDefReaderCallbacks_Delete(callbacks)
    _otf2.Reader_CloseGlobalDefReader(handle, reader)


def _events(handle: Any, archive: Archive) -> None:
    def recorder(kind: str) -> Any:
        names = field_names(f"EvtWriter_{kind}")

        def record(location: int, time: int, _: Any, attributes: Any, *values: Any) -> None:
            fields = record_fields(names, values)
            if kind == "BufferFlush":
                fields["stop_time"] = signed(fields["stop_time"])
            archive.events[location].append(Event(signed(time), kind, fields, _attributes(attributes)))

        return record

    try:
        _otf2.Reader_OpenDefFiles(handle)
        local_definitions = True
    except _otf2.Error:
        local_definitions = False  # no location has any
    _otf2.Reader_OpenEvtFiles(handle)
    for location in archive.events:
        if local_definitions and (reader := _otf2.Reader_GetDefReader(handle, location)):
            _otf2.Reader_ReadAllLocalDefinitions(handle, reader)
            _otf2.Reader_CloseDefReader(handle, reader)
        _otf2.Reader_GetEvtReader(handle, location)
    if local_definitions:
        _otf2.Reader_CloseDefFiles(handle)
    reader = _otf2.Reader_GetGlobalEvtReader(handle)
    callbacks = _otf2.GlobalEvtReaderCallbacks_New()
    kept = []
    for name in dir(_otf2):
        if (match := EVENTS.fullmatch(name)) and hasattr(_otf2, f"EvtWriter_{match[1]}"):
            kept.append(recorder(match[1]))
            getattr(_otf2, name)(callbacks, kept[-1])
    _otf2.GlobalEvtReader_SetCallbacks(reader, callbacks, None)
    while _otf2.GlobalEvtReader_ReadEvents(reader, 10000) == 10000:
        pass
    _otf2.GlobalEvtReaderCallbacks_Delete(callbacks)
    _otf2.Reader_CloseGlobalEvtReader(handle, reader)
    _otf2.Reader_CloseEvtFiles(handle)


def signed(time: int) -> int:
    """Clock correction may lead to before the begin of the clock, which the library wraps around."""
    return time - (1 << 64) if time >> 63 else time


def _attributes(attributes: Any) -> dict[int, tuple[str, int]]:
    found = {}
    for i in range(_otf2.AttributeList_GetNumberOfElements(attributes) if attributes else 0):
        attribute, kind, value = _otf2.AttributeList_GetAttributeByIndex(attributes, i)
        found[attribute] = plain(kind), bits(value, plain(kind))
    return found
