"""Cube 4 files as different writers write them, for tests of the reader; independent of the program's own writer."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

# The call tree that all files have: (number, region, callees) of each node, numbered in no particular order.
TREE = [
    (3, "main", [(4, "solve", [(1, "MPI_Send", []), (5, "MPI_Allreduce", [])]), (0, "MPI_Send", [])]),
    (2, "kernel", [(6, "helper", [])]),
]
REGIONS = {
    "main": ("compiler", "function"), "solve": ("user", "loop"), "kernel": ("cuda", "function"),
    "helper": ("compiler", "function"), "MPI_Send": ("mpi", "point2point"), "MPI_Allreduce": ("mpi", "all2all"),
}  # fmt: skip
LOCATIONS = 4


def _orders(tree: list[Any]) -> dict[str, list[int]]:
    """The numbers of nodes in the order of rows, for each kind of metric."""

    def deep(node: Any) -> list[int]:
        return [node[0], *(number for child in node[2] for number in deep(child))]

    def expand(node: Any) -> list[int]:
        return [child[0] for child in node[2]] + [number for child in node[2] for number in expand(child)]

    numbers = [number for root in tree for number in deep(root)]
    return {
        "EXCLUSIVE": numbers,
        "INCLUSIVE": [number for root in tree for number in [root[0], *expand(root)]],
        "SIMPLE": sorted(numbers),
    }


def inclusive(values: dict[int, list[float]], tree: list[Any] | None = None) -> dict[int, list[float]]:
    """Sum values by node over the callees of each."""
    found = {}

    def add(node: Any) -> np.ndarray:
        found[node[0]] = sum(map(add, node[2]), np.asarray(values.get(node[0], [0] * LOCATIONS)))
        return found[node[0]]

    for root in tree or TREE:
        add(root)
    return {number: list(row) for number, row in found.items()}


@dataclass
class Metric:
    """A metric, with its values as stored, by the number of the node, below `depth` others."""

    name: str
    kind: str | None = "EXCLUSIVE"
    dtype: str = "DOUBLE"
    unit: str = "sec"
    values: dict[int, list[float]] | None = None
    cubepl: str = ""
    depth: int = 0


@dataclass
class Style:
    """How a writer writes."""

    version: str = "4.4"
    order: str = "<"
    dense: bool = False
    compressed: bool = False
    true_size: bool = True
    gzipped: bool = False
    checksum: bool = True
    extra_block: bool = True
    anchor_first: bool = False
    twice: bool = False
    prefix: str = ""
    legacy_system: bool = False
    system_roots: int = 1
    terms: bool = True
    attributes: dict[str, str] = field(default_factory=dict)


FORMATS = {"DOUBLE": "d", "FLOAT": "d", "UINT64": "Q", "INTEGER": "q", "INT16": "h", "UINT8": "B", "MAXDOUBLE": "d"}


def member(name: str, body: bytes, style: Style, size: int | None = None) -> bytes:
    """A member of the archive."""
    size = len(body) if size is None else size
    name = style.prefix + name
    head = bytearray(512)
    head[: len(name)] = name.encode()
    for at, text in ((100, "0000600"), (108, "0000000"), (116, "0000000"), (124, f"{size:011o}"), (136, "00000000000")):
        head[at : at + len(text)] = text.encode()
    head[148:156] = b" " * 8
    head[156:157] = b"0"
    head[257:265] = b"ustar\x0000"
    total = sum(head) if style.checksum else 4242
    head[148:156] = f"{total:06o}\0 ".encode()
    padding = -len(body) % 512
    # CubeW and CubeLib round up to the next block even if the size is a multiple.
    padding = padding or (512 if style.extra_block and body else 0)
    return bytes(head) + body + bytes(padding)


def index(rows: list[int], style: Style) -> bytes:
    """The index of a metric."""
    head = b"CUBEX.INDEX" + struct.pack(style.order + "Ih", 1, 0)
    if style.dense:
        return head + b"\3"
    return head + b"\1" + struct.pack(f"{style.order}{len(rows) + 1}I", len(rows), *rows)


def data(rows: list[bytes], style: Style) -> bytes:
    """The values of a metric; rows of zeros are never written if they are compressed, and others in reverse."""
    if not style.compressed:
        return b"CUBEX.DATA" + b"".join(rows)
    streams = [zlib.compress(row) if any(row) else b"" for row in rows]
    starts, at = [0] * len(rows), 0
    for number in reversed(range(len(rows))):
        starts[number] = at
        at += len(streams[number])
    triples = [
        value for number, row in enumerate(rows) for value in (number * len(row), starts[number], len(streams[number]))
    ]
    table = struct.pack(f"{style.order}{len(triples) + 1}Q", len(rows), *triples)
    return b"ZCUBEX.DATA" + table + b"".join(reversed(streams))


def anchor(metrics: list[Metric], style: Style, tree: list[Any], regions: dict[str, tuple[str, str]]) -> bytes:
    """The dimensions."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<cube version="{style.version}">']
    lines += [f'<attr key="{key}" value="{value}"/>' for key, value in style.attributes.items()]
    lines += ["<doc><mirrors></mirrors></doc>", "<metrics>"]
    for number, metric in enumerate(metrics):
        kind = f' type="{metric.kind}"' if metric.kind else ""
        lines.append(f'<metric id="{number}"{kind}><disp_name>{metric.name}</disp_name>')
        lines.append(f"<uniq_name>{metric.name}</uniq_name><dtype>{metric.dtype}</dtype><uom>{metric.unit}</uom>")
        if metric.cubepl:
            lines.append(
                f"<cubepl rowwise=false>{metric.cubepl}</cubepl><cubeplaggr cubeplaggrtype=plus>1</cubeplaggr>"
            )
        following = metrics[number + 1].depth if number + 1 < len(metrics) else 0
        lines += ["</metric>"] * (metric.depth + 1 - following)
    lines += ["</metrics>", "<program>"]
    number_of = {name: number + 10 for number, name in enumerate(regions)}
    for name, (paradigm, role) in regions.items():
        text = name.replace("&", "&amp;").replace("<", "&lt;")
        terms = f"<paradigm>{paradigm}</paradigm><role>{role}</role>" if style.terms else ""
        lines.append(f'<region id="{number_of[name]}" mod="" begin="-1" end="-1"><name>{text}</name>{terms}</region>')

    def node(one: Any) -> None:
        lines.append(f'<cnode id="{one[0]}" calleeId="{number_of[one[1]]}">')
        for child in one[2]:
            node(child)
        lines.append("</cnode>")

    for root in tree:
        node(root)
    lines += ["</program>", "<system>", *_system(style), "</system>", "</cube>"]
    return "\n".join(lines).encode()


