"""Who makes other ranks of a training run wait, and how: what the rules about stragglers have in common.

Devices wait for each other, or ranks do if there are no devices. What they wait for is charged to call paths. Ranks
that take at least 10% longer there than the median rank are to blame if they bear clearly more than their even share
of it. If most ranks take equally long and the others at least 10% less, all of those are to blame, since each would be
waited for without the others. Else the few that bear most of it are. If most of the waiting is for messages, ranks
work one after another, as the stages of a pipeline do: what a slower stage causes is told from what filling and
draining takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from whywait.analysis.changes import Change
from whywait.analysis.findings.finding import fewest
from whywait.analysis.findings.training_steps import steps
from whywait.analysis.findings.waiters import Ranks, ranks_of, waiters
from whywait.analysis.findings.words import EQUAL, Figures, Words, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from whywait.analysis.findings.finding import Finding, Proposed, Run
    from whywait.analysis.findings.waiters import Waiters

OF_MANY = Figures(
    place=("name", "the call paths, the costliest first"),
    waiting=(
        "s",
        "the waiting of devices, or of ranks without any, that is charged to them, less that of slower ranks",
    ),
)
FIGURES = Figures(
    who=(
        "name",
        "the ranks that take 10% longer than the median; or most, if others take 10% less; else few with most costs",
    ),
    others=("name", "the devices of the other ranks, or these if there are none"),
    place=("name", "the call paths, the costliest first"),
    each=(
        "s",
        "the waiting that is charged to `who`, for each of the other ranks in each of `times` steps",
    ),
    step=("s", "the mean length of a step"),
    steps=("count", "the number of steps that all ranks recorded, at least half of them in the focus"),
    times=("count", "the steps in which others wait for `who` for at least a tenth of the longest such time of a step"),
    longer=(
        "s",
        "by how much `who` spends longer there than the mean of the other ranks, in each step that it is late in",
    ),
    factor=("times", "the time of `who` there in such a step, as a multiple of the mean of the other ranks"),
)

# Smaller shares of the time are no finding.
LEAST = 0.01
# The rules about ranks that can be mended; they come first if they explain this share of any other finding.
_FIRST = frozenset(
    {"straggler_loading", "straggler_host", "straggler_kernel", "uneven_work", "pipeline_stage", "changing"}
)
_ENOUGH = 0.25
# Few ranks are at most this share of all.
_FEW = 0.5
# A rank is slower if it takes so much longer than the median, and late if it bears this share of what the latest does.
SLOWER, _NOTICED = 1.1, 0.1
# What ranks take longer explains waits if it is at least this share of them.
_EXPLAINS = 0.8
# So many call paths are named.
_NAMED = 2
_PAUSES = re.compile(r"\bgc[._]?(collect|callback)|\bcollect\b", re.IGNORECASE)
LOADS = re.compile(r"DataLoader|dataloader|torch/utils/data", re.IGNORECASE)


@dataclass(frozen=True)
class Blame:
    """Waiting that some ranks cause, or many.

    Attributes
    ----------
    who
        Those that wait.
    rule
        The rule that says so.
    callpaths
        Where they cause it, the costliest first.
    ranks
        The ranks, by their places among those of the trace; empty if these are many.
    costs
        The waiting, by rank of the cause, in seconds.
    passing
        Where they pass it on: what comes after that takes as long as elsewhere.
    """

    who: Waiters
    rule: str
    callpaths: list[int]
    ranks: list[int]
    costs: npt.NDArray[np.float64]
    passing: list[int] = field(default_factory=list)

    @property
    def waiting(self) -> float:
        """All of it."""
        return float(self.costs.sum())

    @property
    def numbers(self) -> list[int]:
        """The numbers of the ranks."""
        return ranks_of(self.who.run).numbers[self.ranks].tolist() if self.ranks else []


def blames(run: Run, rule: str) -> Iterator[Blame]:
    """Yield the waiting that a rule explains, the most first."""
    found = run.once(_blames)
    yield from sorted((one for one in found if one.rule == rule), key=lambda one: -one.waiting)


def late_hosts(run: Run) -> dict[int, list[int]]:
    """Return the call paths of hosts in which few ranks are late, with these ranks."""
    found = [one for one in run.once(_blames) if one.rule in {"straggler_loading", "straggler_host"}]
    few = [one for one in found if len(one.ranks) <= _FEW * one.costs.size]
    return {callpath: one.numbers for one in few for callpath in one.callpaths}


def _blames(run: Run) -> list[Blame]:
    """Divide the waiting for each other among the rules."""
    who = run.once(waiters)
    if who is None:
        return []
    least = LEAST * who.time
    found: list[Blame] = []
    stages: dict[tuple[int, ...], Blame] = {}
    rests: dict[int, npt.NDArray[np.float64]] = {}
    for callpath, by_rank in sorted(who.costs.items(), key=lambda one: (-float(one[1].sum()), one[0])):
        if _may_wait_for_others(run, callpath):
            continue
        ranks = _late(run, who, callpath, by_rank)
        own = np.zeros_like(by_rank)
        own[ranks] = by_rank[ranks]
        rests[callpath] = by_rank - own
        if not ranks or own.sum() < least:
            rests[callpath] = by_rank
        elif who.in_stages and who.computes(callpath):
            known = stages.setdefault(tuple(ranks), Blame(who, "pipeline_stage", [], ranks, np.zeros_like(own)))
            known.callpaths.append(callpath)
            known.costs[:] += own
        else:
            found.append(Blame(who, _rule(run, callpath, ranks), [callpath], ranks, own))
    found = [*_passed_on(run, found), *stages.values()]
    if who.in_stages and rests:
        order = sorted(rests, key=lambda one: -float(rests[one].sum()))
        rest = np.sum(list(rests.values()), axis=0)
        if rest.sum() >= least:
            found.append(Blame(who, "pipeline_bubble", order, [], rest))
    else:
        found += [Blame(who, "changing", [one], [], rest) for one, rest in rests.items() if rest.sum() >= least]
    return found


def _may_wait_for_others(run: Run, callpath: int) -> bool:
    """Return whether a rank may be late in a call path because of ranks without a trace."""
    return bool(run.result.facts.get("traces", {}).get("missing")) and run.region(callpath).paradigm == "ccl"


def _passed_on(run: Run, found: list[Blame]) -> list[Blame]:
    """Charge what call paths that take no longer make others wait to one of the same ranks that does, if there is any.

    Those that wait did not wait for it if they had to wait before, though they run it as well.
    """
    kept: list[Blame] = []
    late: dict[tuple[int, ...], Blame] = {}
    for blame in found:
        own, other = of_both(steps(run).times(blame.callpaths[0]), blame.ranks)
        known = late.get(tuple(blame.ranks))
        if own > SLOWER * other:
            late.setdefault(tuple(blame.ranks), blame)
        elif known is not None:
            known.passing.extend(blame.callpaths)
            known.costs[:] += blame.costs
            continue
        kept.append(blame)
    return kept


def _late(run: Run, who: Waiters, callpath: int, costs: npt.NDArray[np.float64]) -> list[int]:
    """Return the ranks that are to blame for what a call path makes others wait: few, or all but few; else none."""
    times = steps(run).times(callpath)
    most = np.flatnonzero(times > times.max() / SLOWER).tolist()
    if not who.in_stages and costs.size / 2 < len(most) < costs.size and set(fewest(costs)) <= set(most):
        return most
    # Others wait for the slowest; those that are nearly as slow would be waited for without it.
    half = (np.median(times) + times.max()) / 2
    ranks = [rank for rank in _slower(times) if costs[rank] >= _NOTICED * costs.max() or times[rank] >= half]
    # More than half of what exceeds an even share.
    if not who.in_stages and 2 * costs[ranks].sum() < (1 + len(ranks) / costs.size) * costs.sum():
        ranks = fewest(costs)
        if not steps(run).are_often_late(ranks):
            return []
    return ranks if len(ranks) <= _FEW * costs.size else []


def _rule(run: Run, callpath: int, ranks: list[int]) -> str:
    """Return which rule explains what ranks cause in a call path."""
    if LOADS.search("/".join(run.result.tree.path(callpath))):
        return "straggler_loading"
    if callpath not in run.kernels:
        return "straggler_host"
    own, other = of_both(calls(run, callpath), ranks)
    return "uneven_work" if own > SLOWER * other or have_own_shapes(run, callpath, ranks) else "straggler_kernel"


def have_own_shapes(run: Run, callpath: int, ranks: list[int]) -> bool | None:
    """Return whether inputs of a kernel have other shapes on some ranks than on all others; None if not recorded."""
    own = set(ranks_of(run).numbers[ranks].tolist())
    groups = run.result.facts.get("traces", {}).get("shapes", {}).get(run.region(callpath).name)
    return all(set(group) <= own or not set(group) & own for group, *_ in groups) if groups else None


def usual_shapes(run: Run, callpath: int, ranks: list[int]) -> tuple[str, str]:
    """Return the most frequent shapes of the inputs of a kernel on some ranks, and on most of the others."""
    late = set(ranks_of(run).numbers[ranks].tolist())
    groups = run.result.facts["traces"]["shapes"][run.region(callpath).name]
    own, other = (
        max((one for one in groups if (one[0][0] in late) == is_own), key=lambda one: len(one[0]), default=None)
        for is_own in (True, False)
    )
    return own[2] if own else "", other[2] if other else ""


def calls(run: Run, callpath: int) -> npt.NDArray[np.float64]:
    """Return how often each rank is in a call path, in a step if it has any."""
    return ranks_of(run).sums(run.visits(callpath)) / np.maximum(steps(run).recorded, 1)


def finding(run: Run, blame: Blame, sentence: Words, advice: str) -> Finding:
    """Return a finding about devices or ranks that wait, and take their waiting as explained."""
    blame.who.take(blame.callpaths + blame.passing, blame.ranks)
    return run.finding(
        blame.rule,
        sentence,
        advice,
        blame.waiting,
        callpath=blame.callpaths[0] if blame.ranks or len(blame.callpaths) == 1 else None,
        ranks=blame.numbers,
        merged=blame.callpaths if len(blame.callpaths) > 1 and blame.ranks else [],
        base=blame.who.base,
        evidence={"by_rank": blame.costs.tolist(), "callpaths": blame.callpaths},
    )


def put_first(run: Run, found: list[Finding]) -> None:
    """Put late ranks before what the libraries of CPUs take, for which there is no reason in a trace.

    What these take beyond the transfers themselves depends on who else uses the cores.
    """
    if not isinstance(run.once(waiters), Ranks):
        return
    others = [one for one in found if one.rule not in _FIRST]
    late = sum(one.share for one in found if one.rule in _FIRST)
    if late >= _ENOUGH * max((one.share for one in others), default=0.0):
        for one in others:
            one.is_remainder = True


def _slower(times: npt.NDArray[np.float64]) -> list[int]:
    """Return the ranks that take longer than the median."""
    return np.flatnonzero(times > SLOWER * np.median(times)).tolist()


def sentence(run: Run, blame: Blame, what: Callable[[float, float, float], Words]) -> Words:
    """Say whom some ranks make wait, and how long.

    `what` says what they do, given by how much longer they take than the others, as a difference and as a factor, and
    how long each of the others waits.
    """
    ranks, counted = blame.ranks, steps(run)
    times = np.sum([counted.times(callpath) for callpath in blame.callpaths], axis=0)
    own, other = of_both(times, ranks)
    recurs, wait = counted.with_waits(ranks), counted.waiting(ranks)
    others = times.size - len(ranks)
    is_one = len(ranks) == 1
    who = f"rank{'s' * (not is_one)} {_listed(blame.numbers)}"
    if len(ranks) > _FEW * times.size:
        who = f"all ranks but {_listed(np.delete(ranks_of(run).numbers, ranks).tolist())}"
    verb = "makes" if is_one else "make"
    each = blame.waiting * counted.share_of_others(ranks) / max(wait, 1) / recurs
    words = FIGURES.say(
        f"{{who}} {verb} {{others}} wait", who=who, others=_others(blame.who, wait, others)
    ).capitalized()
    if 1 < counted.number == recurs:
        words += FIGURES.say(
            f" {{each}} in each of {{steps}} {counted.name} of {{step}}: ",
            each=each,
            steps=counted.number,
            step=counted.length,
        )
    elif counted.number > 1:
        words += FIGURES.say(
            f" {{each}} in {{times}} of {{steps}} {counted.name}: ", each=each, times=recurs, steps=counted.number
        )
    else:
        words += FIGURES.say(" {each}: ", each=each)
    # It takes longer in all steps, if that explains the waits, though nobody waits in some; else in those with waits.
    is_always = (own - other) / counted.number >= _EXPLAINS * each
    longer = (own - other) / (counted.number if is_always else recurs)
    usual = other / counted.number
    return words + what(longer, 1 + longer / usual if usual > 0 else 0.0, each)


def _listed(ranks: list[int]) -> str:
    """Return the words for some ranks."""
    return joined(Words(str(rank)) for rank in ranks).text


def _others(who: Waiters, wait: int, others: int) -> str:
    """Return the words for those that wait, of all others."""
    named = f"the other {who.word}" if others == 1 else f"the other {others} {who.words}"
    return named if wait in {0, others} else f"{wait} of {named}"


def takes_longer(run: Run, blame: Blame, longer: float, factor: float, each: float) -> Words:
    """Say that ranks take longer in some call paths."""
    names = [run.place(callpath) for callpath in blame.callpaths]
    if len(names) > _NAMED:
        names[_NAMED - 1 :] = [f"{len(names) - _NAMED + 1} more"]
    place = joined(Words(name) for name in names).text
    if blame.rule == "straggler_loading":
        place = f"its data loader ({place})" if len(blame.ranks) == 1 else f"their data loaders ({place})"
    is_one = len(names) == 1 and not place.startswith("their")
    words = FIGURES.say(f"{{place}} {'takes' if is_one else 'take'}", place=place)
    if 2 * longer < each:
        return words + " longer there at times."
    if factor >= EQUAL:
        return words + FIGURES.say(" {longer} longer there, {factor} elsewhere.", longer=longer, factor=factor)
    return words + FIGURES.say(" {longer} longer there.", longer=longer)


def of_both(values: npt.NDArray[np.float64], ranks: list[int]) -> tuple[float, float]:
    """Return the mean of some ranks, and that of the others."""
    others = np.delete(values, ranks)
    return float(values[ranks].mean()), float(others.mean()) if others.size else 0.0


def is_pause(run: Run, callpath: int) -> bool:
    """Return whether the interpreter collects garbage in a call path, which it need not do there."""
    return _PAUSES.search("/".join(run.result.tree.path(callpath))) is not None


def without_pause(run: Run, found: Finding) -> Iterator[Change]:
    """Yield leaving out a garbage collection."""
    if found.callpath is not None and is_pause(run, found.callpath):
        yield replace(run.changes.faster(found.callpath, 0.0), label="without", then="Without it", is_bound=False)


def changes(run: Run, found: Finding) -> Proposed:
    """Yield making the late ranks as fast as the others, or balancing the call path."""
    ranks = run.result.facts.get("traces", {}).get("ranks", [])
    # Where nothing but devices is recorded, a simulation keeps the steps of the hosts.
    if not found.ranks or any(rank["works"] and rank["unlaunched"] == rank["works"] for rank in ranks):
        return
    yield from without_pause(run, found)
    callpaths = found.evidence["callpaths"]
    changed = (run.changes.ranks_like_others(callpath, found.ranks) for callpath in callpaths)
    like_others = [change for change in changed if change is not None]
    if len(like_others) > 1:
        names = joined(Words(run.changes.name(callpath)) for callpath in callpaths[:_NAMED]).text
        yield Change.together(like_others, f"{names} as fast as elsewhere")
    yield from like_others
    for callpath in callpaths:
        yield run.changes.balance(callpath)
        yield run.changes.faster(callpath, 0.0)
