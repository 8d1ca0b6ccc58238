"""Cube 4 files (``.cubex``) of Score-P, Scalasca, TAU and CubeLib: their dimensions, and the numbers that they store.

Read here are versions 4.0 and later: a tar archive with the dimensions in XML (``anchor.xml``), and for each metric an
index of its rows and a matrix of values. Metrics that are expressions of others (CubePL) have no values.

The writers are looser than the formats that they use: checksums of members are wrong, blocks of zeros stand between
members, sizes are those before compression, and attributes lack quotes. None of this is an error here.
"""

from __future__ import annotations

import gzip
import mmap
import re
import zlib
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

_BLOCK = 512
_GZIP = b"\x1f\x8b"
_INDEX, _DATA, _COMPRESSED = b"CUBEX.INDEX", b"CUBEX.DATA", b"ZCUBEX.DATA"
# An index begins with the marker, 1 in the byte order of the writer, the version, and its form.
_INDEX_HEAD = len(_INDEX) + 7
_SPARSE, _DENSE = 1, 3

# Types of one number. FLOAT has 8 bytes as well.
_TYPES = {
    "DOUBLE": "f8", "FLOAT": "f8", "MINDOUBLE": "f8", "MAXDOUBLE": "f8",
    "UINT64": "u8", "UNSIGNED INTEGER": "u8", "INT64": "i8", "SIGNED INTEGER": "i8", "INTEGER": "i8",
    "UINT32": "u4", "UNSIGNED INT": "u4", "INT32": "i4", "SIGNED INT": "i4", "INT": "i4",
    "UINT16": "u2", "UNSIGNED SHORT INT": "u2", "INT16": "i2", "SIGNED SHORT INT": "i2", "SHORT INT": "i2",
    "UINT8": "u1", "CHAR": "u1", "INT8": "i1",
}  # fmt: skip
# Values of these are minima and maxima, which have no sums.
_EXTREMES = frozenset({"MINDOUBLE", "MAXDOUBLE"})

# Attributes that CubeW and CubeLib write without quotes; characters that XML forbids; ampersands that stand for
# themselves.
_UNQUOTED = re.compile(rb"(<cubepl\w*\s[^<>]*?\w=)([^\s\"'<>]+)")
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_BARE = re.compile(rb"&(?!\w+;|#\d+;|#x[0-9a-fA-F]+;)")


class CubeError(ValueError):
    """The file cannot be read; the text says why."""


