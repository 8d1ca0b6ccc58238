"""Predict the run time after a change: runs simulated from measured ones.

>>> import whywait
>>> from whywait.hypotheses import Balance, Scale
>>> sim = whywait.whatif("tests/data/stencil", [Scale("relax", 0.8), Balance("solve/**", mode="scaled")])
>>> sim.after < sim.before  # seconds
True
"""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.focus import focused
from whywait.analysis.native import NativeDataset
from whywait.analysis.runs.deviation import deviations
from whywait.analysis.runs.error_estimate import error_estimate
from whywait.api.analyze import analyze
from whywait.api.compare import Comparison, compare
from whywait.api.result import Result
from whywait.api.run import Run
from whywait.hypotheses.apply import apply
from whywait.hypotheses.compiler import Compiler
from whywait.hypotheses.kinds import IdealNetwork, Network, Overhead
from whywait.hypotheses.lengths import Graph, fitted_networks
from whywait.model.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    from whywait.analysis.runs.deviation import Deviation
    from whywait.analysis.runs.error_estimate import ErrorEstimate
    from whywait.hypotheses.apply import LeftOut
    from whywait.hypotheses.kinds import Hypothesis


class RunLength(float):
    """The length of a run in seconds.

    >>> RunLength(0.5).length
    0.5
    """

    __slots__ = ()

    @property
    def length(self) -> float:
        """The length as a plain number, seconds."""
        return float(self)


