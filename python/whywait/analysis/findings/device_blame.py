"""Who makes the devices of other ranks wait, and how: what the rules about stragglers have in common.

The local chains of devices that wait for each other charge their waiting to call paths. Ranks that take at least
10% longer there than the median rank are to blame, or else the few that bear most of it. If devices wait for
messages most of the time, ranks work one after another, as the stages of a pipeline do: what a slower stage causes
is told from what filling and draining takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.changes import Change
from whywait.analysis.findings.words import EQUAL, Figures, Words, joined
from whywait.analysis.focus import focused
from whywait.analysis.iterations import known_iterations
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from whywait.analysis.findings.finding import Finding, Price, Run
    from whywait.model.profile import Profile

OF_MANY = Figures(
    place=("name", "the call paths, the costliest first"),
    waiting=(
        "s",
        "the waiting of devices that the cost model charges to them, less that of slower ranks",
    ),
)
FIGURES = Figures(
    who=(
        "name",
        "the ranks that take at least 10% longer than the median, else those that bear at least 80% of the costs",
    ),
    others=("name", "the devices of the other ranks"),
    place=("name", "the call paths, the costliest first"),
    each=(
        "s",
        "the waiting that is charged to `who`, for each of the other ranks in each of `times` steps",
    ),
    step=("s", "the mean length of a step"),
    steps=("count", "the number of steps that most ranks recorded, at least half of them in the focus"),
    times=("count", "the steps in which others wait for `who` for at least a tenth of the longest such time of a step"),
    longer=("s", "by how much `who` spends longer there than the mean of the other ranks, in each of `times` steps"),
    factor=("times", "the time of `who` there, as a multiple of the mean of the other ranks"),
)

# Smaller shares of the time of devices are no finding.
LEAST = 0.01
# Ranks are the culprits if they have this share of the costs, and are at most this share of all ranks.
_CULPRIT, _FEW = 0.8, 0.5
_OF_MESSAGES = ("ccl_latesender", "ccl_latereceiver")
_OF_GROUPS = ("ccl_wait_nxn", "ccl_wait_barrier", "ccl_late_broadcast", "ccl_early_reduce")
# A step in which others wait so much less than in the worst one does not count.
_RECURS = 0.1
# A rank is slower if it takes so much longer than the median.
_SLOWER = 1.1
# So many call paths are named.
_NAMED = 2
LOADS = re.compile(r"DataLoader|dataloader|torch/utils/data", re.IGNORECASE)


@dataclass(frozen=True)
class Blame:
    """Waiting of devices that some ranks cause, or many.

    Attributes
    ----------
    rule
        The rule that says so.
    callpaths
        Where they cause it, the costliest first.
    ranks
        The ranks; empty if these are many.
    costs
        The waiting, by rank of the cause, in seconds of the time of devices.
    """

    rule: str
    callpaths: list[int]
    ranks: list[int]
    costs: npt.NDArray[np.float64]

    @property
    def waiting(self) -> float:
        """All of it."""
        return float(self.costs.sum())


def blames(run: Run, rule: str) -> Iterator[Blame]:
    """Yield the waiting of devices that a rule explains, the most first."""
    found = run.once(_blames)
    yield from sorted((one for one in found if one.rule == rule), key=lambda one: -one.waiting)


def _blames(run: Run) -> list[Blame]:
    """Divide the waiting of devices for each other among the rules."""
    least = LEAST * run.device_time
    costs = _costs(run)
    in_stages = _waits_for_messages(run)
    found: list[Blame] = []
    stages: dict[tuple[int, ...], Blame] = {}
    rests: dict[int, npt.NDArray[np.float64]] = {}
    for callpath in sorted(costs, key=lambda one: (-float(costs[one].sum()), one)):
        by_rank = costs[callpath]
        ranks = _slower(_times(run, callpath))
        if by_rank[ranks].sum() < least:
            ranks = [] if in_stages else _culprits(by_rank)
        if len(ranks) > _FEW * by_rank.size or by_rank[ranks].sum() < least:
            ranks = []
        own = np.zeros_like(by_rank)
        own[ranks] = by_rank[ranks]
        rest = by_rank - own
        if ranks and in_stages and callpath in run.kernels:
            known = stages.setdefault(tuple(ranks), Blame("pipeline_stage", [], ranks, np.zeros_like(own)))
            known.callpaths.append(callpath)
            known.costs[:] += own
        elif ranks:
            found.append(Blame(_rule(run, callpath, ranks), [callpath], ranks, own))
        rests[callpath] = rest
    found += stages.values()
    if in_stages and rests:
        order = sorted(rests, key=lambda one: -float(rests[one].sum()))
        rest = np.sum(list(rests.values()), axis=0)
        if rest.sum() >= least:
            found.append(Blame("pipeline_bubble", order, [], rest))
    else:
        found += [Blame("changing", [one], [], rest) for one, rest in rests.items() if rest.sum() >= least]
    return found


def _rule(run: Run, callpath: int, ranks: list[int]) -> str:
    """Return which rule explains what ranks cause in a call path."""
    if LOADS.search("/".join(run.result.tree.path(callpath))):
        return "straggler_loading"
    if callpath not in run.kernels:
        return "straggler_host"
    own, other = of_both(calls(run, callpath), ranks)
    return "uneven_work" if own > _SLOWER * other else "straggler_kernel"


def calls(run: Run, callpath: int) -> npt.NDArray[np.float64]:
    """Return how often each rank is in a call path, in a step if it has any."""
    number = sum_at(np.maximum(run.result.places.rank, 0), run.visits(callpath).astype(float), _ranks(run))
    for rank in run.result.facts.get("traces", {}).get("ranks", []):
        if rank["steps"] and rank["rank"] < number.size:
            number[rank["rank"]] /= len(rank["steps"])
    return number


def lines_of(run: Run, *names: str) -> list[dict[str, Any]]:
    """Return the lines of the account of devices whose rows begin with one of some names."""
    return [line for line in run.device_lines if line["row"].startswith(names)]


def in_rows(run: Run, *names: str) -> float:
    """Return the time of devices in rows that begin with one of some names, in the focus."""
    return float(sum(line["time"] for line in lines_of(run, *names)))


def waiting(profile: Profile) -> float:
    """Return the waiting of devices for each other."""
    return _total(profile, _OF_MESSAGES + _OF_GROUPS)


def finding(run: Run, blame: Blame, sentence: Words, advice: str) -> Finding:
    """Return a finding about devices that wait."""
    return run.finding(
        blame.rule,
        sentence,
        advice,
        blame.waiting,
        callpath=blame.callpaths[0] if blame.ranks or len(blame.callpaths) == 1 else None,
        ranks=blame.ranks,
        merged=blame.callpaths if len(blame.callpaths) > 1 and blame.ranks else [],
        base="device",
        evidence={"by_rank": blame.costs.tolist(), "callpaths": blame.callpaths},
    )


def _waits_for_messages(run: Run) -> bool:
    """Return whether devices wait for messages for most of their waiting for each other."""
    profile = focused(run.result).profile
    return _total(profile, _OF_MESSAGES) > _total(profile, _OF_GROUPS)


def _total(profile: Profile, metrics: tuple[str, ...]) -> float:
    return sum(profile.total(metric) for metric in metrics if metric in profile.metrics)


def _slower(times: npt.NDArray[np.float64]) -> list[int]:
    """Return the ranks that take longer than the median."""
    return np.flatnonzero(times > _SLOWER * np.median(times)).tolist()


def _costs(run: Run) -> dict[int, npt.NDArray[np.float64]]:
    """Return the waiting of devices in the focus that each call path causes, by rank.

    Kernels of a device that wait at the same time share its time.
    """
    profile = focused(run.result).profile
    rank = run.result.places.rank
    of_devices, of_kernels = in_rows(run, "comm.wait."), waiting(profile)
    shared = min(of_devices / of_kernels, 1.0) if of_kernels else 1.0
    number = _ranks(run)
    found: dict[int, npt.NDArray[np.float64]] = {}
    for metric in ("delay_ccl", "delay_ccl_longterm"):
        if metric not in profile.metrics:
            continue
        key, value = profile.cells(metric)
        position, location = np.divmod(key, max(profile.locations, 1))
        callpath = profile.tree.preorder[position]
        for one in np.unique(callpath).tolist():
            here = callpath == one
            by_rank = sum_at(np.maximum(rank[location[here]], 0), value[here], number)
            found[one] = found.get(one, np.zeros(number)) + shared * by_rank
    return found


def _culprits(costs: npt.NDArray[np.float64]) -> list[int]:
    """Return the fewest ranks that have most of some costs."""
    order = np.argsort(-costs, kind="stable")
    enough = int(np.searchsorted(np.cumsum(costs[order]), _CULPRIT * costs.sum() * (1 - 1e-9))) + 1
    return sorted(order[:enough].tolist())


def sentence(run: Run, blame: Blame, what: Callable[[float, float, float], Words]) -> Words:
    """Say whom some ranks make wait, and how long.

    `what` says what they do, given by how much longer they take than the others, as a difference and as a factor, and
    how long each of the others waits.
    """
    ranks = blame.ranks
    times = np.sum([_times(run, callpath) for callpath in blame.callpaths], axis=0)
    own, other = of_both(times, ranks)
    others = times.size - len(ranks)
    is_one = len(ranks) == 1
    who = f"rank{'s' * (not is_one)} {joined(Words(str(rank)) for rank in ranks).text}"
    verb = "makes" if is_one else "make"
    which = "GPU" if others == 1 else f"{others} GPUs"
    steps = _Steps(run)
    recurs = steps.with_waits(ranks)
    each = blame.waiting / max(others, 1) / recurs
    words = FIGURES.say(f"{{who}} {verb} the other {{others}} wait", who=who, others=which).capitalized()
    if 1 < steps.number == recurs:
        words += FIGURES.say(
            f" {{each}} in each of {{steps}} {steps.name} of {{step}}: ",
            each=each,
            steps=steps.number,
            step=steps.length,
        )
    elif steps.number > 1:
        words += FIGURES.say(
            f" {{each}} in {{times}} of {{steps}} {steps.name}: ", each=each, times=recurs, steps=steps.number
        )
    else:
        words += FIGURES.say(" {each}: ", each=each)
    return words + what((own - other) / recurs, own / other if other > 0 else 0.0, each)


def takes_longer(run: Run, blame: Blame, longer: float, factor: float, each: float) -> Words:
    """Say that ranks take longer in some call paths."""
    names = [run.place(callpath) for callpath in blame.callpaths]
    if len(names) > _NAMED:
        names[_NAMED - 1 :] = [f"{len(names) - _NAMED + 1} more"]
    place = joined(Words(name) for name in names).text
    if blame.rule == "straggler_loading":
        place = f"its data loader ({place})"
    words = FIGURES.say(f"{{place}} {'takes' if len(names) == 1 else 'take'}", place=place)
    if 2 * longer < each:
        return words + " longer there at times."
    if factor >= EQUAL:
        return words + FIGURES.say(" {longer} longer there, {factor} elsewhere.", longer=longer, factor=factor)
    return words + FIGURES.say(" {longer} longer there.", longer=longer)


class _Steps:
    """The steps of the focus that most ranks recorded; a run without steps is one."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.name = "steps" if run.result.facts.get("traces", {}).get("steps") else "iterations"
        self._begins, self.number, self.length = np.zeros(1), 1, run.length
        table = known_iterations(run.result)
        if table is None or not table.num_rows:
            return
        begin, end, length, ranks = (table[name].to_numpy() for name in ("begin", "end", "duration", "ranks"))
        first, last = run.losses.account.window
        inside = np.minimum(end, last) - np.maximum(begin, first)
        here = (2 * inside >= end - begin) & (2 * ranks > ranks.max())
        if here.any():
            self._begins, self.number = np.sort(begin[here]), int(here.sum())
            self.length = float(length[here].mean())

    def with_waits(self, ranks: list[int]) -> int:
        """Return the number of steps in which the devices of others wait for some ranks."""
        if self.number == 1:
            return 1
        run = self._run
        waits = focused(run.result).tables.wait_states
        waits = waits.filter(pc.is_in(waits["kind"].cast(pa.string()), pa.array(_OF_MESSAGES + _OF_GROUPS)))
        of_ranks = np.isin(run.result.places.rank[waits["cause_location"].to_numpy()], ranks)
        begin, waiting = (waits[name].to_numpy()[of_ranks] for name in ("enter", "waiting"))
        if not begin.size:
            return self.number
        step = np.maximum(np.searchsorted(self._begins, begin, "right") - 1, 0)
        by_step = np.bincount(step, waiting, minlength=self.number)
        return max(1, int(np.count_nonzero(by_step >= _RECURS * by_step.max(initial=0.0))))


