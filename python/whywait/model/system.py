"""The system that a program ran on: machines, nodes, processes and threads, and process topologies."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.model.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NAME = pa.dictionary(pa.int32(), pa.string())

#: The system tree in pre-order: ``parent`` is the row above, null at a root. ``kind`` is ``node``, ``group`` (of
#: locations, such as a process) or ``location``; ``class`` is the kind of these, in the terms of Cube: ``machine``,
#: ``node``, ``process``, ``thread``, ... A group has a ``rank``, -1 if it is no process; a location has its index.
SYSTEM = schema_of("system")

#: Cartesian topologies: ``axes``, each with its ``size`` and whether it is ``periodic``; ``coordinates`` of locations.
TOPOLOGIES = schema_of("topologies")

#: Types of locations as OTF2 and as Cube has them.
LOCATION_TYPES = {"CPU_THREAD": "thread", "ACCELERATOR_STREAM": "gpu", "METRIC": "metric"}
_GROUP_TYPES = {"PROCESS": "process", "ACCELERATOR": "accelerator"}

_HEADS = pa.schema([("row", pa.int64()), ("parent", pa.int64()), ("class", pa.string()), ("name", pa.string())])
_NO_GROUPS = pa.table(
    {"id": pa.array([], pa.uint32()), "name": pa.array([], pa.string()),
     "location_group_type": pa.array([], pa.string()), "system_tree_parent": pa.array([], pa.uint32())}
)  # fmt: skip


def _records(definitions: Mapping[str, pa.Table], kind: str) -> list[dict[str, Any]]:
    return definitions[kind].to_pylist() if kind in definitions else []


def system_table(locations: pa.Table, definitions: Mapping[str, pa.Table]) -> pa.Table:
    """Return the system tree, a table of schema `SYSTEM`.

    Parameters
    ----------
    locations
        The locations in order of their index.
    definitions
        The definition records of the trace; missing nodes are added, so that there is one root.
    """
    nodes = {node["id"]: node for node in _records(definitions, "SystemTreeNode")}
    below: dict[int | None, list[int]] = defaultdict(list)
    for number, node in nodes.items():
        below[node["parent"] if node["parent"] in nodes else None].append(number)
    # Nodes in a cycle are below no root.
    reached: set[int | None] = set()
    stack = list(below[None])
    while stack:
        reached.add(number := stack.pop())
        stack.extend(below[number])
    groups = _Groups(locations, definitions)
    parents, parent_of_group = np.unique(groups.parent, return_inverse=True)
    holders = [number if number in reached else None for number in parents.tolist()]
    sizes = np.bincount(parent_of_group, 1 + groups.size, len(holders)).astype(np.int64).tolist()
    extents: Counter[int | None] = Counter()
    for holder, size in zip(holders, sizes, strict=True):
        extents[holder] += size

    # Below a node come the nodes in it, and then the groups.
    heads: list[dict[str, Any]] = []
    row_of: dict[int | None, int] = {}
    nodes_before: dict[int | None, int] = {}
    root = None if len(below[None]) != 1 or extents[None] else below[None][0]
    pending: list[tuple[int | None, int | None, bool]] = [(root, None, False)]
    row = 0
    while pending:
        holder, above, is_done = pending.pop()
        if is_done:
            nodes_before[holder] = len(heads)
            row += extents[holder]
            continue
        node = {"class_name": "machine", "name": "system"} if holder is None else nodes[holder]
        heads.append({"row": row, "parent": above, "class": node["class_name"] or "node", "name": node["name"] or ""})
        row_of[holder] = row
        pending.append((holder, above, True))
        pending.extend((inner, row, False) for inner in reversed(below[holder]))
        row += 1

    # The groups of a node come in the order of their first locations.
    turn = {holder: number for number, holder in enumerate(nodes_before)}
    turns, offset, held = (
        np.array([of[holder] for holder in holders], np.int64)[parent_of_group] for of in (turn, nodes_before, row_of)
    )
    order = np.lexsort((groups.first, turns))
    extent = 1 + groups.size[order]
    group_row = np.empty(order.size, np.int64)
    group_row[order] = offset[order] + np.cumsum(extent) - extent
    member_row = group_row[groups.of_location] + 1 + groups.position
    pieces = [
        pa.Table.from_pylist(heads, _HEADS).append_column("kind", _constant("node", len(heads))),
        pa.table(
            {"row": group_row, "parent": held, "kind": _constant("group", order.size), "class": groups.kind,
             "name": groups.name, "rank": groups.rank}
        ),
        pa.table(
            {"row": member_row, "parent": group_row[groups.of_location], "kind": _constant("location", len(member_row)),
             "class": _translate(locations["type"], LOCATION_TYPES, "thread"), "name": locations["name"],
             "location": np.arange(len(member_row), dtype=np.uint32)}
        ),
    ]  # fmt: skip
    table = pa.concat_tables(pieces, promote_options="permissive")
    return table.take(np.argsort(table["row"].to_numpy())).select(SYSTEM.names).cast(SYSTEM)


class _Groups:
    """The location groups that have locations."""

    def __init__(self, locations: pa.Table, definitions: Mapping[str, pa.Table]) -> None:
        numbers, self.first, self.of_location, self.size = np.unique(
            locations["group"].to_numpy(), return_index=True, return_inverse=True, return_counts=True
        )
        by_group = np.argsort(self.of_location, kind="stable")
        begin = np.cumsum(self.size) - self.size
        #: The position of each location in its group.
        self.position = np.empty(by_group.size, np.int64)
        self.position[by_group] = np.arange(by_group.size) - np.repeat(begin, self.size)
        self.rank = np.maximum.reduceat(locations["rank"].to_numpy()[by_group], begin) if begin.size else begin
        known = definitions.get("LocationGroup", _NO_GROUPS)
        row = pc.index_in(pa.array(numbers, pa.uint32()), known["id"].combine_chunks())
        #: The node of the system tree that each is in; -1 if it is not defined.
        self.parent = known["system_tree_parent"].cast(pa.int64()).take(row).fill_null(-1).to_numpy()
        unnamed = pc.binary_join_element_wise("rank ", pa.array(self.rank).cast(pa.string()), "")
        name = known["name"].take(row).combine_chunks()
        self.name = pc.if_else(pc.not_equal(pc.fill_null(name, ""), ""), name, unnamed)
        measures = pc.equal(locations["type"].cast(pa.string()), "METRIC").to_numpy().astype(np.int64)
        kind = known["location_group_type"].cast(pa.string()).take(row).fill_null("PROCESS").combine_chunks()
        only = pa.array(np.bincount(self.of_location, measures, len(numbers)) == self.size)
        self.kind = _translate(pc.if_else(only, "METRIC", kind), _GROUP_TYPES, "metrics")


def _translate(texts: pa.ChunkedArray, names: Mapping[str, str], other: str) -> pa.ChunkedArray:
    """Translate texts."""
    found = pc.index_in(texts.cast(pa.string()), pa.array(names, pa.string()))
    return pa.array(names.values(), pa.string()).take(found).fill_null(other)


def _constant(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [text])


def table_of_rows(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make a table from rows: Arrow does not dictionary-encode Python strings by itself."""
    plain = pa.schema([field.with_type(pa.string()) if field.type == _NAME else field for field in schema])
    return pa.Table.from_pylist(list(rows), schema=plain).cast(schema)


