"""Show the communication between ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import RESULT, ask

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow as pa

    from whywait.analysis.communication import Measure
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
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many pairs to list (default: %(default)s)"
    )  # fmt: skip


def _merge(text: str) -> Literal["node"] | int:
    """Parse what to merge ranks by."""
    return "node" if text == "node" else positive(text)


def run(options: argparse.Namespace) -> int:
    """Print the communication matrix."""
    from whywait.analysis.communication import coarsen, heaviest, totals
    from whywait.report.terminal import show, speaks_unicode, width

    result, pairs = ask(options.result, lambda result: result.communication(merge=options.merge))
    sizes = result.message_sizes()
    top = heaviest(pairs, options.by, options.top)
    if options.json:
        print_json(
            {
                "by": options.by,
                "merge": options.merge,
                "totals": totals(result),
                "pairs": top,
                "sizes": sizes.to_pylist(),
            }
        )
        return 0
    columns, unicode = width(sys.stdout), speaks_unicode(sys.stdout)
    show(_totals(totals(result)), sys.stdout)
    if pairs.num_rows:
        cells = min(_CELLS, (columns - 16) // 2)
        shown = pairs if options.merge == "node" else coarsen(pairs, cells)
        show(_matrix(shown, options.by, cells, unicode=unicode), sys.stdout)
        show(_pairs(top, options.by), sys.stdout)
    show(_sizes(sizes, columns, unicode=unicode), sys.stdout)
    return 0


def _totals(total: dict[str, float]) -> Iterator[Line]:
    from whywait.report.terminal import seconds
    from whywait.report.values import quantity

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
    from whywait.report.terminal import percent, seconds
    from whywait.report.values import quantity

    if not rows:
        return
    what = "node" if "node" in rows[0] else "rank"
    # Messages go from the first one to the second, for which the first one waits.
    if by == "waiting":
        first, second, *head = what, "waits for", "sent to it", "bytes", "in flight", "waiting", "share"
    else:
        first, second, *head = f"from {what}", f"to {what}", "messages", "bytes", "in flight", "waits for", "share"
    widths = (10, 11, 11, 11, 8)
    names = "".join(name.rjust(width) for name, width in zip(head, widths, strict=True))
    yield [(f"{first:>13}{second:>14}{names}", "bold")]
    for row in rows:
        cells = (
            f"{int(row['messages'] + row['transfers']):,}",
            quantity(row["bytes"] + row["transfer_bytes"], "bytes"),
            seconds(row["time"] + row["transfer_time"]),
            seconds(row["waiting"]),
            percent(row["share"]),
        )
        if what == "node":
            rank, peer = row["node"][-12:], row["peer_node"][-12:]
        else:
            rank, peer = _name(row["rank"], row["last_rank"]), _name(row["peer"], row["last_peer"])
        values = "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        yield [(f"{rank:>13}{peer:>14}{values}", "")]
    yield []


def _ends(pairs: pa.Table) -> tuple[str, str]:
    return ("node", "peer_node") if "node" in pairs.column_names else ("rank", "peer")


def _name(first: int, last: int) -> str:
    return str(int(first)) if first == last else f"{int(first)}-{int(last)}"


def _sizes(sizes: pa.Table, width: int, *, unicode: bool) -> Iterator[Line]:
    from whywait.report.values import quantity

    if not sizes.num_rows:
        return
    rows = sizes.to_pylist()
    most = max(row["count"] for row in rows)
    yield [(f"{'size':<24}{'kind':<9}{'count':>12}{'bytes':>11}", "bold")]
    room = max(1, width - 58)
    for row in rows:
        least, most_bytes = quantity(row["least"], "bytes"), quantity(row["below"] - 1, "bytes")
        size = least if row["below"] == 1 else f"{least} to {most_bytes}"
        bar = ("█" if unicode else "#") * max(1, round(row["count"] / most * room))
        text = f"{size:<24}{row['kind']:<9}{row['count']:>12,}{quantity(row['bytes'], 'bytes'):>11}  "
        yield [(text, ""), (bar, "green")]
