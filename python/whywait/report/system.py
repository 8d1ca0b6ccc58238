"""The system dimension of a Cube file: machines, nodes, processes, threads, and how processes are arranged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whywait.report.xml import attribute, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.tables import Locations

_TAGS = {"node": "systemtreenode", "group": "locationgroup"}


def system_xml(system: pa.Table, topologies: pa.Table, locations: Locations) -> Iterator[str]:
    """Yield a Cube file's ``<system>``.

    Parameters
    ----------
    system, topologies
        Tables of the schemas `whywait.model.system.SYSTEM` and `whywait.model.system.TOPOLOGIES`.
    locations
        The locations, whose index is their number in the file.
    """
    yield '<system title="System tree">\n'
    yield from _tree(system, locations)
    yield "<topologies>\n"
    yield from _topologies(topologies)
    yield "</topologies>\n</system>\n"


def _tree(system: pa.Table, locations: Locations) -> Iterator[str]:
    columns = (system[name].to_pylist() for name in ("parent", "kind", "rank", "location"))
    texts = (escaped(system[name].cast(pa.string())).to_pylist() for name in ("class", "name"))
    threads = np.maximum(locations.thread, 0).tolist()
    numbers: Counter[str] = Counter()
    # Rows that are open, from the root down, with their tags: no recursion, trees can be deeper than Python allows.
    opened: list[tuple[int, str]] = []
    for number, (parent, kind, rank, location, what, name) in enumerate(zip(*columns, *texts, strict=True)):
        while opened and parent != opened[-1][0]:
            yield f"</{opened.pop()[1]}>\n"
        if kind == "location":
            yield f'<location Id="{location}"><name>{name}</name><rank>{threads[location]}</rank>'
            yield f"<type>{what}</type></location>\n"
            continue
        tag = _TAGS[kind]
        opened.append((number, tag))
        yield f'<{tag} Id="{numbers[kind]}"><name>{name}</name>'
        numbers[kind] += 1
        yield f"<class>{what}</class>\n" if kind == "node" else f"<rank>{max(rank, 0)}</rank><type>{what}</type>\n"
    for _, tag in reversed(opened):
        yield f"</{tag}>\n"


def _topologies(topologies: pa.Table) -> Iterator[str]:
    for topology in topologies.to_pylist():
        yield f'<cart name={attribute(topology["name"])} ndims="{len(topology["axes"])}">\n'
        for axis in topology["axes"]:
            periodic = "true" if axis["periodic"] else "false"
            yield f'<dim name={attribute(axis["name"])} size="{axis["size"]}" periodic="{periodic}"/>\n'
        for place in topology["coordinates"]:
            yield f'<coord locId="{place["location"]}">{" ".join(map(str, place["at"]))}</coord>\n'
        yield "</cart>\n"
