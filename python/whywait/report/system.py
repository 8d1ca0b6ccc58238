"""The system dimension of a Cube file: machines, nodes, processes, threads, and topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.report.xml import attribute, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.tables import Locations


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
    numbers = np.full(len(locations), -1)
    numbers[kept] = np.arange(kept.size)
    yield from _tree(system, locations, numbers)
    yield "<topologies>\n"
    yield from _topologies(topologies, numbers.tolist())
    yield "</topologies>\n</system>\n"


def _tree(system: pa.Table, locations: Locations, numbers: npt.NDArray[np.int64]) -> Iterator[str]:
    """Yield the tree; `numbers` are those of the locations in the file, -1 for those left out."""
    kind = system["kind"].cast(pa.string()).to_numpy()
    parent = system["parent"].cast(pa.int64()).fill_null(-1).to_numpy()
    location = system["location"].fill_null(0).to_numpy()
    is_node, is_group, is_location = (kind == name for name in ("node", "group", "location"))
    # Groups without any remaining location are left out, too.
    is_location[is_location] = numbers[location[is_location]] >= 0
    is_group &= np.isin(np.arange(kind.size), parent[is_location])
    depth = np.zeros(kind.size, np.int64)
    for row in np.flatnonzero(is_node & (parent >= 0)).tolist():
        depth[row] = depth[parent[row]] + 1
    for rows in (is_group, is_location):
        depth[rows] = np.where(parent[rows] >= 0, depth[parent[rows]] + 1, 0)

    texts = {name: escaped(system[name].cast(pa.string())).combine_chunks() for name in ("class", "name")}
    openings = []
    for rows in (is_node, is_group, is_location):
        what, name = (texts[column].filter(pa.array(rows)) for column in ("class", "name"))
        if rows is is_node:
            count = _texts(np.arange(len(name)))
            parts = ['<systemtreenode Id="', count, '"><name>', name, "</name><class>", what, "</class>\n"]
        elif rows is is_group:
            rank = _texts(np.maximum(system["rank"].fill_null(-1).to_numpy()[rows], 0))
            parts = ['<locationgroup Id="', _texts(np.arange(len(name))), '"><name>', name, "</name><rank>", rank]
            parts += ["</rank><type>", what, "</type>\n"]
        else:
            number, thread = _texts(numbers[location[rows]]), _texts(np.maximum(locations.thread[location[rows]], 0))
            parts = ['<location Id="', number, '"><name>', name, "</name><rank>", thread]
            parts += ["</rank><type>", what, "</type></location>\n"]
        openings.append(pc.binary_join_element_wise(*parts, ""))
    shown = np.concatenate([np.flatnonzero(rows) for rows in (is_node, is_group, is_location)])
    order = np.argsort(shown)
    shown = shown[order]
    opening = pa.concat_arrays(openings).take(order)

    # After each element, close the ancestors that the next one does not share; locations close themselves.
    ends = depth[shown] - np.append(depth[shown][1:], 0) + ~is_location[shown]
    ends_group = (ends > 0) & ~is_node[shown]
    closing = pc.binary_join_element_wise(
        pc.binary_repeat("</locationgroup>\n", pa.array(ends_group.astype(np.int64))),
        pc.binary_repeat("</systemtreenode>\n", pa.array(ends - ends_group)),
        "",
    )
    yield "".join(pc.binary_join_element_wise(opening, closing, "").to_pylist())


def _texts(numbers: npt.NDArray[np.integer]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _topologies(topologies: pa.Table, numbers: list[int]) -> Iterator[str]:
    for topology in topologies.to_pylist():
        yield f'<cart name={attribute(topology["name"])} ndims="{len(topology["axes"])}">\n'
        for axis in topology["axes"]:
            periodic = "true" if axis["periodic"] else "false"
            yield f'<dim name={attribute(axis["name"])} size="{axis["size"]}" periodic="{periodic}"/>\n'
        for place in topology["coordinates"]:
            if (number := numbers[place["location"]]) >= 0:
                yield f'<coord locId="{number}">{" ".join(map(str, place["at"]))}</coord>\n'
        yield "</cart>\n"
