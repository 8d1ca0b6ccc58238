"""Show the efficiencies of a run."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb
from whywait.commands.results import (
    CALLPATH,
    RESULT_OR_PROFILE,
    add_analysis,
    add_focus,
    analysis_choices,
    load,
    names_of,
)
from whywait.report.terminal import paragraph, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait import Result
    from whywait.analysis.efficiency.efficiency import Efficiencies, Efficiency, Method, Window
    from whywait.commands.answers import Screen
    from whywait.report.terminal import Line

_LABEL = 36
_COLUMN = 11
DEPTH = {"load_balance": 1, "communication_efficiency": 1, "serialization": 2, "transfer": 2,
          "instruction_scaling": 1, "ipc_scaling": 1, "frequency_scaling": 1}  # fmt: skip
# Names of the methods, for efficiencies in which they differ.
_BY_METHOD = ("serialization", "transfer")
_LABELS: dict[Method, str] = {"all": "", "cube": ", as Cube has it"}


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "efficiency",
        "show the POP efficiencies",
        "Show the POP efficiencies: parallel efficiency is load balance times communication efficiency, which is "
        "serialization times transfer. Serialization and transfer derive from the wait states, with one-sided ones, "
        "and also without them as in Cube's Advisor. With several runs, the first is the reference.",
        "whywait efficiency --callpath main/solve run-4 run-8 run-16",
        run,
        operands={},
    )
    add_analysis(parser)
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RESULT_OR_PROFILE)
    parser.add_argument("--callpath", metavar="PATH", help=CALLPATH)
    add_focus(parser, window=True)
    add_scaling(parser)
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="simulate serialization and transfer on an ideal network instead of estimating them; analyzes the trace "
        "of a result again",
    )
    parser.add_argument(
        "--talp",
        action="store_true",
        help="also show the OpenMP efficiencies of DLB's TALP: serialization, load balance, and scheduling",
    )


def add_scaling(parser: argparse.ArgumentParser) -> None:
    """Add the option for weak or strong scaling to a verb that compares runs."""
    parser.add_argument(
        "--scaling",
        choices=("strong", "weak"),
        help="whether the total work (strong) or the work per process (weak) is the same in all runs (default: told by "
        "how total computation, or the number of instructions, grows)",
    )


def run(options: argparse.Namespace) -> Answer:
    """Return the efficiencies."""
    from whywait import UsageError
    from whywait.analysis.devices.use import device_efficiencies
    from whywait.analysis.efficiency.efficiency import METHODS, scaling
    from whywait.analysis.focus import ALL, focused
    from whywait.analysis.runs.scaling_mode import detect_scaling

    window, name = options.focus.window, options.focus.name
    if options.simulate and window:
        raise UsageError("--simulate cannot be combined with a time window, because times differ in the simulated run")
    if options.callpath is not None and name not in {None, ALL}:
        raise UsageError("--callpath cannot be combined with another call path as --focus")
    needs_events = bool(window) or options.simulate
    results = [load(path, events=needs_events, choices=analysis_choices(options)) for path in options.runs]
    callpath = options.callpath
    windows: list[Window | None]
    if window:
        windows = [window(result.facts["length"]) for result in results]
    else:
        focuses = [focused(result, name).focus for result in results]
        callpath, windows = callpath or focuses[0].callpath, [focus.window for focus in focuses]
    if not needs_events:
        simulate_ideal(results)
    detected = detect_scaling([focused(result) for result in results])
    mode = options.scaling or detected.mode
    methods = {method: scaling(results, callpath, method=method, mode=mode, windows=windows) for method in METHODS}
    if options.simulate:
        methods = {"all": _simulated(methods["all"], results, callpath)}
    shown = _named if len(results) > 1 else _alone
    methods = {method: list(map(shown, rows, names_of(options.runs))) for method, rows in methods.items()}
    several = len(results) > 1
    scale = {"scaling": mode, "detected": detected._asdict()} if several else {}
    if not options.talp:
        methods = {method: [replace(row, talp=()) for row in rows] for method, rows in methods.items()}
    data = {**scale, "methods": {method: [_as_dict(row) for row in rows] for method, rows in methods.items()}}
    # The account of devices is that of the default focus.
    devices = [device_efficiencies(result) for result in results] if callpath is None and not (window or name) else []
    if any(devices):
        data["devices"] = devices

    def text(screen: Screen) -> Iterator[Line]:
        if several and not options.scaling and detected.sentence:
            yield from ([*paragraph(detected.sentence, screen.width), []])
        leaves_out = not (window or name) and any(row.window for row in methods["all"])
        if leaves_out and any("paraver" in result.facts for result in results):
            yield from ([*paragraph(_POP, screen.width), []])
        yield from _of_devices(methods["all"], devices)
        yield from lines(methods, screen.width)

    return Answer(data, text, results=results)


_POP = "Start-up and shutdown are left out; --focus all has them, and the efficiencies of basicanalysis."

_DEVICES = (
    ("device_parallel_efficiency", "Parallel efficiency of devices"),
    ("device_load_balance", "  Load balance"),
    ("device_communication_efficiency", "  Copies"),
    ("device_orchestration_efficiency", "  Orchestration"),
    ("device_offload_efficiency", "Offload efficiency of hosts"),
)


def _of_devices(rows: list[Efficiencies], devices: list[dict[str, float] | None]) -> Iterator[Line]:
    """Yield the efficiencies of the devices of each run; the others are of CPUs."""
    if not any(devices):
        return
    yield [("Efficiency of devices".ljust(_LABEL) + "".join(_names(rows)), "bold")]
    for name, label in _DEVICES:
        values = [(of_run or {}).get(name) for of_run in devices]
        yield [(label.ljust(_LABEL) + "".join(cell("-" if one is None else f"{one:.1%}") for one in values), "")]
    yield []


def simulate_ideal(results: list[Result]) -> None:
    """Simulate the ideal network for results that have their events, where that takes little: they keep it."""
    from whywait.analysis.native import NativeDataset
    from whywait.analysis.proposals import prices

    for result in results:
        if isinstance(result.tables, NativeDataset) and result.facts.get("events", 0) <= prices.SMALL:
            prices.simulate_ideal(result)


def _simulated(rows: list[Efficiencies], results: list[Result], callpath: str | int | None) -> list[Efficiencies]:
    """Compute the efficiencies of each run from its simulation on an ideal network, for the same part."""
    from whywait import whatif
    from whywait.analysis.efficiency.efficiency import efficiencies, on_ideal_network
    from whywait.hypotheses import IdealNetwork

    judged = []
    for row, result in zip(rows, results, strict=True):
        if row.window:
            # Start-up and shutdown stay as measured: otherwise processes would begin as they were started.
            simulation = whatif(result, [IdealNetwork()], window=row.window)
            window = (row.window[0], row.window[0] + float(simulation.focus_after))
        else:
            simulation, window = whatif(result, network="ideal"), None
        ideal = simulation.result
        judged.append(on_ideal_network(row, efficiencies(ideal, callpath, window=window)))
    return judged


_COMPARISONS = (
    "global_efficiency", "computation_scaling", "speedup", "instruction_scaling", "ipc_scaling", "frequency_scaling"
)  # fmt: skip


def _named(one: Efficiencies, name: str) -> Efficiencies:
    from dataclasses import replace

    return replace(one, run=name)


def _alone(one: Efficiencies, _: str) -> Efficiencies:
    """Remove the efficiencies that compare a run with others."""
    from dataclasses import replace

    return replace(one, values=tuple(value for value in one if value.name not in _COMPARISONS))


def lines(methods: dict[Method, list[Efficiencies]], width: int) -> Iterator[Line]:
    """Yield a table with a column per run, as many side by side as fit, and the derivation of the numbers."""
    from whywait.analysis.efficiency.efficiency import METHODS

    ours = methods["all"]
    if all(
        value.value == row[value.name].value
        for rows in methods.values()
        for own, row in zip(ours, rows, strict=True)
        for value in own
    ):
        # Without one-sided waits, all methods give the same numbers.
        methods = {"all": ours}
    step = max(1, (width - _LABEL) // _COLUMN)
    for start in range(0, len(ours), step):
        yield from _table({method: rows[start : start + step] for method, rows in methods.items()})
        yield []
    yield from _hybrid(ours, width)
    yield [("How", "bold")]
    for value in ours[0]:
        yield from _wrapped(f"{value.display_name} = {value.formula}", width)
    yield []
    for name, formula in (
        *((name, formula) for name, formula in ours[0].definitions.items() if name != "wait"),
        *(
            (f"wait ({METHODS[method]})", _waits(rows))
            for method, rows in methods.items()
            if any("wait" in row.definitions for row in rows)
        ),
    ):
        yield from _wrapped(f"{name} = {formula}", width)


def _waits(rows: list[Efficiencies]) -> str:
    """Return the wait states of a method that occur in the runs."""
    names = dict.fromkeys(name for row in rows for name in row.definitions.get("wait", "0").split(" + "))
    return " + ".join(name for name in names if name != "0" or len(names) == 1)


def _as_dict(row: Efficiencies) -> dict[str, Any]:
    talp = {value.name: value.as_dict() for value in row.talp}
    return row.as_dict() | ({"talp": talp} if talp else {})


def _hybrid(rows: list[Efficiencies], width: int) -> Iterator[Line]:
    """Yield the hybrid efficiencies of the runs that have them, by both models, and those of TALP."""
    from whywait.analysis.efficiency.hybrid import ADDITIVE, LOSSES, MULTIPLICATIVE, SIMULATED, TALP

    hybrid = [row for row in rows if row.hybrid]
    losses = "What threads do in parallel regions instead of computing, as shares of the whole."
    models: tuple[tuple[str, tuple[tuple[str, str, str], ...], str], ...] = (
        (
            "Hybrid, multiplicative (POP)",
            MULTIPLICATIVE,
            "The first is the product of the two below it, and that of MPI and OpenMP, each a product itself.",
        ),
        (
            "Hybrid, additive (POP)",
            ADDITIVE,
            "Losses add up: what processes and threads lack of 100% is what the hybrid parallel efficiency lacks.",
        ),
        ("Loss in parallel regions", LOSSES, losses),
        (
            "OpenMP (TALP)",
            TALP,
            "The first is the product of the others, of which the last is about each region's least idle thread.",
        ),
    )
    step = max(1, (width - _LABEL) // _COLUMN)
    for start in range(0, len(hybrid), step):
        shown = hybrid[start : start + step]
        known = set.intersection(*map(_keys, shown))
        for title, all_of_model, text in models:
            names = _names(shown) if len(rows) > 1 else []
            model = [one for one in all_of_model if one[0] in known]
            if not model:
                continue
            yield [(title.ljust(_LABEL) + "".join(names), "bold")]
            for name, _, _ in model:
                depth = _HYBRID_DEPTH.get(name, 1)
                below = [inner for inner, _, _ in SIMULATED.get(name, ()) if all(inner in _keys(row) for row in shown)]
                for shift, one in ((0, name), *((1, inner) for inner in below)):
                    label = "  " * (depth + shift) + shown[0][one].display_name
                    yield [(label.ljust(_LABEL), ""), *(judged(row[one]) for row in shown)]
            yield from _wrapped(text, width)
            yield []
        balances = [row["openmp_load_balance"].value for row in shown] if "openmp_load_balance" in known else []
        if any((value or 0.0) > 1 for value in balances):
            text = (
                "The OpenMP load balance is that of threads divided by that of processes: more than 100% where threads "
                "are better balanced than the processes to which they belong."
            )
            yield from _wrapped(text, width)
            yield []


def _keys(row: Efficiencies) -> set[str]:
    return {value.name for value in (*row.hybrid, *row.talp)}


_HYBRID_DEPTH = {
    "hybrid_parallel_efficiency": 0,
    "hybrid_load_balance": 1,
    "hybrid_communication_efficiency": 1,
    "mpi_parallel_efficiency": 1,
    "mpi_load_balance": 2,
    "mpi_communication_efficiency": 2,
    "openmp_parallel_efficiency": 1,
    "openmp_load_balance": 2,
    "openmp_communication_efficiency": 2,
    "process_efficiency": 0,
    "thread_efficiency": 0,
    "talp_parallel_efficiency": 0,
}


def _wrapped(text: str, width: int) -> Iterator[Line]:
    for line in textwrap.wrap(text, width, initial_indent="   ", subsequent_indent="      "):
        yield [(line, "")]


def _table(methods: dict[Method, list[Efficiencies]]) -> Iterator[Line]:
    ours = methods["all"]
    title = f"Efficiency of {ours[0].callpath}" if ours[0].callpath is not None else "Efficiency"
    yield [(title[: _LABEL - 1].ljust(_LABEL) + "".join(_names(ours)), "bold")]
    if ours[0].window:
        for number, name in enumerate(("from", "to")):
            bounds = (cell(seconds(row.window[number])) for row in ours if row.window)
            yield [(name.ljust(_LABEL) + "".join(bounds), "")]
    yield [("processes".ljust(_LABEL) + "".join(cell(f"{row.processes:,}") for row in ours), "")]
    inputs: dict[str, str] = {}
    for value in ours[0]:
        shown: list[Method] = ["all", "cube"] if value.name in _BY_METHOD and "cube" in methods else ["all"]
        for method in shown:
            label = "  " * DEPTH.get(value.name, 0) + value.display_name + _LABELS[method]
            yield [(label.ljust(_LABEL), ""), *(judged(row[value.name]) for row in methods[method])]
            for name in max((row[value.name].inputs for row in methods[method]), key=len):
                if name.startswith(("avg", "max")):
                    known = [row[value.name].inputs.get(name) for row in methods[method]]
                    times = [cell("-" if time is None else seconds(time)) for time in known]
                    own = _LABELS[method] if "ideal" in name else ""
                    inputs.setdefault(name + own, "".join(times))
    yield [("from these times of processes, over all their threads", "dim")]
    for name, cells in inputs.items():
        if not name.endswith("0)"):
            yield [("   " + name.ljust(_LABEL - 3) + cells, "dim")]


def _names(rows: list[Efficiencies]) -> list[str]:
    """Return the column headings: the ends of names if shortened names would be the same."""
    names = [row.run for row in rows]
    room = _COLUMN - 1
    if len({name[:room] for name in names}) < len(set(names)):
        names = [name if len(name) <= room else f"..{name[-room + 2 :]}" for name in names]
    return [cell(name) for name in names]


def cell(text: str) -> str:
    """Align a text in a column of the table."""
    return text[: _COLUMN - 1].rjust(_COLUMN)


def judged(value: Efficiency) -> tuple[str, str]:
    """Return a number and its color; POP regards 80% as acceptable."""
    if value.value is None:
        return cell("-"), ""
    if value.name in {"speedup", "ipc"}:
        return cell(f"{value.value:.2f}"), ""
    good = value.value <= 0.25 if value.name.startswith("load_imbalance") else value.value >= 0.8
    return cell(f"{value.value:.1%}"), "green" if good else "red"
