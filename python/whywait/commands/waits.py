"""List the wait states that matter most."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, positive, print_json
from whywait.commands.results import CALLPATH, RESULT, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.metrics import MetricTree
    from whywait.report.terminal import Line


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "waits",
        "list the wait states that matter most",
        "List wait states, longest first: who waits, where, when, for how long, and for whom; or with --groups the "
        "places where most is waited.",
        "whywait waits results --metric mpi_latesender --rank 3 --top 10",
        run,
        operands={"result": RESULT},
    )
    parser.add_argument(
        "--metric", metavar="NAME", help="only this wait state, or those below this metric (mpi_latesender, mpi)"
    )
    parser.add_argument("--rank", type=int, metavar="R", help="only where this rank waits")
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    parser.add_argument("--groups", action="store_true", help="add up what has the same kind, place and cause")
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many to list (default: %(default)s)"
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from whywait.ranking import Choice, choose, groups, longest
    from whywait.report.terminal import show, speaks_unicode, width

    result = load(options.result)
    chosen = choose(result, Choice(options.metric, options.rank, options.callpath))
    rows = (
        groups(result, chosen, options.top)
        if options.groups
        else longest(result, chosen, options.top).to_pylist()
    )  # fmt: skip
    total = sum(chosen["waiting"].to_numpy().tolist())
    if options.json:
        print_json({"instances": chosen.num_rows, "waiting": total, "waits": rows})
    else:
        form = _group if options.groups else _instance
        columns, unicode = width(sys.stdout), speaks_unicode(sys.stdout)
        show(_lines(rows, chosen.num_rows, total, columns), sys.stdout)
        for number, row in enumerate(rows, 1):
            show(form(number, row, result.profile.metrics, total, columns, unicode=unicode), sys.stdout)
    return 0


def _lines(rows: list[dict[str, Any]], instances: int, total: float, width: int) -> Iterator[Line]:
    from whywait.report.terminal import seconds

    if not rows:
        yield [("No wait states.", "")]
        return
    text = f"{instances:,} wait state{'' if instances == 1 else 's'}, {seconds(total)}"
    yield [(text.ljust(width - 19) + "waiting".rjust(11) + "share".rjust(8), "bold")]


def _head(number: int, row: dict[str, Any], metrics: MetricTree, total: float, width: int) -> Line:
    from whywait.report.terminal import percent, seconds

    label = f"{number}. {metrics[row['kind']].display_name}"
    if "rank" in row:
        thread = f".{row['thread']}" if row["thread"] else ""
        label += f", rank {row['rank']}{thread} at {row['enter']:.6f} s"
    share = percent(row["waiting"] / total) if total else ""
    return [(label[: width - 20].ljust(width - 19), "red"), (seconds(row["waiting"]).rjust(11) + share.rjust(8), "")]


def _instance(
    number: int, row: dict[str, Any], metrics: MetricTree, total: float, width: int, *, unicode: bool
) -> Iterator[Line]:
    from whywait.report.terminal import path

    yield _head(number, row, metrics, total, width)
    yield [("   " + path(row["callpath"], width - 3, unicode=unicode), "")]
    if row["cause_rank"] is not None:
        who = f"   for rank {row['cause_rank']}" + (f".{row['cause_thread']}" if row["cause_thread"] else "")
        if row["cause_time"] is not None:
            who += f", which came at {row['cause_time']:.6f} s"
        yield [(who, "dim")]
        if row["cause_callpath"]:
            yield [("   in " + path(row["cause_callpath"], width - 6, unicode=unicode), "dim")]


def _group(
    number: int, row: dict[str, Any], metrics: MetricTree, total: float, width: int, *, unicode: bool
) -> Iterator[Line]:
    from whywait.report.terminal import path, seconds

    yield _head(number, row, metrics, total, width)
    yield [("   " + path(row["callpath"], width - 3, unicode=unicode), "")]
    times = f"{row['instances']:,} time{'' if row['instances'] == 1 else 's'}"
    text = f"   {times} on {_ranks(row['ranks'])}, up to {seconds(row['longest'])}"
    yield [(f"{text}; for {_ranks(row['cause_ranks'])}" if row["cause_ranks"] else text, "dim")]
    if row["cause_callpath"]:
        yield [("   in " + path(row["cause_callpath"], width - 6, unicode=unicode), "dim")]


def _ranks(count: int) -> str:
    return f"{count:,} rank{'' if count == 1 else 's'}"
