"""The system dimension of a Cube file: machines, nodes, processes, threads, and how processes are arranged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whywait.report.xml import attribute, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.tables import Locations

_TAGS = {"node": "systemtreenode", "group": "locationgroup"}


def system_xml(
    system: pa.Table, topologies: pa.Table, locations: Locations, kept: npt.NDArray[np.int64]
) -> Iterator[str]:
    """Yield a Cube file's ``<system>``.

    Parameters
    ----------
    system, topologies
        Tables of the schemas `whywait.model.system.SYSTEM` and `whywait.model.system.TOPOLOGIES`.
    locations
        The locations.
    kept
        The indices of the locations to write, in order; their positions here are their numbers in the file.
    """
    yield '<system title="System tree">\n'
    numbers = dict(zip(kept.tolist(), range(kept.size), strict=True))
    yield from _tree(system, locations, numbers)
    yield "<topologies>\n"
    yield from _topologies(topologies, numbers)
    yield "</topologies>\n</system>\n"


def _tree(system: pa.Table, locations: Locations, kept: dict[int, int]) -> Iterator[str]:
    columns = (system[name].to_pylist() for name in ("parent", "kind", "rank", "location"))
    texts = (escaped(system[name].cast(pa.string())).to_pylist() for name in ("class", "name"))
    threads = np.maximum(locations.thread, 0).tolist()
    numbers: Counter[str] = Counter()
    # Groups without any remaining location are left out, too.
    pairs = zip(system["location"].to_pylist(), system["parent"].to_pylist(), strict=True)
    groups = {parent for location, parent in pairs if location in kept}
    # Open elements with their tags, from the root down. No recursion: trees can be deeper than Python allows.
    opened: list[tuple[int, str]] = []
    for number, (parent, kind, rank, location, what, name) in enumerate(zip(*columns, *texts, strict=True)):
        if (kind == "location" and location not in kept) or (kind == "group" and number not in groups):
            continue
        while opened and parent != opened[-1][0]:
            yield f"</{opened.pop()[1]}>\n"
        if kind == "location":
            yield f'<location Id="{kept[location]}"><name>{name}</name><rank>{threads[location]}</rank>'
            yield f"<type>{what}</type></location>\n"
            continue
        tag = _TAGS[kind]
        opened.append((number, tag))
        yield f'<{tag} Id="{numbers[kind]}"><name>{name}</name>'
        numbers[kind] += 1
        yield f"<class>{what}</class>\n" if kind == "node" else f"<rank>{max(rank, 0)}</rank><type>{what}</type>\n"
    for _, tag in reversed(opened):
        yield f"</{tag}>\n"


def _topologies(topologies: pa.Table, kept: dict[int, int]) -> Iterator[str]:
    for topology in topologies.to_pylist():
        yield f'<cart name={attribute(topology["name"])} ndims="{len(topology["axes"])}">\n'
        for axis in topology["axes"]:
            periodic = "true" if axis["periodic"] else "false"
            yield f'<dim name={attribute(axis["name"])} size="{axis["size"]}" periodic="{periodic}"/>\n'
        for place in topology["coordinates"]:
            if place["location"] in kept:
                yield f'<coord locId="{kept[place["location"]]}">{" ".join(map(str, place["at"]))}</coord>\n'
        yield "</cart>\n"
