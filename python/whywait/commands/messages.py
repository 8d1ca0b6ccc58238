"""Show the communication between ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from whywait.commands.answers import Answer, Column, table
from whywait.commands.common import add_top, add_verb, positive
from whywait.commands.results import RESULT, add_analysis, add_focus, asked_focus
from whywait.report.terminal import seconds
from whywait.report.values import quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from whywait import Result
    from whywait.analysis.communication import Measure
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line

# A cell of the picture is two characters wide, so about square.
_CELLS = 32


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "messages",
        "show who communicates with whom",
        "Show the communication matrix (messages and one-sided transfers between ranks with their bytes and time in "
        "flight, and who waits for whom) and a histogram of message sizes. --merge combines the ranks of each node, or "
        "blocks of ranks.",
        "whywait messages results --by waiting --merge node",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    parser.add_argument(
        "--by",
        choices=("bytes", "messages", "time", "waiting"),
        default="bytes",
        help="what to show in the matrix and sort pairs by (default: %(default)s)",
    )
    parser.add_argument(
        "--merge",
        type=_merge,
        metavar="node|N",
        help="combine the ranks of each node, or N neighboring ranks (default: single ranks; blocks if there are "
        "millions of pairs)",
    )
    add_focus(parser)
    add_top(parser, "how many pairs to list")


def _merge(text: str) -> Literal["node"] | int:
    """Parse what to merge ranks by."""
    return "node" if text == "node" else positive(text)


def run(options: argparse.Namespace) -> Answer:
    """Return the communication matrix."""
    from whywait.analysis.communication import coarsen, heaviest, totals
    from whywait.analysis.devices.groups import device_groups

    name = options.focus.name

    def question(result: Result) -> tuple[pa.Table, pa.Table]:
        return result.communication(merge=options.merge, focus=name), result.message_sizes(focus=name)

    focus, (pairs, sizes) = asked_focus(options, question)
    groups = device_groups(focus) if name is None else []
    data = {
        "by": options.by,
        "merge": options.merge,
        "totals": totals(pairs),
        "pairs": heaviest(pairs, options.by, options.top),
        "sizes": sizes.to_pylist(),
        "groups": groups,
    }

    def lines(screen: Screen) -> Iterator[Line]:
        yield from _totals(data["totals"])
        if pairs.num_rows:
            cells = min(_CELLS, (screen.width - 16) // 2)
            shown = pairs if options.merge == "node" else coarsen(pairs, cells)
            yield from _matrix(shown, options.by, cells, unicode=screen.unicode)
            yield from _pairs(data["pairs"], options.by)
        yield from _groups(groups)
        yield from _sizes(data["sizes"], screen)

    return Answer(data, lines, focus=focus)


def _totals(total: dict[str, float]) -> Iterator[Line]:
    if not any(total.values()):
        yield [("No messages, no one-sided transfers, and no rank waits for another.", "")]
        return
    for count, volume, time, what in (
        ("messages", "bytes", "time", "message"),
        ("transfers", "transfer_bytes", "transfer_time", "one-sided transfer"),
    ):
        if number := int(total[count]):
            text = f"{number:,} {what}{'' if number == 1 else 's'}, {quantity(total[volume], 'bytes')}"
            yield [(text, "bold"), (f", {seconds(total[time])} in flight", "")]
    yield [(f"{seconds(total['waiting'])} of waiting for a known rank", "")]
    yield []


def _matrix(pairs: pa.Table, by: Measure, most_cells: int, *, unicode: bool) -> Iterator[Line]:
    from whywait.analysis.communication import MEASURES, measure

    shades = " ░▒▓█" if unicode else " .+*#"
    values = measure(pairs, by)
    most = float(values.max())
    if most <= 0:
        return
    rows, columns = (pairs[name].to_pylist() for name in _ends(pairs))
    cells = dict(zip(zip(rows, columns, strict=True), values.tolist(), strict=True))
    what = "node" if "node" in pairs.column_names else "rank"
    # Nodes keep the order of the system tree, as in the rows.
    starts = list(dict.fromkeys([*rows, *columns])) if what == "node" else sorted({*rows, *columns})
    if len(starts) > most_cells:
        yield [(f"{len(starts):,} {what}s are too many to draw here; see the HTML report.", "dim")]
        yield []
        return
    row, column = (f"waiting {what}", f"{what} waited for") if by == "waiting" else (f"from {what}", f"to {what}")
    yield [(f"{MEASURES[by][0]} (rows: {row}, columns: {column}; darker is more)", "bold")]
    for rank in starts:
        shown = "".join(
            2 * shades[-(-4 * cells.get((rank, peer), 0.0) // most).__int__()] for peer in starts
        )  # fmt: skip
        label = f"{rank:>8}" if what == "rank" else f"{rank[-12:]:>12}"
        yield [(f"{label} ", "dim"), (shown, "red" if by == "waiting" else "green")]
    if what == "rank":
        yield [(f"{'':8} {starts[0]} to {int(pairs['last_peer'].to_numpy().max())}", "dim")]
    yield []


def _pairs(rows: list[dict[str, Any]], by: Measure) -> Iterator[Line]:
    if not rows:
        return
    what = "node" if "node" in rows[0] else "rank"
    # Messages go from the first one to the second, for which the first one waits.
    if by == "waiting":
        first, second, *head = what, "waits for", "sent to it", "bytes", "in flight", "waiting", "share"
    else:
        first, second, *head = f"from {what}", f"to {what}", "messages", "bytes", "in flight", "waits for", "share"
    if what == "node":
        ends = [
            Column(first, 13, lambda row: row["node"][-12:]),
            Column(second, 14, lambda row: row["peer_node"][-12:]),
        ]
    else:
        ends = [
            Column(first, 13, lambda row: _name(row["rank"], row["last_rank"])),
            Column(second, 14, lambda row: _name(row["peer"], row["last_peer"])),
        ]
    amounts = (
        Column(head[0], 10, lambda row: row["messages"] + row["transfers"], "count"),
        Column(head[1], 11, lambda row: row["bytes"] + row["transfer_bytes"], "bytes"),
        Column(head[2], 11, lambda row: row["time"] + row["transfer_time"], "sec"),
        Column(head[3], 11, "waiting", "sec"),
        Column(head[4], 8, "share", "share"),
    )
    yield from table(rows, (*ends, *amounts))
    yield []


def _groups(groups: list[dict[str, Any]]) -> Iterator[Line]:
    if not groups:
        return
    from whywait.analysis.changes import rank_list

    columns = (
        Column(
            "operations of devices in", -25, lambda row: f"{row['name']} ({rank_list(list(map(str, row['ranks'])))})"
        ),
        Column("kernels", 9, "kernels", "count"),
        Column("waiting", 11, "waiting", "sec"),
        Column("hidden", 11, "hidden", "sec"),
        Column("transfer", 11, "transfer", "sec"),
        Column("excess", 11, "excess", "sec"),
    )
    yield from table(groups, columns)
    yield []


def _ends(pairs: pa.Table) -> tuple[str, str]:
    return ("node", "peer_node") if "node" in pairs.column_names else ("rank", "peer")


def _name(first: int, last: int) -> str:
    return str(int(first)) if first == last else f"{int(first)}-{int(last)}"


def _sizes(rows: list[dict[str, Any]], screen: Screen) -> Iterator[Line]:
    if not rows:
        return
    most, room = max(row["count"] for row in rows), max(1, screen.width - 58)
    block = "█" if screen.unicode else "#"
    columns = (
        Column("size", -24, _size),
        Column("kind", -9, "kind"),
        Column("count", 12, "count", "count"),
        Column("bytes", 11, "bytes", "bytes"),
    )
    yield from table(
        rows, columns, rest=lambda row: [("  ", ""), (block * max(1, round(row["count"] / most * room)), "green")]
    )


def _size(row: Mapping[str, Any]) -> str:
    least, most = quantity(row["least"], "bytes"), quantity(row["below"] - 1, "bytes")
    return least if row["below"] == 1 else f"{least} to {most}"