class Simulation:
    """A simulated run.

    Parameters
    ----------
    result
        The result of the measured run.
    hypotheses
        The changes, in order.
    native
        The native simulation.
    left_out
        The hypotheses that match nothing in the run, each with the reason.
    base
        The run to compare with, if not the measured one: a run on another network without other changes.
    options
        How to analyze the simulated run: arguments of `whywait.analyze` that affect the result.
    threads, memory_limit, progress
        As for `whywait.analyze`.

    Attributes
    ----------
    written
        The anchor file that `write` has written last; None if there is none.
    """

    def __init__(
        self,
        result: Result,
        hypotheses: Sequence[Hypothesis],
        native: _native.Simulation,
        *,
        left_out: Sequence[LeftOut] = (),
        base: Simulation | None = None,
        options: Options,
        threads: int | None,
        memory_limit: int | None,
        progress: Callable[[str, float], object] | None = None,
    ) -> None:
        self.measured = result
        self.hypotheses = list(hypotheses)
        self.left_out = list(left_out)
        self.base = base
        self.written: Path | None = None
        self._native = native
        self._options = options
        self._threads, self._memory_limit = threads, memory_limit
        self._progress = progress

    @property
    def before(self) -> RunLength:
        """Length of the run to compare with (`base` or the measured run), seconds."""
        return self.base.after if self.base else RunLength(self.measured.facts["length"])

    @property
    def reference(self) -> Result:
        """The result of the run to compare with (`base` or the measured run)."""
        return self.base.result if self.base else self.measured

    @property
    def after(self) -> RunLength:
        """Length of the simulated run, seconds."""
        return RunLength(self._native.length())

    @property
    def saved(self) -> float:
        """The time that the changes save, seconds."""
        return self.before - self.after

    @property
    def focus_before(self) -> RunLength:
        """Length of the focus of the run to compare with, seconds: the time between start-up and shutdown.

        It begins when the focus of the measured run does.
        """
        if self.base:
            return self.base.focus_after
        facts = self.measured.facts
        return RunLength(facts["focus_end"] - facts["focus_begin"] if "focus_end" in facts else facts["length"])

    @property
    def focus_after(self) -> RunLength:
        """Length of the focus of the simulated run, from the begin of the measured one on, seconds."""
        return RunLength(self._native.focus_length())

    @property
    def focus_saved(self) -> float:
        """The time that the changes save of the focus, seconds: the price of a finding is this number."""
        return self.focus_before - self.focus_after

    @property
    def assumptions(self) -> pa.Table:
        """The assumptions of the simulation: ``assumption``, ``text``, ``count`` and ``time``.

        ``time`` is the time of the affected calls, summed over all locations, in seconds; null if unknown.
        """
        rows = self._native.assumptions()
        schema = pa.schema(
            [("assumption", pa.string()), ("text", pa.string()), ("count", pa.int64()), ("time", pa.float64())]
        )
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    @property
    def notes(self) -> list[str]:
        """Remarks on the hypotheses."""
        return self._native.notes()

    def write(self, directory: str | PathLike[str]) -> Path:
        """Write the simulated run as an OTF2 archive.

        Parameters
        ----------
        directory
            The directory to write to, created if necessary. It must not contain an archive.

        Returns
        -------
        pathlib.Path
            The anchor file.

        Raises
        ------
        whywait.UsageError
            If the directory already contains an archive.
        """
        target = Path(directory)
        refuse_archive(target)
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".whatif-", dir=target) as staging:
            mpi.together(self._native.write, staging, _ARCHIVE, self._text, progress=self._progress)
            # The anchor is last, so an archive with an anchor is complete.
            for name in (_ARCHIVE, f"{_ARCHIVE}.def", f"{_ARCHIVE}.otf2"):
                (Path(staging) / name).rename(target / name)
        self.written = target.absolute() / f"{_ARCHIVE}.otf2"
        if "result" in vars(self) and isinstance(dataset := self.result.tables, NativeDataset):
            dataset.trace = self.result.run.identity
        return target / f"{_ARCHIVE}.otf2"

    @property
    def _text(self) -> str:
        return "; ".join(map(str, self.hypotheses)) or "none"

    @cached_property
    def result(self) -> Result:
        """The result of the simulated run."""
        return self.analyze(self._progress)

    def analyze(self, progress: Callable[[str, float], object] | None = None, *, causes: bool | None = None) -> Result:
        """Analyze the simulated run anew; `result` does so once.

        Parameters
        ----------
        progress
            As for `whywait.analyze`.
        causes
            Whether to find the causes of waits; None as for the measured run.

        Returns
        -------
        Result
        """
        run, options = SimulatedRun(self), self._options.as_dict()
        if causes is not None:
            options["causes"] = causes
        return analyze(run, threads=self._threads, memory_limit=self._memory_limit, progress=progress, **options)

    @cached_property
    def comparison(self) -> Comparison:
        """The comparison of the run without changes with the simulated run, between start-up and shutdown."""
        return self.compare()

    def compare(self, focus: str | None = None) -> Comparison:
        """Compare a part of the run without changes with that of the simulated run.

        Parameters
        ----------
        focus
            The part, as for `Result.summary`.
        """
        names = ("on the network" if self.base else "measured", "simulated")
        return compare(self.reference, self.result, names=names, focus=focus)

    @cached_property
    def deviations(self) -> dict[str, Deviation]:
        """The deviation of the simulated run from the run without changes, by part of the processor time.

        ``time``, ``computation``, ``communication`` and ``waiting`` between start-up and shutdown, see
        `whywait.analysis.runs.deviation.deviations`.
        """
        return deviations(focused(self.reference).profile, focused(self.result).profile)

    @cached_property
    def error_estimate(self) -> ErrorEstimate:
        """How far the simulated run may be from a recording of the changed program.

        See `whywait.analysis.runs.error_estimate`. The noise is unknown if one of the runs was analyzed without causes.
        """
        deviation = Compiler(self.measured, None).sampling_deviation(self.hypotheses)
        return error_estimate(self.measured, self.result, self.assumptions, deviation)

    def events(self, location: int) -> pa.Table:
        """Return the times at which a location enters and leaves its regions.

        Parameters
        ----------
        location
            Its index, as in `whywait.Run.locations`.

        Returns
        -------
        pyarrow.Table
            ``measured`` and ``simulated``: ticks.
        """
        return pa.table(mpi.together(self._native.events, location))

    def moments(self, most: int) -> pa.Table:
        """Return the times of the same Enters and Leaves in both runs.

        Parameters
        ----------
        most
            The approximate maximum number of rows; each location has at least its first and last event.

        Returns
        -------
        pyarrow.Table
            ``location``, ``measured`` (in the run to compare with) and ``simulated``, seconds since the start of each
            run; sorted by location and in the order of its events.
        """
        found = pa.table(mpi.together(self._native.times, most))
        if self.base:
            found = found.set_column(1, "measured", self.base.moments(most)["simulated"])
        return found

    def write_html(self, path: str | PathLike[str], *, focus: str | None = None) -> None:
        """Write a comparison of both runs as one HTML file, with their timelines one above the other.

        Parameters
        ----------
        path
            The file. It is replaced if it exists.
        focus
            The part of both runs that the numbers are of, as for `Result.summary`.
        """
        from whywait.report.html.timeline import pair

        timelines = pair((self.reference, self.result), self.moments(_MOMENTS))
        changes = "; ".join(map(str, self.hypotheses)) or "nothing changed"
        self.compare(focus).write_html(path, timelines=timelines, simulated=changes)

    def __repr__(self) -> str:
        return f"<whywait.Simulation: {self.before:.6g} s -> {self.after:.6g} s>"


