"""Predict the length of a run with changes."""

from __future__ import annotations

import argparse
import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_top, add_verb
from whywait.commands.diff import add_limits
from whywait.commands.results import CALLPATH, TRACE, add_analysis, add_named_focus, analysis_choices, open_trace
from whywait.report.values import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whywait import Result
    from whywait.api.whatif import Simulation
    from whywait.commands.answers import Screen
    from whywait.hypotheses import Hypothesis, Network
    from whywait.report.terminal import Line

_HYPOTHESES = {
    "scale": (
        "PATH=F",
        "multiply the exclusive time of PATH by F; PATH=F,min_span=10us leaves shorter segments unchanged",
    ),
    "set": ("PATH=TIME", "set the exclusive time of each instance of PATH to TIME (2ms)"),
    "balance": (
        "PATH[:MODE]",
        (
            "move time between instances of PATH until they are equally long: MODE is instance (default), segment, "
            "local, global, scaled, or median; by=0.5 applies half of the change, uneven=average allows different "
            "numbers of instances, and among=node, process, comm:ID, or 0-3,8 moves time only within these groups"
        ),
    ),
    "trim": (
        "PATH",
        "let the calls of PATH, or all calls, take no longer than the fastest 5%% of their kind (see whywait account)",
    ),
    "cut": ("PATH", "remove PATH with everything in it, and both sides of its communication"),
    "cut-messages": (
        "CONDITIONS",
        "remove the messages that meet all conditions: size==0,tag!=3,from==0,to<4,comm==1,in=PATH; can be repeated",
    ),
    "overlap": (
        "PATH[:after=PATH]",
        (
            "let messages of PATH travel while the program computes: blocking sends and receives become non-blocking "
            "ones, and waits come later, behind the computation that follows, or behind the next call of after=PATH"
        ),
    ),
    "split": ("PATH", "make MPI_Sendrecv in PATH a send and then a receive"),
    "cpu": ("F[@RANKS]", "make all computation F times as fast"),
    "protocol": ("PATH=P", "send the messages of PATH by protocol P: eager or rendezvous"),
    "eager-limit": ("BYTES", "send larger messages by rendezvous and all others eagerly"),
    "progress": ("asynchronous", "complete one-sided operations without the target"),
    "overhead": (
        "TIME",
        (
            "remove the TIME that it took to record an event (1us) from every segment, but leave at least 10ns "
            "(1us,least=5ns sets another minimum); excludes all other changes"
        ),
    ),
    "network": (
        "NETWORK",
        (
            "use another network: ideal (calls of communication libraries only wait), latency=2us,bandwidth=10GB/s "
            "(also local_latency, local_bandwidth, eager, send, receive), measured, or fit, which prints the latency "
            "and bandwidth of the measured messages"
        ),
    ),
}

# So many ranks are listed.
_RANKS = 10
_SELECTION = """\
PATH gives the last names of call paths (solve/relax) or the number of one. It can be followed by
  /**           also the computation in the call paths below
  ~N            only the N-th segment between two calls of each instance: 0, 1, last
  @RANKS        only on these ranks: 0-3,8; 5.1 is thread 1 of rank 5
  #INSTANCES    only these instances of each rank: 0, 10-20, last
"""