def topologies_table(locations: pa.Table, definitions: Mapping[str, pa.Table]) -> pa.Table:
    """Return the process topologies, a table of schema `TOPOLOGIES`.

    Parameters
    ----------
    locations
        The locations in order of their index.
    definitions
        The definition records of the trace.
    """
    return table_of_rows(_topologies(locations, definitions), TOPOLOGIES)


def _topologies(locations: pa.Table, definitions: Mapping[str, pa.Table]) -> Iterator[dict[str, Any]]:
    dimensions = {dimension["id"]: dimension for dimension in _records(definitions, "CartDimension")}
    coordinates: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for coordinate in _records(definitions, "CartCoordinate"):
        coordinates[coordinate["cart_topology"]].append(coordinate)
    topologies = _records(definitions, "CartTopology")
    index_of = {number: index for index, number in enumerate(locations["id"].to_pylist())} if topologies else {}
    for topology in topologies:
        axes = [dimensions.get(number) for number in topology["cart_dimensions"]]
        ranks = _locations_of(topology["communicator"], definitions)
        places = [
            {"location": index_of[ranks[coordinate["rank"]]], "at": coordinate["coordinates"]}
            for coordinate in coordinates[topology["id"]]
            if coordinate["rank"] < len(ranks)
            and ranks[coordinate["rank"]] in index_of
            and len(coordinate["coordinates"]) == len(axes)
            and all(axis and at < axis["size"] for at, axis in zip(coordinate["coordinates"], axes, strict=True))
        ]
        if places:
            yield {
                "name": topology["name"] or "",
                "axes": [
                    {"name": axis["name"] or "", "size": axis["size"], "periodic": axis["cart_periodicity"] == "TRUE"}
                    for axis in filter(None, axes)
                ],
                "coordinates": places,
            }


def _locations_of(communicator: int, definitions: Mapping[str, pa.Table]) -> list[int | None]:
    """Return the OTF2 ids of the locations of a communicator, in the order of its ranks."""
    groups = {group["id"]: group for group in _records(definitions, "Group")}
    comms = {comm["id"]: comm for comm in _records(definitions, "Comm")}
    group = groups.get(comms.get(communicator, {}).get("group"))
    if group is None:
        return []
    members: list[int | None] = list(group["members"])
    if group["group_type"] == "COMM_LOCATIONS":
        return members
    everyone: list[int] = next(
        (
            other["members"]
            for other in groups.values()
            if other["group_type"] == "COMM_LOCATIONS" and other["paradigm"] == group["paradigm"]
        ),
        [],
    )
    return [everyone[member] if member is not None and member < len(everyone) else None for member in members]