class SimulatedRun(Run):
    """The trace of a simulated run, which need not be written.

    Parameters
    ----------
    simulation
        The simulation.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._opened = mpi.together(simulation._native.run, simulation._text)  # noqa: SLF001

    @property
    def path(self) -> Path:
        """The anchor file: that of `Simulation.write`, or one that does not exist."""
        measured = self._simulation.measured.run.path
        return self._simulation.written or measured.with_name(f"{measured.name}.simulated")

    def reopen(self) -> _native.Run:
        """Open the trace."""
        return self._native

    @property
    def name(self) -> str:
        """The name of the measured run."""
        return self._simulation.measured.run.name

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """Errors in the definitions of the measured run."""
        return self._simulation.measured.run.oddities

    @property
    def traces(self) -> dict[str, Any] | None:
        """What is known of the measured run, if it was read from the traces of a profiler."""
        return self._simulation.measured.run.traces

    @property
    def nsight(self) -> dict[str, Any] | None:
        """What is known of the measured run, if it was read from reports of Nsight Systems."""
        return self._simulation.measured.run.nsight

    @property
    def paraver(self) -> dict[str, Any] | None:
        """What is known of the measured run, if it was read from a Paraver trace."""
        return self._simulation.measured.run.paraver


_ARCHIVE = "traces"
# Two moments of each call, as far as a page has single calls.
_MOMENTS = 200_000


def refuse_archive(directory: Path) -> None:
    """Raise an error if a directory holds an archive already."""
    if (found := next(directory.glob("*.otf2"), None)) or (directory / _ARCHIVE).exists():
        raise _native.UsageError(f"{found or directory / _ARCHIVE} already exists: choose another directory")


def whatif(
    run: Result | Run | str | PathLike[str],
    hypotheses: Iterable[Hypothesis] = (),
    *,
    network: Literal["measured", "ideal"] | Network = "measured",
    base: Network | None = None,
    hidden: Literal["estimate", "remainder"] = "estimate",
    window: tuple[float, float] | None = None,
    callpath: str | int | None = None,
    strict: bool = False,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Simulation:
    """Simulate a run with changes.

    All activities except waiting take as long as measured, unless a hypothesis changes them. Communication partners and
    their order stay the same; every wait is computed anew. Without hypotheses, the simulation reproduces every measured
    time. See docs/whatif.md.

    Parameters
    ----------
    run
        A result of `whywait.analyze`, a run, or the path of a trace.
    hypotheses
        The changes, applied one after the other.
    network
        ``"ideal"`` for an `IdealNetwork`, or a `Network` with a given latency and bandwidth. The run on this network
        without other changes is then the run to compare with.
    base
        The network of the run to compare with; None for the measured run, or that of the changed run if there are
        other changes.
    hidden
        The duration of transfers for which no receive had to wait: that of others of their class (``estimate``), or the
        rest of their call (``remainder``).
    window
        Change only instances that begin in this part of the measured run, seconds since its start.
    callpath
        Change only these call paths and their callees, see `whywait.model.selection.find_callpaths`. Protocols and
        progress always change in the whole run.
    strict
        Refuse a hypothesis that matches nothing in the run. Otherwise, the others are simulated without it
        (`Simulation.left_out`).
    threads
        The number of threads to use; None for one per core.
    memory_limit
        As for `whywait.analyze`, for the measured run (if it is not yet analyzed) and for the simulated one.
    progress
        Called regularly with the stage and its completed share (0..1), as by `whywait.analyze`. The stages are ``arcs``
        (who waits for whom), ``simulate``, ``write``, and those of the analyses of the measured run (if it is not yet
        analyzed) and the simulated one. An exception that it raises stops the work.

    Returns
    -------
    Simulation

    Raises
    ------
    whywait.UsageError
        If a hypothesis is invalid. If one matches nothing and `strict` is set, or none of them matches anything.
    """
    if isinstance(run, Result):
        result = run
    else:
        result = analyze(run, threads=threads, causes=False, memory_limit=memory_limit, progress=progress)
    chosen = list(hypotheses)
    if network != "measured":
        chosen.append(IdealNetwork() if network == "ideal" else network)
    if any(isinstance(hypothesis, Overhead) for hypothesis in chosen) and len(chosen) > 1:
        raise _native.UsageError("overhead changes the whole run, so it must be the only change")
    if hidden not in ("estimate", "remainder"):
        raise _native.UsageError("hidden must be estimate or remainder")
    found = apply(
        Compiler(result, window, callpath),
        chosen,
        strict=strict,
        result=result,
        hidden=hidden == "estimate",
        threads=threads,
        progress=progress,
    )
    networks = [hypothesis for hypothesis in chosen if isinstance(hypothesis, (IdealNetwork, Network))]
    if base is not None:
        networks = [base]
    elif len(found.hypotheses) == len(networks):
        networks = []
    compared = None
    if networks:
        compared = whatif(
            result, networks, hidden=hidden, threads=threads, memory_limit=memory_limit, progress=progress
        )
    known = result.tables.options if result is run else Options()
    options = Options(**{name: getattr(known, name) for name in _LIKE_MEASURED})
    limits: dict[str, Any] = {"threads": threads, "memory_limit": memory_limit, "progress": progress}
    simulated, applied, left_out = found
    return Simulation(result, applied, simulated, left_out=left_out, base=compared, options=options, **limits)


# A simulated run is analyzed as the measured one was, but for what belongs to the measurement.
_LIKE_MEASURED = ("wrong_order_window", "causes", "cost_model", "idle_threads", "counter_modes", "fold_recursion")


def fit_network(run: Result | Run | str | PathLike[str], *, threads: int | None = None) -> dict[str, Network]:
    """Fit latency and bandwidth to the messages of a run.

    Parameters
    ----------
    run
        A result of `whywait.analyze`, a run, or the path of a trace.
    threads
        The number of threads to use; None for one per core.

    Returns
    -------
    dict
        The network that best fits the transfers of all size classes (least squares), by locality: ``remote`` (between
        nodes) and ``local`` (within a node). A locality is missing if too few receives had to wait for their messages.
        The bandwidth is infinite if there is only one size, or larger messages were not slower.

    Examples
    --------
    >>> network = whywait.fit_network("tests/data/stencil")
    """
    result = run if isinstance(run, Result) else analyze(run, threads=threads, causes=False)
    return fitted_networks(Graph.of(result, Compiler(result, None), threads=threads).native)