class _Collect(argparse.Action):
    """Collects hypotheses in the order in which they are given."""

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
        "simulate a run with changes",
        "Predict how long a run would have taken after changes: faster or balanced call paths, other protocols, or "
        "another network. The simulation keeps all measured times that you do not change and who communicates with "
        "whom, and computes every wait anew.",
        "whywait whatif run/ --scale 'relax=0.8' --balance 'solve/**:scaled' -o run-balanced",
        run,
        operands={"trace": TRACE},
    )
    add_analysis(parser)
    for name, (value, text) in _HYPOTHESES.items():
        parser.add_argument(f"--{name}", action=_Collect, metavar=value, dest="hypotheses", help=text)
    parser.add_argument(
        "--ideal",
        choices=("workers",),
        help="how much slower the devices of a run are than if all ranks were alike: each kernel takes as long as the "
        "mean of its call path, and each transfer as long as the median of its own; excludes all changes",
    )
    parser.add_argument(
        "--base",
        metavar="NETWORK",
        help="compare with the run on this network instead of the measured run: for changes of the network that "
        "--network fit prints",
    )
    parser.epilog = f"{_SELECTION}\n{parser.epilog}"
    parser.add_argument(
        "--hypotheses",
        metavar="FILE",
        dest="file",
        help="read hypotheses from a file in the grammar of Jül-4297, table 4.1",
    )
    parser.add_argument(
        "--window", metavar="FROM:TO", help="change only instances that begin in this part of the run (0.5:2, seconds)"
    )
    parser.add_argument("--callpath", metavar="PATH", help=f"change {CALLPATH}")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a hypothesis that matches nothing in the run, instead of simulating the others without it",
    )
    parser.add_argument(
        "--hidden",
        choices=("estimate", "remainder"),
        default="estimate",
        help="the duration of transfers for which no receive had to wait: that of similar transfers, or the remainder "
        "of the call (default: %(default)s)",
    )
    parser.add_argument(
        "--only-time", action="store_true", help="print only the length of the changed run, and do not analyze it"
    )
    parser.add_argument("--verbose", action="store_true", help="explain the assumptions")
    parser.add_argument(
        "-o", "--output", metavar="DIR", help="write the simulated trace and its results to this directory"
    )
    parser.add_argument(
        "--results", metavar="DIR", help="write only the results of the simulated run to this directory"
    )
    parser.add_argument("--html", metavar="FILE", help="write both runs side by side as one HTML file")
    add_named_focus(parser, "the part of both runs to compare")
    add_top(parser, "how many call paths to show")
    add_limits(parser, "fail as in diff if a metric grows by more ('time>5%%', 'mpi_latesender>0.5s')")


def run(options: argparse.Namespace) -> Answer:
    """Simulate the changes and return their effects on the run."""
    import whywait
    from whywait.api.whatif import refuse_archive
    from whywait.hypotheses import Network, parse

    given = [one for one in options.hypotheses or () if one != ("network", "measured")]
    hypotheses = [parse(kind, text) for kind, text in given if (kind, text) != ("network", "fit")]
    if options.file:
        hypotheses = [*_from_file(options.file), *hypotheses]
    window = _window(options.window) if options.window else None
    base = Network.parse(options.base) if options.base else None
    if options.only_time and (options.output or options.html or options.results or options.fail_on):
        raise whywait.UsageError(
            "--only-time does not analyze the run, so it cannot be combined with -o, --results, --html, or --fail-on"
        )
    if options.output:
        refuse_archive(Path(options.output))
    if options.ideal and (given or options.file):
        raise whywait.UsageError("--ideal compares with a run in which all ranks are alike: it allows no other changes")
    with Progress(quiet=options.json) as progress:
        trace = open_trace(options.trace)
        result = whywait.analyze(trace, causes=not options.only_time, progress=progress, **analysis_choices(options))
        if ("network", "fit") in given:
            return _fit(result, options)
        if options.ideal:
            return _ideal(result)
        sim = whywait.whatif(
            result,
            hypotheses,
            base=base,
            hidden=options.hidden,
            window=window,
            callpath=options.callpath,
            strict=options.strict,
            threads=options.threads,
            memory_limit=options.memory_limit,
            progress=progress,
        )
        # The prediction alone is of little use without showing where time is saved.
        if not options.only_time:
            _ = sim.reference, sim.result
        if options.output:
            sim.write(options.output)
    for hypothesis, reason in sim.left_out:
        sys.stderr.write(f"whywait: {hypothesis} is left out: {reason}\n")
    if options.output:
        sim.result.write(options.output)
    if options.results:
        sim.result.write(options.results)
    if options.html:
        sim.write_html(options.html, focus=options.focus)
    failed = [limit.text for limit in sim.compare(options.focus).exceeded(options.fail_on)] if options.fail_on else []
    data = _json(sim, options, failed) if options.json else None
    code = 1 if failed else 0
    return Answer(data, lambda screen: _lines(sim, options, failed, screen), code, results=[result])


def _from_file(name: str) -> list[Hypothesis]:
    from whywait import UsageError
    from whywait.hypotheses import read

    try:
        text = Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not a text file") from None
    found = read(text, name)
    if found.ignored:
        names = ", ".join(repr(option) for option in found.ignored)
        sys.stderr.write(f"whywait: {name}: nothing is run again, so these options mean nothing here: {names}\n")
    return found.hypotheses


