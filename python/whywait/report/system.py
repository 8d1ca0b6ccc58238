"""The system dimension of a Cube file: machines, nodes, processes, threads, and how processes are arranged."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from whywait.report.xml import element

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

#: Types of locations as OTF2 and as Cube has them.
LOCATION_TYPES = {"CPU_THREAD": "thread", "ACCELERATOR_STREAM": "gpu", "METRIC": "metric"}
_GROUP_TYPES = {"PROCESS": "process", "ACCELERATOR": "accelerator"}


def system_xml(locations: pa.Table, definitions: Mapping[str, pa.Table]) -> Iterator[str]:
    """Yield the content of a Cube file's ``<system>``.

    Parameters
    ----------
    locations
        The locations in order of their index, which is their number in the file.
    definitions
        The definition records of the trace; what they leave open is filled in.
    """
    yield from _System(locations, definitions).xml()
    yield "<topologies>\n"
    yield from _topologies(locations, definitions)
    yield "</topologies>\n"


def _records(definitions: Mapping[str, pa.Table], kind: str) -> list[dict[str, Any]]:
    return definitions[kind].to_pylist() if kind in definitions else []


class _System:
    """Nodes below nodes, groups below nodes, locations below groups; one root above all."""

    def __init__(self, locations: pa.Table, definitions: Mapping[str, pa.Table]) -> None:
        self.nodes = {node["id"]: node for node in _records(definitions, "SystemTreeNode")}
        self.groups = {group["id"]: group for group in _records(definitions, "LocationGroup")}
        self.locations: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for location in locations.to_pylist():
            self.locations[location["group"]].append(location)
        self.below: dict[int | None, list[int]] = defaultdict(list)
        for number, node in self.nodes.items():
            self.below[node["parent"] if node["parent"] in self.nodes else None].append(number)
        reached = set(self._reached(None))
        self.members: dict[int | None, list[int]] = defaultdict(list)
        for number in self.locations:
            parent = self.groups.get(number, {}).get("system_tree_parent")
            self.members[parent if parent in reached else None].append(number)
        self.ids = {"node": 0, "group": 0}

    def _reached(self, number: int | None) -> Iterator[int]:
        for child in self.below[number]:
            yield child
            yield from self._reached(child)

    def xml(self) -> Iterator[str]:
        if len(self.below[None]) == 1 and not self.members[None]:
            yield from self._node(self.below[None][0])
        else:
            yield self._head("system", "machine")
            for number in self.below[None]:
                yield from self._node(number)
            for number in self.members[None]:
                yield from self._group(number)
            yield "</systemtreenode>\n"

    def _head(self, name: str, kind: str) -> str:
        return f'<systemtreenode Id="{self._next("node")}">' + element("name", name) + element("class", kind) + "\n"

    def _next(self, kind: str) -> int:
        self.ids[kind] += 1
        return self.ids[kind] - 1

    def _node(self, number: int) -> Iterator[str]:
        node = self.nodes[number]
        yield self._head(node["name"] or "", node["class_name"] or "node")
        for child in self.below[number]:
            yield from self._node(child)
        for group in self.members[number]:
            yield from self._group(group)
        yield "</systemtreenode>\n"

    def _group(self, number: int) -> Iterator[str]:
        locations = self.locations[number]
        group = self.groups.get(number, {})
        rank = max(location["rank"] for location in locations)
        kind = group.get("location_group_type") or "PROCESS"
        if all(location["type"] == "METRIC" for location in locations):
            kind = "METRIC"
        yield f'<locationgroup Id="{self._next("group")}">' + element("name", group.get("name") or f"rank {rank}")
        yield element("rank", max(rank, 0)) + element("type", _GROUP_TYPES.get(kind, "metrics")) + "\n"
        for location in locations:
            yield f'<location Id="{location["location"]}">' + element("name", location["name"] or "")
            yield element("rank", max(location["thread"], 0))
            yield element("type", LOCATION_TYPES.get(location["type"], "thread")) + "</location>\n"
        yield "</locationgroup>\n"


def _topologies(locations: pa.Table, definitions: Mapping[str, pa.Table]) -> Iterator[str]:
    dimensions = {dimension["id"]: dimension for dimension in _records(definitions, "CartDimension")}
    coordinates: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for coordinate in _records(definitions, "CartCoordinate"):
        coordinates[coordinate["cart_topology"]].append(coordinate)
    index_of = {number: index for index, number in enumerate(locations["id"].to_pylist())}
    for topology in _records(definitions, "CartTopology"):
        axes = [dimensions.get(number) for number in topology["cart_dimensions"]]
        ranks = _locations_of(topology["communicator"], definitions)
        places = [
            (index_of[ranks[coordinate["rank"]]], coordinate["coordinates"])
            for coordinate in coordinates[topology["id"]]
            if coordinate["rank"] < len(ranks)
            and ranks[coordinate["rank"]] in index_of
            and len(coordinate["coordinates"]) == len(axes)
            and all(axis and at < axis["size"] for at, axis in zip(coordinate["coordinates"], axes, strict=True))
        ]
        if not places:
            continue
        yield f'<cart name={quoteattr(topology["name"] or "")} ndims="{len(axes)}">\n'
        for axis in filter(None, axes):
            periodic = "true" if axis["cart_periodicity"] == "TRUE" else "false"
            yield f'<dim name={quoteattr(axis["name"] or "")} size="{axis["size"]}" periodic="{periodic}"/>\n'
        for index, at in places:
            yield f'<coord locId="{index}">{" ".join(map(str, at))}</coord>\n'
        yield "</cart>\n"


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
