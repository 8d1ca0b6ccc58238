"""The system that a program ran on: machines, nodes, processes and threads, and process topologies."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

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
    return table_of_rows(_system_rows(locations, definitions), SYSTEM)


def table_of_rows(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make a table from rows: Arrow does not dictionary-encode Python strings by itself."""
    plain = pa.schema([field.with_type(pa.string()) if field.type == _NAME else field for field in schema])
    return pa.Table.from_pylist(list(rows), schema=plain).cast(schema)


def _system_rows(locations: pa.Table, definitions: Mapping[str, pa.Table]) -> Iterator[dict[str, Any]]:
    nodes = {node["id"]: node for node in _records(definitions, "SystemTreeNode")}
    groups = {group["id"]: group for group in _records(definitions, "LocationGroup")}
    below: dict[int | None, list[int]] = defaultdict(list)
    for number, node in nodes.items():
        below[node["parent"] if node["parent"] in nodes else None].append(number)
    # Nodes in a cycle are below no root.
    reached: set[int] = set()
    stack: list[int] = list(below[None])
    while stack:
        reached.add(number := stack.pop())
        stack.extend(below[number])
    crews: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for location in locations.to_pylist():
        crews[location["group"]].append(location)
    members: dict[int | None, list[int]] = defaultdict(list)
    for number in crews:
        parent = groups.get(number, {}).get("system_tree_parent")
        members[parent if parent in reached else None].append(number)

    count = 0
    top: list[tuple[str, int | None, int | None]] = []
    if len(below[None]) != 1 or members[None]:
        yield _row(None, "node", "machine", "system")
        count, root = 1, 0
        top = [("node", number, root) for number in below[None]]
        top += [("group", number, root) for number in members[None]]
    else:
        top = [("node", below[None][0], None)]
    pending = top[::-1]
    while pending:
        kind, number, parent_row = pending.pop()
        row = count
        count += 1
        if kind == "node" and number is not None:
            node = nodes[number]
            yield _row(parent_row, "node", node["class_name"] or "node", node["name"] or "")
            inner = [("node", child, row) for child in below[number]]
            inner += [("group", group, row) for group in members[number]]
            pending.extend(inner[::-1])
        elif number is not None:
            crew = crews[number]
            yield _group_row(parent_row, groups.get(number, {}), crew)
            for location in crew:
                kind_of = LOCATION_TYPES.get(location["type"], "thread")
                yield _row(row, "location", kind_of, location["name"] or "", location=location["location"])
            count += len(crew)


def _row(
    parent: int | None, kind: str, what: str, name: str, *, rank: int | None = None, location: int | None = None
) -> dict[str, Any]:
    return {"parent": parent, "kind": kind, "class": what, "name": name, "rank": rank, "location": location}


def _group_row(parent: int | None, group: dict[str, Any], crew: list[dict[str, Any]]) -> dict[str, Any]:
    rank = max(location["rank"] for location in crew)
    kind = group.get("location_group_type") or "PROCESS"
    if all(location["type"] == "METRIC" for location in crew):
        kind = "METRIC"
    return _row(parent, "group", _GROUP_TYPES.get(kind, "metrics"), group.get("name") or f"rank {rank}", rank=rank)


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
