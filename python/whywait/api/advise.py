"""Advice: simulate changes that may be worth trying, and rank them by the time they save.

>>> import whywait
>>> advice = whywait.advise("tests/data/stencil", top=3, rounds=1)
>>> advice[0].saved > 0
True
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import whywait._native as _native
from whywait.analysis.changes import KINDS, Change
from whywait.analysis.focus import find_focus, focused
from whywait.analysis.progress import progress_thread
from whywait.analysis.proposals.candidates import candidates
from whywait.analysis.proposals.time_limit import Clock
from whywait.analysis.proposals.trials import BATCH, Trials
from whywait.analysis.waiting import account
from whywait.api.analyze import analyze
from whywait.api.result import Result
from whywait.api.whatif import Simulation, whatif
from whywait.hypotheses.compiler import OWN_GRAPH
from whywait.hypotheses.lengths import Lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from os import PathLike

    from whywait.analysis.proposals.trials import Trial
    from whywait.api.run import Run

Goal = Literal["time", "cpu"]

# Number of changes that are analyzed for the waits that they expose.
_EXPOSED = 3
# Number of bounds to list.
_BOUNDS = 3


@dataclass(frozen=True)
class Advice(Change):
    """A simulated change and the time it saves.

    Attributes
    ----------
    before, after
        Length of the focus without and with the change, seconds. For a change of the network, ``before`` is that on the
        network that fits the run best.
    cpu_saved
        The CPU time that the change saves on all processes, seconds.
    assumed
        The share of time in calls that the simulation makes assumptions about (docs/whatif.md).
    """

    _: KW_ONLY
    before: float
    after: float
    cpu_saved: float
    assumed: float
    _base: Result = field(repr=False, compare=False)
    _focus: str | None = field(default=None, repr=False, compare=False)
    _threads: int | None = field(default=None, repr=False, compare=False)

    @property
    def saved(self) -> float:
        """The time that the change saves, seconds."""
        return self.before - self.after

    @property
    def share(self) -> float:
        """The time that the change saves, as a share of the length of the focus."""
        return self.saved / self.before if self.before else 0.0

    @cached_property
    def simulation(self) -> Simulation:
        """The changed run."""
        return whatif(self._base, self.hypotheses, window=self.window, threads=self._threads)

    @cached_property
    def result(self) -> Result:
        """The result of the changed run."""
        return self.simulation.analyze()

    @property
    def _waits(self) -> Result:
        """The result of the changed run, perhaps without causes, which take most of the time."""
        return self.result if "result" in vars(self) else self.simulation.analyze(causes=False)

    @cached_property
    def exposed(self) -> dict[str, Any]:
        """The effect on waiting in the focus: ``waiting_saved`` (s of CPU time) and the ``worst`` remaining wait state.

        ``worst`` has ``metric``, ``display_name`` and ``waiting`` (s); it is None if no wait state remains.
        """
        reference, changed = self._base, self._waits
        if self.base:
            reference = whatif(self._base, [self.base], threads=self._threads).analyze(causes=False)
        before, after = (account(focused(one, self._focus).profile) for one in (reference, changed))
        worst = max(after["wait_states"].items(), key=lambda item: item[1], default=None)
        return {
            "waiting_saved": before["waiting"] - after["waiting"],
            "worst": None
            if worst is None
            else {
                "metric": worst[0],
                "display_name": changed.profile.metrics[worst[0]].display_name,
                "waiting": worst[1],
            },
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the advice as plain data for JSON."""
        names = ("what", "option", "before", "after", "saved", "share", "cpu_saved", "locations", "assumed")
        return {name: getattr(self, name) for name in names}


