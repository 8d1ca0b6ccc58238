"""Say what a run would have taken with changes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.common import Progress, add_verb, positive, print_json
from whywait.commands.results import CALLPATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whywait.report.terminal import Line
    from whywait.whatif import Hypothesis, Simulation

_HYPOTHESES = {
    "scale": ("PATH=F", "the exclusive time of PATH becomes F times as long"),
    "set": ("PATH=TIME", "the exclusive time of each instance of PATH becomes TIME (2ms)"),
    "balance": (
        "PATH[:MODE]",
        (
            "time moves between ranks until all instances of PATH are equally long: MODE is instance (default), local, "
            "global or scaled; by=0.5 goes half of the way, uneven=average allows different numbers of instances"
        ),
    ),
    "cut": ("PATH", "PATH vanishes with all in it, and what communicates with that"),
    "cut-messages": (
        "CONDITIONS",
        "messages vanish of which all conditions hold: size==0,tag!=3,from==0,to<4,comm==1,in=PATH; may be given again",
    ),
    "cpu": ("F[@RANKS]", "all computation is F times as fast"),
    "protocol": ("PATH=P", "messages sent by PATH are eager, or go by rendezvous"),
    "eager-limit": ("BYTES", "messages of more bytes go by rendezvous, others are eager"),
    "progress": ("asynchronous", "one-sided operations need nobody at their target"),
    "overhead": ("TIME", "every segment is shorter by the TIME that recording an event took (1us); must be alone"),
    "network": ("ideal", "calls of communication libraries take no time but waiting"),
}

_SELECTION = """\
PATH is the last names of call paths (solve/relax) or the number of one. It can be followed by
  /**           the computation in the call paths below as well
  ~N            only the N-th stretch between two calls of each instance (0 is the first; last)
  @RANKS        only at these ranks: 0-3,8; 5.1 is thread 1 of rank 5
  #INSTANCES    only these instances of each rank: 0, 10-20, last
"""


class _Collect(argparse.Action):
    """Keeps hypotheses in the order in which they are given."""

    def __call__(
        self, _: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        chosen = [*(getattr(namespace, "hypotheses", None) or ()), ((option_string or "").lstrip("-"), str(values))]
        namespace.hypotheses = chosen


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "whatif",
        "say what a run would have taken with changes",
        "Say what a run would have taken if something took longer or shorter, was balanced, or the network was "
        "another. What is no waiting takes as long as measured unless it is changed; who communicates with whom stays; "
        "every wait is found anew.",
        "whywait whatif run/ --scale 'relax=0.8' --balance 'solve/**:scaled' -o run-balanced",
        run,
    )
    for name, (value, text) in _HYPOTHESES.items():
        parser.add_argument(f"--{name}", action=_Collect, metavar=value, dest="hypotheses", help=text)
    parser.epilog = f"{_SELECTION}\n{parser.epilog}"
    parser.add_argument(
        "--window", metavar="FROM:TO", help="change only instances that begin in this part of the run (0.5:2, seconds)"
    )
    parser.add_argument("--callpath", metavar="PATH", help=f"change {CALLPATH}")
    parser.add_argument(
        "--hidden",
        choices=("estimate", "remainder"),
        default="estimate",
        help="how long a transfer takes for which no receive had to wait: as others like it, or as long as what is "
        "left of its call (default: %(default)s)",
    )
    parser.add_argument(
        "--only-time", action="store_true", help="only the length of the changed run: no analysis of it"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write the changed run, a trace, and its results to this directory"
    )
    parser.add_argument("--html", metavar="FILE", help="write both runs side by side as one file for a browser")
    parser.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many places to show (default: %(default)s)"
    )
    parser.add_argument("--threads", type=positive, metavar="N", help="how many threads to use (default: all cores)")


def run(options: argparse.Namespace) -> int:
    """Do it."""
    import whywait
    from whywait.whatif import parse, refuse_archive

    hypotheses = [parse(kind, text) for kind, text in options.hypotheses or ()]
    window = _window(options.window) if options.window else None
    if options.only_time and (options.output or options.html):
        raise whywait.UsageError("--only-time analyzes nothing that could be written")
    if options.output:
        refuse_archive(Path(options.output))
    with Progress(quiet=options.json) as progress:
        trace = whywait.open(options.trace)
        result = whywait.analyze(trace, threads=options.threads, causes=not options.only_time, progress=progress)
        sim = whywait.whatif(
            result,
            hypotheses,
            hidden=options.hidden,
            window=window,
            callpath=options.callpath,
            threads=options.threads,
        )
        # The length is not worth much if nobody can say where it is saved.
        if not options.only_time:
            _ = sim.result
    if options.output:
        sim.write(options.output)
        sim.result.write(options.output)
    if options.html:
        from whywait.compare import write_html

        write_html(result, sim.result, options.html, names=("measured", "simulated"))
    if options.json:
        print_json(_json(sim, options))
    else:
        _show(sim, hypotheses, options)
    return 0


def _window(text: str) -> tuple[float, float]:
    from whywait import UsageError

    first, _, last = text.partition(":")
    try:
        return float(first or 0), float(last or "inf")
    except ValueError:
        raise UsageError(f"{text!r} is not of the form FROM:TO, such as 0.5:2") from None


def _json(sim: Simulation, options: argparse.Namespace) -> dict[str, Any]:
    from whywait.compare import totals

    data: dict[str, Any] = {
        "before": sim.before,
        "after": sim.after,
        "saved": sim.saved,
        "hypotheses": [str(hypothesis) for hypothesis in sim.hypotheses],
        "assumptions": sim.assumptions.to_pylist(),
        "notes": sim.notes,
    }
    if not options.only_time:
        data["diff"] = {
            "metrics": totals(sim.measured, sim.result),
            "places": sim.diff().slice(0, options.top).to_pylist(),
        }
    return data


def _show(sim: Simulation, hypotheses: Sequence[Hypothesis], options: argparse.Namespace) -> None:
    from whywait.commands.diff import metric_lines, place_lines
    from whywait.compare import totals
    from whywait.report.terminal import show, speaks_unicode, width

    columns, unicode = width(sys.stdout), speaks_unicode(sys.stdout)
    show(_summary(sim, hypotheses), sys.stdout)
    if not options.only_time:
        metrics = totals(sim.measured, sim.result)
        show([[], *metric_lines(metrics, columns, ("measured", "simulated"))], sys.stdout)
        show(_exposed(sim, metrics), sys.stdout)
        runs = (sim.measured, sim.result)
        show(place_lines(sim.diff(), runs, columns, options.top, unicode=unicode), sys.stdout)
    show(_assumptions(sim), sys.stdout)
    for written in (options.output and f"{options.output}/", options.html):
        if written:
            sys.stdout.write(f"Written to {written}\n")


def _summary(sim: Simulation, hypotheses: Sequence[Hypothesis]) -> Iterator[Line]:
    from whywait.report.values import quantity

    def time(value: float) -> str:
        return quantity(value, "sec")

    if not hypotheses:
        yield [("Nothing is changed: the simulated run is the measured one.", "")]
    for hypothesis in hypotheses:
        yield [(f"What if: {hypothesis}", "bold")]
    saved = f"{time(sim.saved)} saved" if sim.saved >= 0 else f"{time(-sim.saved)} lost"
    share = f" ({abs(sim.saved) / sim.before:.1%})" if sim.before else ""
    speedup = f", speed-up {sim.before / sim.after:.3f}" if sim.after > 0 else ""
    yield [(f"{time(sim.before)} -> {time(sim.after)}, {saved}{share}{speedup}", "green" if sim.saved > 0 else "")]


def _exposed(sim: Simulation, metrics: list[dict[str, Any]]) -> Iterator[Line]:
    """Yield the wait states that grew: what the change exposes."""
    from whywait.report.values import quantity

    kinds = {wait["metric"] for wait in metrics if _is_wait(sim, wait["metric"])}
    grown = [row for row in metrics if row["metric"] in kinds and row["difference"] > 1e-3 * max(sim.before, 1e-12)]
    if grown:
        yield []
        yield [("Exposed: wait states that grow", "bold")]
    for row in sorted(grown, key=lambda row: -row["difference"]):
        yield [(f"   {row['display_name']}  +{quantity(row['difference'], 'sec')}", "red")]


def _is_wait(sim: Simulation, name: str) -> bool:
    tree = sim.result.profile.metrics
    return name in tree and tree.wait_state(name) is tree[name]


def _assumptions(sim: Simulation) -> Iterator[Line]:
    rows = sim.assumptions.to_pylist()
    if rows or sim.notes:
        yield []
        yield [("Assumed:", "bold")]
    for row in rows:
        yield [(f"   {row['count']:,} {row['text']}", "dim")]
    for note in sim.notes:
        yield [(f"   {note}", "dim")]