class Metric(NamedTuple):
    """A metric.

    Attributes
    ----------
    number
        Its number, which also names its members of the archive.
    name, display_name
        The unique name, and the name for people.
    unit
        ``sec``, ``occ``, ``bytes``, ...
    type
        The type of its values, such as ``DOUBLE``.
    kind
        How values relate to those of callees: ``INCLUSIVE``, ``EXCLUSIVE``, ``SIMPLE`` (not at all), or a kind of
        derived metrics.
    above
        The numbers of the metrics above it, from the root down.
    """

    number: int
    name: str
    display_name: str
    unit: str
    type: str
    kind: str
    above: tuple[int, ...] = ()

    @property
    def is_sum(self) -> bool:
        """Whether values are numbers that can be added."""
        return self.type in _TYPES and self.type not in _EXTREMES

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers."""
        return _TYPES.get(self.type, "f8")[0] != "f"


class Region(NamedTuple):
    """A function or construct; texts are empty and lines -1 where the file does not have them."""

    number: int
    name: str
    mangled_name: str
    paradigm: str
    role: str
    file: str
    begin: int
    end: int


class SystemNode(NamedTuple):
    """A machine, node or another part of the system."""

    number: int
    name: str
    kind: str


class Location(NamedTuple):
    """A thread, a stream of a device or another place of values."""

    number: int
    name: str
    kind: str
    thread: int


class Group(NamedTuple):
    """A process or another group of locations, with the parts of the system it is in, from the root down."""

    name: str
    kind: str
    rank: int
    above: tuple[SystemNode, ...]
    members: tuple[Location, ...]


class Cube:
    """A Cube 4 file.

    Attributes
    ----------
    attributes
        What the file says about itself.
    metrics
        The metrics, in the order of their tree.
    regions
        The regions by their number.
    parents, callees
        For each node of the call tree in pre-order, the position of its parent (-1 for roots) and its region.
    groups
        The groups of locations, in the order of the system tree.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CubeError
        If the file is not a Cube 4 file, or damaged.
    OSError
        If the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            self._bytes: mmap.mmap | bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        self._members = dict(_members(self._bytes))
        if "anchor.xml" not in self._members:
            raise CubeError(
                "it has no anchor.xml, which writers put last: the file is incomplete" if self._members
                else "it is no Cube 4 file"
            )  # fmt: skip
        root = _parsed(self._bytes[self._members["anchor.xml"]])
        self.attributes = {one.get("key", ""): one.get("value", "") for one in root.findall("attr")}
        self.metrics = list(_metrics(root))
        self.regions = {region.number: region for region in map(_region, root.iterfind("program/region"))}
        self._read_nodes(root)
        self.groups = list(_groups(root))
        numbers = sorted(location.number for group in self.groups for location in group.members)
        if len(set(numbers)) < len(numbers):
            raise CubeError("two locations have the same number")
        self._locations = len(numbers)

    def _read_nodes(self, root: ET.Element) -> None:
        """Read the call tree."""
        program = root.find("program")
        parents: list[int] = []
        callees: list[int] = []
        numbers: list[int] = []
        children: list[list[int]] = []
        roots: list[int] = []
        stack = [(-1, one) for one in reversed(program.findall("cnode"))] if program is not None else []
        while stack:
            parent, element = stack.pop()
            here = len(parents)
            callee = _integer(element, "calleeId")
            if callee not in self.regions:
                raise CubeError(f"a call path has region {callee}, which is not defined")
            parents.append(parent)
            callees.append(callee)
            numbers.append(_integer(element, "id"))
            children.append([])
            (children[parent] if parent >= 0 else roots).append(here)
            stack.extend((here, one) for one in reversed(element.findall("cnode")))
        self.parents = np.array(parents, np.int64)
        self.callees = callees
        # Rows of inclusive metrics are in an order of their own: all children of a node, then those of each child.
        wide = []
        for one in roots:
            wide.append(one)
            inner = [one]
            while inner:
                below = children[inner.pop()]
                wide.extend(below)
                inner.extend(reversed(below))
        self._orders = {
            "INCLUSIVE": np.array(wide, np.int64),
            "EXCLUSIVE": np.arange(len(parents)),
            "SIMPLE": np.argsort(np.array(numbers, np.int64), kind="stable"),
        }

    def values(self, metric: Metric) -> npt.NDArray[np.float64] | None:
        """Return the values of a metric by call path and location, as stored; None if the file has none of it.

        Rows are the nodes in pre-order, columns the locations in the order of their numbers.

        Raises
        ------
        CubeError
            If they are damaged.
        """
        index, data = (self._members.get(f"{metric.number}.{part}") for part in ("index", "data"))
        if index is None or data is None or metric.kind not in self._orders or metric.type not in _TYPES:
            return None
        try:
            return self._values(metric, self._bytes[index], self._bytes[data])
        except CubeError as error:
            raise CubeError(f"{metric.name}: {error}") from None

    def _values(self, metric: Metric, index: bytes, data: bytes) -> npt.NDArray[np.float64]:
        order = self._orders[metric.kind]
        rows, byte_order = _rows(index, order.size)
        dtype = np.dtype(byte_order + _TYPES[metric.type])
        size = self._locations * dtype.itemsize
        if data.startswith(_COMPRESSED):
            body = _decompressed(data, rows.size, size, byte_order)
        elif data.startswith(_DATA):
            # Rows at the end that were never written may be missing, and unused bytes may follow.
            body = data[len(_DATA) : len(_DATA) + rows.size * size].ljust(rows.size * size, b"\0")
        else:
            raise CubeError("its data have no marker")
        values = np.zeros((order.size, self._locations))
        values[order[rows]] = np.frombuffer(body, dtype).reshape(rows.size, self._locations)
        return values