class AdviceList(list[Advice]):
    """Advice, best first.

    Attributes
    ----------
    before
        Length of the measured focus, seconds.
    plan
        Changes to make one after the other. Each is the best one after the previous changes, so their savings add up.
    progress
        Whether a progress thread would pay off: `whywait.analysis.progress.progress_thread` of the focus.
    bounds
        Changes that nobody can make, such as a call path that takes no time: they bound what others save.
    left_out
        The number of changes that were not simulated because the time was up.
    is_cut
        Whether the plan may go on: the time was up.
    """

    def __init__(
        self,
        advice: list[Advice],
        before: float,
        plan: list[Advice],
        progress: dict[str, Any] | None = None,
        bounds: Iterable[Advice] = (),
        left_out: int = 0,
    ) -> None:
        super().__init__(advice)
        self.bounds, self.left_out, self.is_cut = list(bounds), left_out, False
        self.before = before
        self.plan = plan
        self.progress = progress

    def as_dict(self, exposed: int = _EXPOSED) -> dict[str, Any]:
        """Return the list as plain data for JSON.

        Parameters
        ----------
        exposed
            For how many of the first changes to include `Advice.exposed`.
        """
        first = [one.as_dict() | one.exposed for one in self[:exposed]]
        return {
            "before": self.before,
            "advice": first + [one.as_dict() for one in self[exposed:]],
            "bounds": [one.as_dict() for one in self.bounds],
            "plan": [one.as_dict() for one in self.plan],
            "progress": self.progress,
            "left_out": self.left_out,
            "plan_cut": self.is_cut,
        }

    def expose(self, seconds: float | None = None) -> int:
        """Analyze the waits that the first changes expose; return for how many of them these are known.

        Parameters
        ----------
        seconds
            About how long this may take; None for no limit.
        """
        clock = Clock(seconds)
        for number, one in enumerate(self[:_EXPOSED]):
            if not clock.has_time():
                return number
            _ = one.exposed
        return min(len(self), _EXPOSED)


