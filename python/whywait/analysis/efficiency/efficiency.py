"""Efficiencies: the share of the processors' time that is useful, and the losses.

The multiplicative model of the POP project: parallel efficiency is load balance times communication efficiency, and
communication efficiency is serialization times transfer. Definitions: https://co-design.pop-coe.eu/metrics/

The run time on an ideal network is that of a simulation, where one is known: for the focus of a result with prices
(`whywait.analysis.proposals.prices`), or if asked for (`on_ideal_network`). Elsewhere it is estimated from the wait
states, as in the Advisor of Cube: the time of an MPI call beyond its waiting is transfer, which an ideal network would
not need. The estimate ignores that without transfers some waits would be shorter.

In a window of time, the numbers refer to the activities in it. Unlike in the whole run, load balance then also includes
work at different times: in a window in which one process works and the others wait, only one has a load.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

import whywait._native as _native
from whywait.analysis.counters.counters import CYCLES, INSTRUCTIONS, Counters
from whywait.analysis.devices.kernels import Devices
from whywait.analysis.efficiency import hybrid
from whywait.analysis.efficiency.load_balance import imbalance
from whywait.model.format import html_table
from whywait.model.idle_threads import allocation
from whywait.model.names import close
from whywait.model.selection import Processes, find_callpaths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from whywait.model.metrics import MetricTree
    from whywait.model.profile import Profile
    from whywait.model.result import ResultData

Method = Literal["cube", "all"]
Scaling = Literal["strong", "weak"]
Window = tuple[float, float]

#: The definition of waiting in each method.
METHODS: dict[Method, str] = {
    "cube": "the waits that Cube's Advisor adds up, none of them one-sided",
    "all": "all waits in communication, one-sided ones too",
}

# What the ideal time of a simulation is.
_SIMULATED = "elapsed, simulated on a network that takes no time"

# Metrics that count as communication.
_LIBRARIES = ("mpi", "shmem", "armci", "pgas")
# The sum of Cube's Advisor (PerformanceTest.cpp, wait_time_mpi).
_CUBE_WAITS = (
    "mpi_latesender mpi_latereceiver mpi_earlyreduce mpi_earlyscan mpi_latebroadcast mpi_wait_nxn mpi_barrier_wait "
    "mpi_finalize_wait"
).split()


@dataclass(frozen=True, slots=True)
class Efficiency:
    """An efficiency with its derivation.

    Attributes
    ----------
    name, display_name
        The unique name and the display name.
    value
        A share, 1 is best; for the load imbalance 0 is best. None for a division by zero.
    formula
        The formula in terms of the inputs.
    inputs
        Values of the names in the formula; times in seconds.
    """

    name: str
    display_name: str
    value: float | None
    formula: str
    inputs: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return the efficiency as data for JSON."""
        return {
            "display_name": self.display_name, "value": self.value, "formula": self.formula, "inputs": self.inputs,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """The efficiencies of a run, or of a part of it.

    >>> round(result.efficiencies()["load_balance"].value, 3)
    0.735

    Attributes
    ----------
    run
        The name of the run.
    callpath
        The selected call path; None for the whole run.
    window
        The selected window, in seconds since the begin of the trace; None for the whole run.
    method
        The definition of waiting, a key of `METHODS`.
    processes
        The number of processes.
    definitions
        The meaning of the names in the formulas, in terms of metrics.
    values
        The efficiencies in display order.
    hybrid
        POP's hybrid efficiencies of programs with teams of threads, first those of the multiplicative model, then those
        of the additive one, then the losses in parallel regions: see `whywait.analysis.efficiency.hybrid`. Of a run
        without communication only those of threads.
    talp
        The OpenMP efficiencies of DLB's TALP, of the same programs: `whywait.analysis.efficiency.hybrid.TALP`.
    """

    run: str
    callpath: str | int | None
    window: Window | None
    method: Method
    processes: int
    definitions: dict[str, str]
    values: tuple[Efficiency, ...]
    hybrid: tuple[Efficiency, ...] = ()
    talp: tuple[Efficiency, ...] = ()

    def __getitem__(self, name: str) -> Efficiency:
        for value in (*self.values, *self.hybrid, *self.talp):
            if value.name == name:
                return value
        raise KeyError(f"{name}{close(name, self._ipython_key_completions_())}")

    def _ipython_key_completions_(self) -> list[str]:
        return [value.name for value in (*self.values, *self.hybrid, *self.talp)]

    def __iter__(self) -> Iterator[Efficiency]:
        return iter(self.values)

    def as_dict(self) -> dict[str, Any]:
        """Return the efficiencies as data for JSON."""
        return {
            "run": self.run,
            "callpath": self.callpath,
            "window": self.window,
            "method": self.method,
            "processes": self.processes,
            "definitions": self.definitions,
            "efficiencies": {value.name: value.as_dict() for value in self.values},
            **({"hybrid": {value.name: value.as_dict() for value in self.hybrid}} if self.hybrid else {}),
        }

    def _repr_html_(self) -> str:
        part = "" if self.callpath is None else f", {self.callpath}"
        when = "" if self.window is None else ", {:.6g} s to {:.6g} s".format(*self.window)
        rows = [
            (
                one.display_name,
                "" if one.value is None else f"{one.value:.3f}",
                one.formula,
                ", ".join(f"{name} = {value:.6g}" for name, value in one.inputs.items()),
            )
            for one in self
        ]
        return html_table(self.run + part + when, ("Efficiency", "Value", "Formula", "Inputs"), rows, numbers=1)


class _Times(NamedTuple):
    """Seconds per process, summed over threads."""

    comp: npt.NDArray[np.float64]
    elapsed: npt.NDArray[np.float64]
    ideal: npt.NDArray[np.float64]
    load: npt.NDArray[np.float64]


def efficiencies(
    result: ResultData,
    callpath: str | int | None = None,
    *,
    method: Method = "all",
    window: Window | None = None,
    estimate: bool = False,
) -> Efficiencies:
    """Return the efficiencies of a run or of a part of it.

    Parameters
    ----------
    result
        The result.
    callpath
        The call paths to include with those below, as in `whywait.model.selection.find_callpaths`.
    method
        ``"cube"`` for the numbers of Cube's Advisor, which ignores one-sided waits; ``"all"`` to include these.
    window
        Begin and end, in seconds since the begin of the trace; None for the whole run.
    estimate
        Whether to estimate serialization and transfer even if the result knows the simulated ideal network.

    Returns
    -------
    Efficiencies
        ``parallel_efficiency``, ``load_balance``, ``communication_efficiency``, ``serialization``, ``transfer`` and
        ``load_imbalance``. ``serialization`` and ``transfer`` have no value where wait states are not computed, as in a
        profile. Of a run with devices whose events are known also ``load_imbalance_gpu`` and, where the efficiency of
        kernels is known, ``load_imbalance_gpu_adjusted``.

    Raises
    ------
    whywait.UsageError
        If there is no such call path, or nothing in the window.

    Notes
    -----
    With U the computation of each process, T its total time and I its time on an ideal network::

        PE = avg U / max T = LB * CommE        LB = avg U / max U
        CommE = max U / max T = SerE * TE      SerE = max U / max I      TE = max I / max T
    """
    profile = result.window(*window) if window else result.profile
    if "omp_idle_threads" not in profile.metrics and "time" in profile.metrics:
        profile = allocation(profile, result.places)
    processes = Processes(result, profile, only_threads=True)
    waits = waits_of(result.profile.metrics, method)
    positions = None if callpath is None else find_callpaths(result.tree, callpath)
    # POP's runtime is the whole length of a Paraver trace.
    parts = ("execution", "omp_idle_threads", *(("overhead",) if "paraver" in result.facts else ()))
    times = _times(processes, waits, positions, parts)
    values = (*_judge(times, len(processes)), *_with_devices(result, callpath, window))
    share = _ideal_share(result, window) if callpath is None and method == "all" and not estimate else None
    if not waits:
        # A profile does not separate waiting from transfer.
        values = tuple(_without_ideal_time(one) if "max(ideal)" in one.inputs else one for one in values)
    found = Efficiencies(
        result.run.name,
        callpath,
        window,
        method,
        len(processes),
        _definitions(profile, waits, parts) | {name: text for name, text in _LOADS.items() if name in _named(values)},
        values,
        *_hybrid(hybrid.shares(profile, result.places, positions)),
    )
    return found if share is None else with_ideal_time(found, share)


def _ideal_share(result: ResultData, window: Window | None) -> float | None:
    """Return the length of the focus on an ideal network as a share of the measured one.

    None if the window is not the focus, or nobody has simulated it (`whywait.analysis.proposals.prices`).
    """
    facts = result.facts
    focus = (facts.get("focus_begin"), facts.get("focus_end"))
    if facts.get("focus_rule") not in {"last_finalize", "whole"} or (window or focus) != focus:
        return None
    if window is None and facts["focus_rule"] != "whole":
        return None
    length = facts["focus_end"] - facts["focus_begin"]
    for line in result.tables.prices.to_pylist() if length else []:
        if line["rule"] is None and line["bound"] and line["saved"] is not None:
            return float(1 - line["saved"] / length)
    return None


#: Loads of processes with devices: Eberius, section 4.3.
_LOADS = {
    "load_gpu": "computation while no kernel runs + kernels",
    "load_gpu_adjusted": "computation while no kernel runs + kernels * efficiency",
}


def _named(values: Iterable[Efficiency]) -> str:
    return " ".join(name.strip("avgmx()") for value in values for name in value.inputs)


def _with_devices(result: ResultData, callpath: str | int | None, window: Window | None) -> Iterator[Efficiency]:
    """Yield the load imbalance of hosts with their devices (Eberius, equations 4.1 and 4.5), if the run has devices."""
    if (
        not isinstance(result.tables.analysis, _native.Analysis)
        or "ACCELERATOR_STREAM" not in result.locations["type"].unique().to_pylist()
    ):
        return
    try:
        devices = Devices(result)
        found = devices.loads(callpath=callpath, window=window)
    except _native.UsageError:
        # Counters are not shares: `whywait gpu` reports that.
        return
    asked = [("load", "gpu", "")]
    if found["efficiency_source"] != "none":
        asked.append(("load_adjusted", "gpu_adjusted", ", adjusted"))
    for load, name, text in asked:
        of_processes = np.array([row[load] for row in found["processes"]])
        most, mean = f"max(load_{name})", f"avg(load_{name})"
        inputs = {most: _maximum(of_processes), mean: _mean(of_processes, len(of_processes))}
        value = found[f"load_imbalance_{name}"]
        yield Efficiency(
            f"load_imbalance_{name}", f"Load imbalance, devices{text}", value, f"({most} - {mean}) / {mean}", inputs
        )


def _without_ideal_time(one: Efficiency) -> Efficiency:
    return replace(one, value=None, inputs={name: value for name, value in one.inputs.items() if name != "max(ideal)"})


def _hybrid(found: hybrid.Shares | None) -> tuple[tuple[Efficiency, ...], tuple[Efficiency, ...]]:
    """Return the hybrid efficiencies of POP, and those of TALP."""
    if found is None:
        return (), ()
    values = hybrid.values(found)
    is_mixed = bool(found.libraries)
    efficiencies = (*hybrid.MULTIPLICATIVE, *hybrid.ADDITIVE) if is_mixed else hybrid.THREADS

    def judge(rows: tuple[tuple[str, str, str], ...]) -> tuple[Efficiency, ...]:
        return tuple(
            Efficiency(name, text.format(found.libraries), values[name], formula, hybrid.inputs(found, formula))
            for name, text, formula in rows
        )

    return judge((*efficiencies, *hybrid.LOSSES)), judge(hybrid.TALP)


def waits_of(metrics: MetricTree, method: Method) -> list[str]:
    """Return the computed metrics that count as waiting in communication by a method.

    The completion of a collective call, after the last process has entered it, is not waiting.
    """
    if method == "cube":
        return [name for name in _CUBE_WAITS if name in metrics]
    return [
        metric.name
        for metric in metrics.waiting
        if any(above.name in _LIBRARIES for above in metrics.path(metric.name))
    ]


def _times(processes: Processes, waits: list[str], positions: list[int] | None, parts: Sequence[str]) -> _Times:
    def sums(name: str) -> npt.NDArray[np.float64]:
        return processes.sums(name, positions)

    # Idle threads are allocated although they execute nothing.
    elapsed = sum((sums(name) for name in parts), start=np.zeros(len(processes)))
    not_transfer = sum((sums(name) for name in waits), start=sums("mpi_io"))
    communication = sum((sums(name) for name in _LIBRARIES), start=np.zeros(len(processes)))
    load = sums("time") - sums("omp_idle_threads") - communication
    return _Times(sums("comp"), elapsed, elapsed - (communication - not_transfer), load)


def _definitions(profile: Profile, waits: list[str], parts: Sequence[str]) -> dict[str, str]:
    """Return the meaning of the names in the formulas, with the run's possible libraries and actual waits."""
    libraries = [name for name in _LIBRARIES if name in profile.metrics and name not in profile.void] or ["mpi"]
    occurring = [name for name in waits if profile.total(name)]
    known = {"wait": " + ".join(occurring) or "0"} if waits else {}
    io = " - mpi_io" if "mpi" in libraries else ""
    return {
        "comp": "execution outside of I/O and of communication and thread libraries (the metric Computation)",
        "elapsed": f"{' + '.join(parts)}, over all threads of a process",
        "ideal": f"elapsed - ({' + '.join(libraries)} - wait{io})",
        **known,
        "load": f"time - omp_idle_threads - {' - '.join(libraries)}",
    }


def _judge(times: _Times, processes: int) -> Iterator[Efficiency]:
    known = {
        "avg(comp)": _mean(times.comp, processes),
        "max(comp)": _maximum(times.comp),
        "max(elapsed)": _maximum(times.elapsed),
        "max(ideal)": _maximum(times.ideal),
        "avg(load)": _mean(times.load, processes),
        "max(load)": _maximum(times.load),
    }

    def ratio(name: str, display_name: str, above: str, below: str) -> Efficiency:
        value = known[above] / known[below] if known[below] > 0 else None
        inputs = {name: known[name] for name in (above, below)}
        return Efficiency(name, display_name, value, f"{above} / {below}", inputs)

    yield ratio("parallel_efficiency", "Parallel efficiency", "avg(comp)", "max(elapsed)")
    yield ratio("load_balance", "Load balance", "avg(comp)", "max(comp)")
    yield ratio("communication_efficiency", "Communication efficiency", "max(comp)", "max(elapsed)")
    yield ratio("serialization", "Serialization", "max(comp)", "max(ideal)")
    yield ratio("transfer", "Transfer", "max(ideal)", "max(elapsed)")
    inputs = {name: known[name] for name in ("max(load)", "avg(load)")}
    formula = "(max(load) - avg(load)) / avg(load)"
    yield Efficiency("load_imbalance", "Load imbalance", imbalance(times.load), formula, inputs)


def _mean(values: npt.NDArray[np.float64], count: int) -> float:
    # The sum is rounded: without the bound, equal loads could yield an efficiency above 1.
    return min(float(values.sum()) / count, _maximum(values)) if count else 0.0


def _maximum(values: npt.NDArray[np.float64]) -> float:
    return float(values.max(initial=0.0))


def on_ideal_network(one: Efficiencies, ideal: Efficiencies) -> Efficiencies:
    """Compute serialization and transfer from a simulation on an ideal network instead of the estimate.

    Parameters
    ----------
    one
        The efficiencies of the measured run.
    ideal
        The efficiencies of the simulated run, for the same part.

    Notes
    -----
    With T_id the time on the ideal network, serialization efficiency is max U / T_id and transfer efficiency T_id / T:
    the definitions of POP, for whose hybrid models see `whywait.analysis.efficiency.hybrid.SIMULATED`. The estimate
    leaves waits as they are; on the ideal network they change, up or down. The product of the two is the same.
    """
    simulated = _with_ideal(one, ideal["parallel_efficiency"].inputs["max(elapsed)"])
    both = tuple(_simulated(one, ideal)) if one.hybrid and ideal.hybrid else one.hybrid
    return replace(simulated, hybrid=both)


def with_ideal_time(one: Efficiencies, share: float) -> Efficiencies:
    """Compute serialization and transfer from the length of the focus on a simulated ideal network.

    Parameters
    ----------
    one
        The efficiencies of the measured focus.
    share
        The length of the simulated focus as a share of the measured one.
    """
    return _with_ideal(one, share * one["parallel_efficiency"].inputs["max(elapsed)"])


def _with_ideal(one: Efficiencies, elapsed: float) -> Efficiencies:
    """Compute serialization and transfer from the simulated time on an ideal network, in seconds."""

    def judged(value: Efficiency) -> Efficiency:
        if "max(ideal)" not in value.inputs:
            return value
        inputs = {**value.inputs, "max(ideal)": elapsed}
        above, below = (inputs[name] for name in value.formula.split(" / "))
        return replace(value, value=above / below if below > 0 else None, inputs=inputs)

    definitions = {name: text for name, text in one.definitions.items() if name != "wait"}
    definitions["ideal"] = _SIMULATED
    return replace(one, definitions=definitions, values=tuple(map(judged, one.values)))


def is_simulated(one: Efficiencies) -> bool:
    """Return whether serialization and transfer come from a simulation."""
    return one.definitions["ideal"] == _SIMULATED


def as_estimates(one: Efficiencies) -> Efficiencies:
    """Say in their names which efficiencies are estimated from wait states instead of simulated."""

    def named(value: Efficiency) -> Efficiency:
        is_estimate = "max(ideal)" in value.inputs
        return replace(value, display_name=f"{value.display_name} (estimate)") if is_estimate else value

    return replace(one, values=tuple(map(named, one.values)))


def _simulated(one: Efficiencies, ideal: Efficiencies) -> Iterator[Efficiency]:
    """Yield the hybrid efficiencies with those that take a simulation on an ideal network."""
    known = {
        **one["mpi_communication_efficiency"].inputs,
        "ideal": ideal["mpi_communication_efficiency"].inputs["whole"],
    }
    values = hybrid.simulated(**known)
    for above in one.hybrid:
        yield above
        library = above.display_name.removesuffix(" communication efficiency")
        for name, display_name, formula in hybrid.SIMULATED.get(above.name, ()):
            inputs = {part: known[part] for part in re.findall("[a-z]+", formula)}
            yield Efficiency(name, display_name.format(library), values[name], formula, inputs)


def scaling(
    results: Iterable[ResultData],
    callpath: str | int | None = None,
    *,
    method: Method = "all",
    mode: Scaling | None = "strong",
    windows: Iterable[Window | None] | None = None,
) -> list[Efficiencies]:
    """Return the efficiencies of several runs of a program, relative to the first.

    Parameters
    ----------
    results
        The runs; the first is the reference.
    callpath, method
        As for `efficiencies`.
    mode
        Whether the problem size is constant in total (``"strong"``) or per process (``"weak"``); None if it is
        neither, so that runs cannot be compared but by their speed-up.
    windows
        A window of time for each run; None for the whole runs.

    Returns
    -------
    list of Efficiencies
        The efficiencies of each run, with ``computation_scaling``, ``global_efficiency`` and ``speedup``.

    Notes
    -----
    With P processes and the index 0 for the reference, ``CompS = sum U0 / sum U`` and ``speedup = max T0 / max T``,
    both times ``P / P0`` under weak scaling; ``GE = PE * CompS``. Where all runs have counters of
    instructions and cycles (``PAPI_TOT_INS``, ``PAPI_TOT_CYC``), computation scaling is the product of
    ``instruction_scaling``, ``ipc_scaling`` and ``frequency_scaling``, and ``ipc`` stands beside them.
    """
    results = list(results)
    rows = [
        efficiencies(result, callpath, method=method, window=window)
        for result, window in zip(results, windows or repeat(None))  # noqa: B905  (repeat is infinite)
    ]
    if len({is_simulated(row) for row in rows}) > 1:
        # Only numbers of one kind can be compared.
        rows = [
            row if not is_simulated(row) else efficiencies(result, method=method, window=row.window, estimate=True)
            for result, row in zip(results, rows, strict=True)
        ]
    compared = [_compared(row, rows[0], mode) for row in rows]
    common = set.intersection(*({value.name for value in row} for row in compared)) if compared else set()
    compared = [replace(row, values=tuple(value for value in row if value.name in common)) for row in compared]
    if mode is None:
        return compared
    counts = [_counts(result, callpath, row.window) for result, row in zip(results, compared, strict=True)]
    known = [count for count in counts if count is not None]
    if len(known) < len(rows):
        return compared
    return [
        replace(row, values=(*row.values, *_computation_factors(count, known[0], row, mode)))
        for row, count in zip(compared, known, strict=True)
    ]


class _Counts(NamedTuple):
    """Instructions, cycles and seconds of computation."""

    instructions: float
    cycles: float
    seconds: float


def _counts(result: ResultData, callpath: str | int | None, window: Window | None) -> _Counts | None:
    """Return the counts of a run's computation; None without counters of instructions and cycles."""
    counters = Counters(result)
    if INSTRUCTIONS not in counters or CYCLES not in counters:
        return None
    if window is not None:
        counters = counters.window(*window)
    profile = result.window(*window) if window else result.profile
    instructions, cycles = (
        counters[name].in_computation(callpath) if name in counters else 0.0 for name in (INSTRUCTIONS, CYCLES)
    )
    processes = Processes(result, profile, only_threads=True)
    positions = None if callpath is None else find_callpaths(result.tree, callpath)
    return _Counts(instructions, cycles, float(processes.sums("comp", positions).sum()))


def _computation_factors(one: _Counts, reference: _Counts, row: Efficiencies, mode: Scaling) -> Iterator[Efficiency]:
    """Yield instructions per cycle, and the factors of computation scaling: instructions, IPC and frequency."""
    names = {"sum(ins)": one.instructions, "sum(cyc)": one.cycles, "sum(comp)": one.seconds}
    names |= {
        "sum(ins0)": reference.instructions, "sum(cyc0)": reference.cycles, "sum(comp0)": reference.seconds,
    }  # fmt: skip
    growth = row["computation_scaling"].inputs
    factor = growth["processes"] / growth["processes0"] if mode == "weak" else 1.0
    times = " * processes / processes0" if mode == "weak" else ""
    if mode == "weak":
        names |= {name: growth[name] for name in ("processes", "processes0")}

    def value(name: str, display_name: str, above: float, below: float, formula: str) -> Efficiency:
        inputs = {word: names[word] for word in names if word in formula}
        return Efficiency(name, display_name, above / below if below > 0 else None, formula, inputs)

    ins, cyc, seconds = one
    ins0, cyc0, seconds0 = reference
    yield value("ipc", "Instructions per cycle", ins, cyc, "sum(ins) / sum(cyc)")
    yield value(
        "instruction_scaling", "Instruction scaling", factor * ins0, ins, f"sum(ins0) / sum(ins){times}"
    )  # fmt: skip
    yield value(
        "ipc_scaling", "IPC scaling", ins * cyc0, cyc * ins0, "(sum(ins) / sum(cyc)) / (sum(ins0) / sum(cyc0))"
    )  # fmt: skip
    yield value(
        "frequency_scaling",
        "Frequency scaling",
        cyc * seconds0,
        seconds * cyc0,
        "(sum(cyc) / sum(comp)) / (sum(cyc0) / sum(comp0))",
    )


def _compared(one: Efficiencies, reference: Efficiencies, mode: Scaling | None) -> Efficiencies:
    parallel, its = one["parallel_efficiency"], reference["parallel_efficiency"]
    growth = one.processes / reference.processes if mode == "weak" and reference.processes else 1.0
    factor = " * processes / processes0" if mode == "weak" else ""
    counts = {"processes": float(one.processes), "processes0": float(reference.processes)} if mode == "weak" else {}

    def compared(name: str, display_name: str, what: str, now: float, then: float) -> Efficiency:
        value = growth * then / now if now > 0 else None
        reference = what.replace(")", "0)")
        inputs = {reference: then, what: now, **counts}
        return Efficiency(name, display_name, value, f"{reference} / {what}{factor}", inputs)

    elapsed, elapsed0 = (value.inputs["max(elapsed)"] for value in (parallel, its))
    speedup = compared("speedup", "Speedup", "max(elapsed)", elapsed, elapsed0)
    if mode is None:
        return replace(one, values=(*one.values, speedup))
    work, work0 = (row.processes * row["load_balance"].inputs["avg(comp)"] for row in (one, reference))
    computation = compared("computation_scaling", "Computation scaling", "sum(comp)", work, work0)
    overall = None
    if parallel.value is not None and computation.value is not None:
        overall = parallel.value * computation.value
    inputs = {"parallel_efficiency": parallel.value or 0.0, "computation_scaling": computation.value or 0.0}
    return Efficiencies(
        one.run,
        one.callpath,
        one.window,
        one.method,
        one.processes,
        one.definitions,
        (
            Efficiency(
                "global_efficiency", "Global efficiency", overall, "parallel_efficiency * computation_scaling", inputs
            ),
            *one.values,
            computation,
            speedup,
        ),
        one.hybrid,
        one.talp,
    )