def _window(text: str) -> tuple[float, float]:
    from whywait import UsageError

    first, _, last = text.partition(":")
    try:
        return float(first or 0), float(last or "inf")
    except ValueError:
        raise UsageError(f"{text!r} is not of the form FROM:TO, such as 0.5:2") from None


def _ideal(result: Result) -> Answer:
    from whywait import UsageError

    found = result.facts.get("stragglers")
    if found is None:
        raise UsageError("--ideal needs traces of devices that communicate, as PyTorch's profiler writes them")

    def lines(_: Screen) -> Iterator[Line]:
        length, ideal = found["per_step"] or found["length"], found["ideal_per_step"] or found["ideal"]
        what = "A step takes" if found["per_step"] else "The run takes"
        text = f"{what} {quantity(length, 'sec')}, {found['slowdown']:.3f} times as long as with ranks that are alike"
        yield [(f"{text} ({quantity(ideal, 'sec')}).", "bold")]
        if found["without_lags"]:
            yield [("No host is recorded: in both, work begins as soon as all that delays it has ended.", "dim")]
        for name, ranks, share in (
            ("the slowest 3% of the ranks", found["slowest_ranks"], found["M_W"]),
            ("the last stage", found["last_stage"], found["M_S"]),
        ):
            if share is not None:
                of = f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
                yield [(f"Repairing {name} ({of}) recovers {share:.1%} of the difference.", "")]
        for one in sorted(found["ranks"], key=lambda one: -one["slowdown"])[:_RANKS]:
            yield [(f"   rank {one['rank']:<6} alone: {one['slowdown']:.3f} times as long", "")]

    return Answer(found, lines, results=[result])


def _fit(result: Result, options: argparse.Namespace) -> Answer:
    import whywait

    fitted = whywait.fit_network(result, threads=options.threads)
    # JSON has no infinity.
    finite = {
        name: {"latency": network.latency, "bandwidth": None if network.bandwidth == inf else network.bandwidth}
        for name, network in fitted.items()
    }
    places = {"remote": "between nodes", "local": "on one node"}
    lines = [
        [(f"{places[name]:<14} {_rounded(network)}", "bold"),
         (f"   (a message of 8 KiB: {quantity(network.latency + 8192 / network.bandwidth, 'sec')})", "dim")]
        for name, network in fitted.items()
    ]  # fmt: skip
    none = [[("Too few receives had to wait for their messages to say how long these take.", "")]]
    return Answer(finite, lambda _: lines or none, results=[result])


def _rounded(network: Network) -> str:
    from dataclasses import replace

    latency, bandwidth = (float(f"{value:.4g}") for value in (network.latency, network.bandwidth))
    return str(replace(network, latency=latency, bandwidth=bandwidth)).removeprefix("network ")


def _json(sim: Simulation, options: argparse.Namespace, failed: list[str]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "before": sim.before,
        "after": sim.after,
        "saved": sim.saved,
        "focus": {"before": sim.focus_before, "after": sim.focus_after, "saved": sim.focus_saved},
        "measured": sim.measured.facts["length"],
        "hypotheses": [str(hypothesis) for hypothesis in sim.hypotheses],
        "left_out": [{"hypothesis": str(hypothesis), "reason": reason} for hypothesis, reason in sim.left_out],
        "assumptions": sim.assumptions.to_pylist(),
        "notes": sim.notes,
    }
    if not options.only_time:
        data["deviations"] = {name: found._asdict() for name, found in sim.deviations.items()}
        data["error_estimate"] = sim.error_estimate._asdict() | {"total": sim.error_estimate.total}
        efficiencies = _efficiencies(sim, options.focus)
        data["efficiencies"] = {
            name: {"before": before, "after": after} for name, (before, after) in efficiencies.items()
        }
        both = sim.compare(options.focus)
        data["diff"] = {
            "metrics": both.totals(),
            "places": both.differences().slice(0, options.top).to_pylist(),
        }
        data["failed"] = failed
    return data