def advise(
    run: Result | Run | str | PathLike[str],
    *,
    top: int = 10,
    rounds: int = 3,
    goal: Goal = "time",
    keep_going: float = 0.005,
    only: Collection[str] | None = None,
    focus: str | None = None,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> AdviceList:
    """Find the changes that would save most time.

    Candidates come from delay costs, the critical path, wait states and findings
    (`whywait.analysis.proposals.candidates`); each is simulated. The savings of separate changes do not add up; those
    of the steps of the plan do.

    Parameters
    ----------
    run
        A result of `whywait.analyze` with causes, a run, or the path of a trace.
    top
        The maximum number of changes to return.
    rounds
        The maximum number of steps in the plan; 0 for no plan.
    goal
        Whether to rank by time (``"time"``) or by CPU time without waiting (``"cpu"``).
    keep_going
        The plan ends when the next step would save less than this share of the length of the measured focus.
    only
        The kinds of changes to try, from `KINDS`; None for all.
    focus
        The part of the run that suggests changes and is to become shorter, as `whywait.analysis.focus.find_focus` takes
        it: None for the time between start-up and shutdown, ``all``, or a call path, with which only changes of what
        lies below it are tried.
    seconds
        About how long the simulation may take: what does not fit is left out, first the steps of the plan. None for no
        limit.
    threads
        The number of threads to use; None for one per core.
    progress
        As for `whywait.analyze`.

    Returns
    -------
    AdviceList

    Raises
    ------
    whywait.UsageError
        If the result has no causes or no events, or an argument is invalid.
    """
    if top < 1 or rounds < 0 or goal not in ("time", "cpu"):
        raise _native.UsageError("top must be at least 1, rounds at least 0, and goal time or cpu")
    if unknown := [kind for kind in only or () if kind not in KINDS]:
        raise _native.UsageError(f"{unknown[0]} is not a kind of change: use one of {', '.join(KINDS)}")
    result = run if isinstance(run, Result) else analyze(run, threads=threads, progress=progress)
    first: AdviceList | None = None
    base = result
    measured = find_focus(result, focus).length(result)
    plan: list[Advice] = []
    clock = Clock(seconds)
    for step in range(max(rounds, 1)):
        report = _PlanProgress(progress, step / max(rounds, 1), 1 / max(rounds, 1))
        report(0.0)
        ranked, left_out = _best_advice(
            base, focus, {one.subject for one in plan}, goal, only, threads, top, clock, report
        )
        if first is None:
            made, bounds = ([one for one in ranked if one.is_bound is which] for which in (False, True))
            thread = progress_thread(focused(result, focus))
            first = AdviceList(made[:top], measured, plan, thread, bounds[:_BOUNDS], left_out)
        # Upper bounds cannot be achieved, so they are not steps of a plan.
        best = next((one for one in ranked if one.kind != "network" and not one.is_bound), None)
        if not rounds or best is None or best.saved < keep_going * measured:
            break
        plan.append(best)
        report(0.9)
        if step + 1 < rounds:
            if not clock.has_time():
                first.is_cut = True
                break
            base = best.result
    return AdviceList([], measured, plan) if first is None else first


class _PlanProgress:
    """Reports the progress of one step of the plan."""

    def __init__(self, progress: Callable[[str, float], object] | None, begin: float, share: float) -> None:
        self._progress, self._begin, self._share = progress, begin, share

    def __call__(self, done: float) -> None:
        if self._progress:
            self._progress("advise", self._begin + done * self._share)


def _best_advice(
    base: Result,
    focus: str | None,
    done: Collection[tuple[str, ...]],
    goal: Goal,
    only: Collection[str] | None,
    threads: int | None,
    top: int,
    clock: Clock,
    report: _PlanProgress,
) -> tuple[list[Advice], int]:
    """Simulate promising changes; return them, best first, and how many there was no time for.

    For ``time``, only the first `top` are complete.
    """
    lengths = Lengths(base, threads=threads)
    network = lengths.network if only is None or "network" in only else None
    proposed = candidates(focused(base, focus), only, network)
    proposed = [candidate for candidate in proposed if candidate.subject not in done]
    if not proposed:
        return [], 0
    trials = Trials(base, find_focus(base, focus), lengths, threads)
    processes = len({int(rank) for rank in base.places.rank if rank >= 0})
    whole = base.profile.total("time")
    share = lengths.assumed / whole if whole else 0.0
    promising = _Promising(trials, proposed, top if goal == "time" else len(proposed))
    found = [
        Advice(
            **vars(change), before=trial.before, after=trial.after, cpu_saved=saved * processes, assumed=share,
            _base=base, _focus=focus, _threads=threads,
        )
        for change, trial in promising.within(clock, report)
        if trial.before is not None and trial.after is not None
        if (saved := trial.before - trial.after) > 1e-6 * trials.measured
    ]  # fmt: skip
    if goal == "cpu":
        busy = _busy_time(base, focus)
        for number, one in enumerate(found):
            report(0.8 * number / len(found))
            if not clock.has_time():
                promising.left_out += len(found) - number
                del found[number:]
                break
            found[number] = replace(one, cpu_saved=busy - _busy_time(one.simulation.analyze(causes=False), focus))
    ranked = sorted(
        found,
        key=lambda one: (
            one.is_bound,
            -(one.cpu_saved if goal == "cpu" else one.saved),
            one.locations,
            one.option,
        ),
    )
    return ranked, promising.left_out


class _Promising:
    """Tries changes, except those that cannot be among the best `top`.

    Parameters
    ----------
    trials
        Where they are tried.
    proposed
        The changes.
    top
        How many of the best are wanted.

    Attributes
    ----------
    left_out
        How many there was no time for.
    """

    def __init__(self, trials: Trials, proposed: list[Change], top: int) -> None:
        self._trials, self._proposed, self._top = trials, proposed, top
        # What the best changes save, and the best bounds: these are listed apart.
        self._saved: dict[bool, list[float]] = {False: [], True: []}
        self.left_out = 0

    def within(self, clock: Clock, report: _PlanProgress) -> Iterator[tuple[Change, Trial]]:
        """Yield changes with the lengths before and after, as long as there is time."""
        # What shares a graph is cheap. Try the highest bounds first, so that the rest can be skipped.
        shared = sorted(
            (one for one in self._proposed if not isinstance(one.hypothesis, OWN_GRAPH)), key=lambda one: -one.bound
        )
        own = [one for one in self._proposed if isinstance(one.hypothesis, OWN_GRAPH)]
        # Networks come last: to compare with the one that fits takes a graph, too.
        own.sort(key=lambda one: one.base is not None)
        batches = [*(shared[first : first + BATCH] for first in range(0, len(shared), BATCH)), *([one] for one in own)]
        for number, batch in enumerate(batches):
            report(0.8 * number / len(batches))
            tries = self._promising(batch)
            if tries and not clock.has_time():
                self.left_out += len(self._promising([one for batch in batches[number:] for one in batch]))
                return
            for one, trial in zip(tries, self._trials.of(tries), strict=True):
                if trial.saved is not None:
                    self._saved[one.is_bound].append(trial.saved)
                yield one, trial

    def _promising(self, batch: list[Change]) -> list[Change]:
        top, saved = self._top, self._saved
        least = {kind: sorted(of, reverse=True)[top - 1] if len(of) >= top else 0.0 for kind, of in saved.items()}
        return [one for one in batch if one.bound >= least[one.is_bound]]


def _busy_time(result: Result, focus: str | None) -> float:
    """Return the CPU time in the focus without waiting."""
    found = account(focused(result, focus).profile)
    return float(found["time"] - found["waiting"])
