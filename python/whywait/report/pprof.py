"""Call stacks in the file format of pprof: a compressed Protocol Buffers message (profile.proto)."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from whywait.report.stacks import stacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whywait.model.result import ResultData
    from whywait.report.stacks import Frame

# Numbers of fields in the messages of the format.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS, _DURATION = 1, 2, 4, 5, 6, 10
_NANOSECONDS = 1e9


def pprof(result: ResultData) -> bytes:
    """Return the stacks of all locations with time, critical path, and costs, labelled with rank and thread."""
    strings: dict[str, int] = {"": 0}
    frames: dict[Frame, int] = {}

    def text(string: str) -> int:
        return strings.setdefault(string, len(strings))

    out = bytearray()
    for name in ("time", "critical", "cost"):
        out += _message(_SAMPLE_TYPE, _number(1, text(name)) + _number(2, text("nanoseconds")))
    rank, thread = text("rank"), text("thread")
    for stack, location, values in stacks(result):
        # The innermost function comes first; numbers begin with 1.
        numbers = [frames.setdefault(frame, len(frames) + 1) for frame in stack][::-1]
        amounts = [round(value * _NANOSECONDS) for value in (values.time, values.critical, values.cost)]
        sample = _packed(1, numbers) + _packed(2, amounts)
        for label, number in ((rank, result.places.rank[location]), (thread, result.places.thread[location])):
            sample += _message(3, _number(1, label) + _number(3, int(number)))
        out += _message(_SAMPLE, sample)
    for frame, at in frames.items():
        line = _number(1, at) + _number(2, frame.line)
        out += _message(_LOCATION, _number(1, at) + _message(4, line))
        function = _number(1, at) + _number(2, text(frame.name)) + _number(3, text(frame.name))
        out += _message(_FUNCTION, function + _number(4, text(frame.file)) + _number(5, frame.line))
    for string in strings:
        out += _message(_STRINGS, string.encode())
    out += _number(_DURATION, round(result.facts["length"] * _NANOSECONDS))
    return gzip.compress(bytes(out), mtime=0)


def _varint(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; negative ones as 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number) if number else b""


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, numbers: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, numbers)))