def _lines(sim: Simulation, options: argparse.Namespace, failed: Sequence[str], screen: Screen) -> Iterator[Line]:
    yield from _summary(sim)
    if not options.only_time:
        yield from _error(sim)
        yield from _effects(sim, options.focus)
        yield from _details(sim, options, screen)
    yield from _assumptions(sim, verbose=options.verbose)
    for written in (options.output and f"{options.output}/", options.results and f"{options.results}/", options.html):
        if written:
            yield [(f"Written to {written}", "")]
    yield from ([(f"failed: {text}", "bold red")] for text in failed)


def _details(sim: Simulation, options: argparse.Namespace, screen: Screen) -> Iterator[Line]:
    from whywait.commands.diff import metric_lines, place_lines

    names = ("network" if sim.base else "measured", "simulated")
    yield []
    both = sim.compare(options.focus)
    yield from metric_lines(both.totals(), screen.width, names)
    yield from place_lines(both.differences(), both.parts, screen, options.top)
    yield []
    yield from _deviations(sim)
    if text := _changes(_efficiencies(sim, options.focus), "load_balance", "serialization", "transfer"):
        yield from ([(text.capitalize(), "")], [])


def _time(value: float) -> str:
    return quantity(value, "sec")


def _summary(sim: Simulation) -> Iterator[Line]:
    from whywait.hypotheses.kinds import IdealNetwork, changes_nothing
    from whywait.hypotheses.kinds import Network as NetworkChange

    for hypothesis in sim.hypotheses:
        yield [(f"What if: {hypothesis}", "bold")]
    if all(map(changes_nothing, sim.hypotheses)):
        yield [("Nothing is changed: the simulated run is the measured one.", "")]
    saved = f"{_time(sim.saved)} saved" if sim.saved >= 0 else f"{_time(-sim.saved)} lost"
    share = f" ({abs(sim.saved) / sim.before:.1%})" if sim.before else ""
    speedup = f", speed-up {sim.before / sim.after:.3f}" if sim.after > 0 else ""
    if sim.base:
        measured = float(sim.measured.facts["length"])
        yield [(f"On {_base(sim.base, sim)} the run takes {_time(sim.before)} (measured: {_time(measured)}).", "")]
    yield [(f"{_time(sim.before)} -> {_time(sim.after)}, {saved}{share}{speedup}", "green" if sim.saved > 0 else "")]
    # Another network changes the start-up, too, unless it is restricted to a window.
    on_networks = any(isinstance(one, (IdealNetwork, NetworkChange)) for one in sim.hypotheses)
    if sim.measured.facts.get("focus_rule") == "last_finalize" and (sim.base or not on_networks):
        less, before = sim.focus_saved, sim.focus_before
        saved = f"{_time(less)} saved" if less >= 0 else f"{_time(-less)} lost"
        share = f" ({abs(less) / before:.1%})" if before else ""
        yield [(f"Between start-up and shutdown: {_time(before)} -> {_time(sim.focus_after)}, {saved}{share}", "")]


def _error(sim: Simulation) -> Iterator[Line]:
    """Yield what is known about the error of the prediction."""
    from whywait.analysis.focus import focused

    found = sim.error_estimate
    if found.noise is None or found.total is None:
        known = f"; sampling alone ±{_time(found.sampling)}" if found.sampling else ""
        yield [(f"Error estimate: unknown, because no iterations show the noise{known}", "dim")]
        return
    window = focused(sim.result).focus.window
    length = window[1] - window[0] if window else float(sim.after)
    share = f" ({found.total / length:.1%} of {_time(length)}{_BETWEEN if window else ''})" if length > 0 else ""
    noise = f"noise {_time(found.noise)} ({found.iterations:,} iterations)"
    assumptions = f" + assumptions {_time(found.assumptions)}" if found.assumptions else ""
    sampling = f" + sampling {_time(found.sampling)}" if found.sampling else ""
    cores = f" + shared cores {_time(found.cores)}" if found.cores else ""
    yield [(f"Error estimate ±{_time(found.total)}{share}: {noise}{assumptions}{cores}{sampling}", "")]


_BETWEEN = " between start-up and shutdown"


def _deviations(sim: Simulation) -> Iterator[Line]:
    """Yield by how much each part of the processor time changes."""
    if sim.base:
        yield from _deviation(f"On {_base(sim.base, sim)}, CPU time", sim.base)
    yield from _deviation("CPU time", sim)