def _members(content: mmap.mmap | bytes) -> Iterator[tuple[str, slice]]:
    """Yield the names and places of the members of the tar archive."""
    at, end = 0, len(content)
    long_size: int | None = None
    while at + _BLOCK <= end:
        header = content[at : at + _BLOCK]
        at += _BLOCK
        if not header.strip(b"\0"):
            # Writers also put a block of zeros after a member whose size is a multiple of the block.
            continue
        if header[257:262] != b"ustar":
            raise CubeError(
                f"there is no member at byte {at - _BLOCK}: the file is damaged" if at > _BLOCK
                else _other_format(header)
            )  # fmt: skip
        # Tools that pack a directory put it before the names.
        name = header[:100].partition(b"\0")[0].decode(errors="replace").removeprefix("./")
        size = _octal(header[124:136]) if long_size is None else long_size
        body = slice(at, at + size)
        long_size = None
        if header[156:157] == b"x":
            # The size of the next member, if it has too many digits for the header.
            found = re.search(rb"\d+ size=(\d+)\n", content[body])
            long_size = int(found[1]) if found else None
        elif content[at : at + len(_COMPRESSED)] == _COMPRESSED:
            # The header may have the size before compression.
            size = _compressed_size(content, at, size)
            body = slice(at, at + size)
        if body.stop > end:
            raise CubeError(f"{name or 'a member'} ends after {end - at:,} of {size:,} bytes: the file is incomplete")
        if name and header[156:157] in b"0\0":
            yield name, body
        at += -(-size // _BLOCK) * _BLOCK


def _octal(digits: bytes) -> int:
    if digits[0] & 0x80:
        return int.from_bytes(digits[1:], "big")
    try:
        return int(digits.strip(b" \0") or b"0", 8)
    except ValueError:
        raise CubeError("the size of a member is no number: the file is damaged") from None


def _other_format(head: bytes) -> str:
    if b"<cube" in head or head.lstrip().startswith(b"<?xml"):
        return "it is a Cube 3 file; only Cube 4 (.cubex) is read"
    return "it is no Cube 4 file"


def _compressed_size(content: mmap.mmap | bytes, at: int, declared: int) -> int:
    """Return the size of a member with compressed rows, whichever byte order it has."""
    start = at + len(_COMPRESSED)
    for order in "<>":
        count = int.from_bytes(content[start : start + 8], "little" if order == "<" else "big")
        if start + 8 + 24 * count <= len(content):
            triples = np.frombuffer(content[start + 8 : start + 8 + 24 * count], order + "u8").reshape(-1, 3)
            ends = triples[:, 1].astype(np.float64) + triples[:, 2]
            return len(_COMPRESSED) + 8 + 24 * count + int(ends.max(initial=0.0))
    return declared


def _parsed(anchor: bytes) -> ET.Element:
    """Return the XML of the dimensions."""
    try:
        if anchor.startswith(_GZIP):
            anchor = gzip.decompress(anchor)
    except (OSError, EOFError, zlib.error) as error:
        raise CubeError(f"anchor.xml cannot be decompressed: {error}") from None
    try:
        # Expat limits the expansion of entities.
        root = ET.fromstring(anchor)  # noqa: S314
    except ET.ParseError:
        text = _BARE.sub(b"&amp;", _FORBIDDEN.sub(b"?", _UNQUOTED.sub(rb'\1"\2"', anchor)))
        try:
            root = ET.fromstring(text.decode(errors="replace"))  # noqa: S314
        except (ET.ParseError, ValueError) as error:
            raise CubeError(f"anchor.xml: {error}") from None
    except (LookupError, ValueError) as error:  # an unknown encoding
        raise CubeError(f"anchor.xml: {error}") from None
    if root.tag != "cube":
        raise CubeError(f"anchor.xml has <{root.tag}> in place of <cube>")
    return root


def _metrics(root: ET.Element) -> Iterator[Metric]:
    above: tuple[int, ...] = ()
    stack = [(element, above) for element in reversed(root.findall("metrics/metric"))]
    while stack:
        element, above = stack.pop()
        number = _integer(element, "id")
        name = _text(element, "uniq_name") or _text(element, "disp_name")
        yield Metric(
            number,
            name,
            _text(element, "disp_name") or name,
            _text(element, "uom"),
            (_text(element, "dtype") or "DOUBLE").upper(),
            # Version 4.0 has it for some metrics only.
            (element.get("type") or "EXCLUSIVE").upper(),
            above,
        )
        stack.extend((child, (*above, number)) for child in reversed(element.findall("metric")))


def _region(element: ET.Element) -> Region:
    name = _text(element, "name")
    return Region(
        _integer(element, "id"), name, _text(element, "mangled_name") or name, _text(element, "paradigm"),
        _text(element, "role"), element.get("mod", ""), _integer(element, "begin", -1), _integer(element, "end", -1),
    )  # fmt: skip


# The parts of the system, of version 4.0 and of later ones.
_NODES = frozenset({"systemtreenode", "machine", "node"})
_GROUPS = {"locationgroup": "location", "process": "thread"}


def _groups(root: ET.Element) -> Iterator[Group]:
    """Yield the groups of locations in the order of the system tree."""
    system = root.find("system")
    stack: list[tuple[ET.Element, tuple[SystemNode, ...]]] = [(system, ())] if system is not None else []
    nodes = processes = 0
    while stack:
        element, above = stack.pop()
        if element.tag in _NODES:
            # Some writers prefix the name with its class: "node vm".
            name = _text(element, "name")
            kind = _text(element, "class") or (
                element.tag if element.tag != "systemtreenode" else name.partition(" ")[0]
            )
            above = (*above, SystemNode(nodes, name, kind))
            nodes += 1
        for one in element:
            if one.tag in _GROUPS:
                members = tuple(map(_location, one.iterfind(_GROUPS[one.tag])))
                kind = (_text(one, "type") or "process").lower()
                is_process = kind == "process"
                rank = _number(_text(one, "rank"), processes) if is_process else -1
                processes += is_process
                yield Group(_text(one, "name"), kind, rank, above, members)
        stack.extend((one, above) for one in reversed(element) if one.tag in _NODES)


def _location(element: ET.Element) -> Location:
    kind = (_text(element, "type") or "thread").lower()
    return Location(_integer(element, "Id"), _text(element, "name"), kind, _number(_text(element, "rank"), 0))


def _text(element: ET.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _integer(element: ET.Element, name: str, default: int | None = None) -> int:
    """Return an attribute that is a number."""
    text = element.get(name)
    if text is None and default is not None:
        return default
    try:
        return int(text or "")
    except ValueError:
        raise CubeError(f"anchor.xml: {name} of <{element.tag}> is {text!r}") from None


def _number(text: str, default: int) -> int:
    return int(text) if re.fullmatch(r"-?\d+", text) else default


def _rows(index: bytes, known: int) -> tuple[npt.NDArray[np.int64], str]:
    """Return the positions of the stored rows, and the byte order."""
    head = index[:_INDEX_HEAD]
    if len(head) < _INDEX_HEAD or not head.startswith(_INDEX):
        raise CubeError("its index has no marker")
    order = "<" if head[len(_INDEX) : len(_INDEX) + 4] == b"\1\0\0\0" else ">"
    form = head[-1]
    if form == _DENSE:
        return np.arange(known), order
    if form != _SPARSE:
        raise CubeError(f"its index has the unknown form {form}")
    body = index[_INDEX_HEAD:]
    count = int.from_bytes(body[:4], "little" if order == "<" else "big")
    if len(body) < 4 + 4 * count:
        raise CubeError(f"its index has {max(len(body) - 4, 0) // 4} of {count} rows")
    rows = np.frombuffer(body[4 : 4 + 4 * count], order + "u4").astype(np.int64)
    if (rows >= known).any() or (np.diff(rows) <= 0).any():
        raise CubeError("its index has rows that do not exist, or are not in order")
    return rows, order


def _decompressed(data: bytes, rows: int, size: int, order: str) -> bytes:
    """Return rows that are compressed one by one; a row without bytes was never written, and is zero."""
    start = len(_COMPRESSED) + 8
    count = int.from_bytes(data[start - 8 : start], "little" if order == "<" else "big")
    begin = start + 24 * count
    if len(data) < begin:
        raise CubeError("its data have an incomplete list of rows")
    body = bytearray(rows * size)
    for at, first, length in np.frombuffer(data[start:begin], order + "u8").reshape(-1, 3).tolist():
        if not length or at + size > len(body):
            continue
        try:
            row = zlib.decompressobj().decompress(data[begin + first : begin + first + length], size)
        except zlib.error as error:
            raise CubeError(f"its data cannot be decompressed: {error}") from None
        body[at : at + len(row)] = row
    return bytes(body)