def _system(style: Style) -> list[str]:
    """Two processes of two threads each, on one machine or on two."""
    names = ("machine", "node", "process", "thread") if style.legacy_system else (
        "systemtreenode", "systemtreenode", "locationgroup", "location")  # fmt: skip
    what = [("", "")] * 4 if style.legacy_system else [
        ("", "<class>machine</class>"), ("", "<class>node</class>"), ("", "<type>process</type>"),
        ("", "<type>thread</type>")]  # fmt: skip
    lines: list[str] = []
    machines = [[0, 1]] if style.system_roots == 1 else [[0], [1]]
    for at, ranks in enumerate(machines):
        lines.append(f'<{names[0]} Id="{at}"><name>machine{at}</name>{what[0][1]}')
        lines.append(f'<{names[1]} Id="{at + len(machines)}"><name>node{at}</name>{what[1][1]}')
        for rank in ranks:
            lines.append(f'<{names[2]} Id="{rank}"><name>rank {rank}</name><rank>{rank}</rank>{what[2][1]}')
            for thread in (0, 1):
                # The number of a location is its column, whatever the order in the file.
                number = [[2, 0], [1, 3]][rank][thread]
                lines.append(f'<{names[3]} Id="{number}"><name>t{thread}</name><rank>{thread}</rank>{what[3][1]}')
                lines.append(f"</{names[3]}>")
            lines.append(f"</{names[2]}>")
        lines.append(f"</{names[1]}></{names[0]}>")
    return lines


#: Rank and thread of each column.
PLACES = {2: (0, 0), 0: (0, 1), 1: (1, 0), 3: (1, 1)}


def write(
    path: Path,
    metrics: list[Metric],
    style: Style | None = None,
    *,
    tree: list[Any] | None = None,
    regions: dict[str, tuple[str, str]] | None = None,
) -> Path:
    """Write a file.

    Parameters
    ----------
    path
        The file.
    metrics
        The metrics.
    style
        How it is written.
    tree, regions
        The call tree, and paradigm and role of its regions.
    """
    style, tree = style or Style(), tree or TREE
    orders = _orders(tree)
    xml = anchor(metrics, style, tree, regions or REGIONS)
    xml = gzip.compress(xml) if style.gzipped else xml
    parts = []
    for number, metric in enumerate(metrics):
        if metric.values is None:
            continue
        order = orders[metric.kind or "EXCLUSIVE"]
        letter = FORMATS[metric.dtype]
        rows = [at for at, node in enumerate(order) if style.dense or node in metric.values]
        zero = [0] * LOCATIONS
        packed = [struct.pack(f"{style.order}{LOCATIONS}{letter}", *metric.values.get(order[at], zero)) for at in rows]
        body = data(packed, style)
        declared = None if style.true_size else 10 + sum(map(len, packed))
        parts += [member(f"{number}.data", body, style, declared), member(f"{number}.index", index(rows, style), style)]
    last = member("anchor.xml", xml, style)
    first = [last] if style.anchor_first else []
    if style.twice:
        first = [member("anchor.xml", b"<cube/>", style)]
    end = [] if style.anchor_first else [last]
    note = member("notes.txt", b"x" * 512, style)
    path.write_bytes(b"".join([*first, note, *parts, *end, bytes(1024)]))
    return path