def _base(base: Simulation, sim: Simulation) -> str:
    """Return the words for the network of the run to compare with."""
    networks = base.hypotheses
    return "this network alone" if set(networks) <= set(sim.hypotheses) else "; ".join(map(str, networks))


def _deviation(of: str, sim: Simulation) -> Iterator[Line]:
    total, *parts = sim.deviations.items()
    if total[1].percent is not None:
        text = ", ".join(f"{name} {_percent(found.percent)}" for name, found in parts)
        yield [(f"{of} {_percent(total[1].percent)}: {text}", "")]


def _percent(value: float | None) -> str:
    # Without the sign of a zero that is the rest of a rounding.
    return "-" if value is None else f"{value:+.2f}%".replace("-0.00", "+0.00")


def _effects(sim: Simulation, focus: str | None) -> Iterator[Line]:
    """Yield one line each for the changes of the efficiency and of the waiting in the focus."""
    from whywait.analysis.waiting import account

    before, after = (account(part.profile) for part in sim.compare(focus).parts)
    efficiencies = _efficiencies(sim, focus)
    text = _changes(efficiencies, "parallel_efficiency")
    if before["waiting"] or after["waiting"]:
        waiting = f"Waiting {_time(before['waiting'])} -> {_time(after['waiting'])} of CPU time"
        yield [(f"{waiting}, {text}" if text else waiting, "")]
    elif text:
        yield [(text.capitalize(), "")]
    states = {**before["wait_states"], **after["wait_states"]}
    tree = {name: _name(sim, name) for name in states}
    change = {name: after["wait_states"].get(name, 0.0) - before["wait_states"].get(name, 0.0) for name in states}
    small = 1e-3 * max(sim.before, 1e-12)
    for title, sign, style in (("less", -1, "green"), ("exposed", 1, "red")):
        found = sorted((-sign * value, name) for name, value in change.items() if sign * value > small)
        if found:
            parts = [f"{tree[name]} {'-' if sign < 0 else '+'}{_time(abs(value))}" for value, name in found]
            more = f" and {len(parts) - _STATES} more" if len(parts) > _STATES else ""
            yield [(f"   {title:<8}", style), ("; ".join(parts[:_STATES]) + more, "")]


_STATES = 3


def _efficiencies(sim: Simulation, focus: str | None) -> dict[str, tuple[float | None, float | None]]:
    """Return the efficiencies of both runs by name, for the focus."""
    from whywait.analysis.focus import find_focus

    parts = [(result, find_focus(result, focus)) for result in (sim.reference, sim.result)]
    before, after = (result.efficiencies(part.callpath, window=part.window) for result, part in parts)
    return {name: (before[name].value, after[name].value) for name in _EFFICIENCIES}


_EFFICIENCIES = {
    "parallel_efficiency": "parallel efficiency",
    "load_balance": "load balance",
    "serialization": "serialization",
    "transfer": "transfer",
}


def _changes(efficiencies: dict[str, tuple[float | None, float | None]], *names: str) -> str:
    known = ((_EFFICIENCIES[name], *efficiencies[name]) for name in names)
    return ", ".join(
        f"{name} {before:.1%} -> {after:.1%}"
        for name, before, after in known
        if before is not None and after is not None
    )


def _name(sim: Simulation, metric: str) -> str:
    trees = (result.profile.metrics for result in (sim.result, sim.reference))
    return next(tree[metric].display_name for tree in trees if metric in tree)


def _affected_time(row: dict[str, Any]) -> str:
    """Return the time that an assumption affects, if known."""
    return "" if row["time"] is None else f" ({_time(row['time'])} of CPU time)"


def _assumptions(sim: Simulation, *, verbose: bool) -> Iterator[Line]:
    """Yield what the simulation makes assumptions about and, if verbose, which."""
    rows = sim.assumptions.to_pylist()
    if rows:
        yield [(f"Assumptions about{'' if verbose else ' (--verbose says which)'}:", "bold")]
    for row in rows:
        about, _, assumed = row["text"].partition(": ")
        text = f"{row['count']:,} {about}{_affected_time(row)}"
        yield [(f"   {text}: {assumed}" if verbose else f"   {text}", "dim")]
    for note in sim.notes:
        yield [(note, "dim")]