def of_both(values: npt.NDArray[np.float64], ranks: list[int]) -> tuple[float, float]:
    """Return the mean of some ranks, and that of the others."""
    others = np.delete(values, ranks)
    return float(values[ranks].mean()), float(others.mean()) if others.size else 0.0


def _ranks(run: Run) -> int:
    return int(run.result.places.rank.max(initial=0)) + 1


def _times(run: Run, callpath: int) -> npt.NDArray[np.float64]:
    """Return the time in a call path by rank, in the focus."""
    profile = focused(run.result).profile
    times = profile.row("time", int(run.result.tree.position[callpath]))
    return sum_at(np.maximum(run.result.places.rank, 0), times, _ranks(run))


def changes(run: Run, found: Finding) -> Iterator[Change | Price]:
    """Yield making the late ranks as fast as the others, or balancing the call path."""
    ranks = run.result.facts.get("traces", {}).get("ranks", [])
    # Where nothing but devices is recorded, a simulation keeps the steps of the hosts.
    if not found.ranks or any(rank["works"] and rank["unlaunched"] == rank["works"] for rank in ranks):
        return
    places = run.result.places
    by_rank = np.asarray(found.evidence["by_rank"])
    callpaths = found.evidence["callpaths"]
    like_others = []
    for callpath in callpaths:
        costs = np.zeros(run.result.profile.locations)
        runs = run.changes.by_location("time", callpath) > 0
        costs[runs] = by_rank[np.maximum(places.rank, 0)][runs]
        if (change := run.changes.like_others(callpath, costs)) is not None:
            like_others.append(change)
    if len(like_others) > 1:
        names = joined(Words(run.changes.name(callpath)) for callpath in callpaths[:_NAMED]).text
        yield Change.together(like_others, f"{names} as fast as elsewhere")
    yield from like_others
    for callpath in callpaths:
        if (balance := run.changes.balance(callpath)) is not None:
            yield balance
        yield run.changes.faster(callpath, 0.0)
