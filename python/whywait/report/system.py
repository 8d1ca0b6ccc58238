"""The system dimension of a Cube file: machines, nodes, processes, threads, and how processes are arranged."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from whywait.report.xml import attribute, element

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from whywait.model.tables import Locations

_TAGS = {"node": "systemtreenode", "group": "locationgroup", "location": "location"}


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
    rows = system.to_pylist()
    numbers: Counter[str] = Counter()
    # Rows that are open, from the root down: no recursion, trees can be deeper than Python allows.
    opened: list[int] = []
    for number, row in enumerate(rows):
        while opened and row["parent"] != opened[-1]:
            yield f"</{_TAGS[rows[opened.pop()]['kind']]}>\n"
        if row["kind"] == "location":
            yield f'<location Id="{row["location"]}">' + element("name", row["name"])
            yield element("rank", max(int(locations.thread[row["location"]]), 0))
            yield element("type", row["class"]) + "</location>\n"
            continue
        opened.append(number)
        yield f'<{_TAGS[row["kind"]]} Id="{numbers[row["kind"]]}">' + element("name", row["name"])
        numbers[row["kind"]] += 1
        if row["kind"] == "node":
            yield element("class", row["class"]) + "\n"
        else:
            yield element("rank", max(row["rank"], 0)) + element("type", row["class"]) + "\n"
    for number in reversed(opened):
        yield f"</{_TAGS[rows[number]['kind']]}>\n"


def _topologies(topologies: pa.Table) -> Iterator[str]:
    for topology in topologies.to_pylist():
        yield f'<cart name={attribute(topology["name"])} ndims="{len(topology["axes"])}">\n'
        for axis in topology["axes"]:
            periodic = "true" if axis["periodic"] else "false"
            yield f'<dim name={attribute(axis["name"])} size="{axis["size"]}" periodic="{periodic}"/>\n'
        for place in topology["coordinates"]:
            yield f'<coord locId="{place["location"]}">{" ".join(map(str, place["at"]))}</coord>\n'
        yield "</cart>\n"
