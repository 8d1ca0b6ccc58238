"""A rank makes the devices of others wait."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.findings.words import EQUAL, Figures, Words, joined
from whywait.analysis.focus import focused
from whywait.analysis.iterations import known_iterations
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run
    from whywait.model.profile import Profile

NAME = "straggler"
TITLE = "Straggler"
DOCUMENT = """\
The local chains of devices that wait for each other blame at least a percent of the device time on a call path, most of
it on one rank or a few: a data loader, other code of the host, or a kernel. Whether a kernel takes longer although its
shape is the same, or does more, the trace does not tell: compare shapes, or the clocks and temperatures of the devices.
Ranks that take at least 10% longer there than the median rank come first. If devices wait for messages most of the
time, ranks work one after another, as the stages of a pipeline do, and what nobody who is slower causes is one finding.
The loss is time of devices, not of CPUs.
"""
FIGURES = Figures(
    who=(
        "name",
        "the ranks that take at least 10% longer than the median, else those that bear at least 80% of the costs",
    ),
    others=("name", "the devices of the other ranks"),
    place=("name", "the call path"),
    waiting=(
        "s",
        "the waiting of devices that the cost model charges to `place`, less that of slower ranks; kernels share it",
    ),
    each=("s", "the waiting that it charges to `who`, for each of the other ranks in each of `times` steps"),
    step=("s", "the mean length of a step"),
    steps=("count", "the number of steps"),
    times=("count", "the steps in which others wait for `who` for at least a tenth of the longest such time of a step"),
    longer=(
        "s",
        "by how much `who` spends longer in `place` than the mean of the other ranks, in each of `times` steps",
    ),
    factor=("times", "the time of `who` in `place`, as a multiple of the mean of the other ranks"),
)

# Smaller shares of the time of devices are no finding.
_LEAST = 0.01
# Ranks are the culprits if they have this share of the costs, and are at most this share of all ranks.
_CULPRIT, _FEW = 0.8, 0.5
_OF_MESSAGES = ("ccl_latesender", "ccl_latereceiver")
_OF_GROUPS = ("ccl_wait_nxn", "ccl_wait_barrier", "ccl_late_broadcast", "ccl_early_reduce")
# A step in which others wait so much less than in the worst one does not count.
_RECURS = 0.1
# A rank is slower if it takes so much longer than the median.
_SLOWER = 1.1
_STAGES = "Use more microbatches, interleave the stages, and give each as much work."
_LOADS = re.compile(r"DataLoader|dataloader|torch/utils/data", re.IGNORECASE)
_PAUSES = re.compile(r"\bgc[._]?(collect|callback)|\bcollect\b", re.IGNORECASE)


def detect(run: Run) -> Iterator[Finding]:
    """Yield the call paths that make the devices of other ranks wait, the costliest first."""
    total = sum(line["time"] for line in run.result.tables.device_account.to_pylist())
    costs = _costs(run)
    steps = _steps(run)
    in_stages = _waits_for_messages(run)
    of_stages: dict[int, float] = {}
    for callpath in sorted(costs, key=lambda one: (-float(costs[one].sum()), one)):
        by_rank = costs[callpath]
        rest = by_rank.copy()
        times = _times(run, callpath)
        ranks = _slower(times)
        if by_rank[ranks].sum() < _LEAST * total:
            ranks = [] if in_stages else _culprits(by_rank)
        if len(ranks) > _FEW * by_rank.size:
            ranks = []
        if ranks and (waiting := float(by_rank[ranks].sum())) >= _LEAST * total:
            rest[ranks] = 0.0
            sentence = _of_few(run, (callpath, times), ranks, waiting, steps)
            yield _found(run, sentence, (callpath, ranks), by_rank - rest, (total, steps[0]))
        if in_stages:
            of_stages[callpath] = float(rest.sum())
        elif rest.sum() >= _LEAST * total:
            yield _found(run, _of_many(run, callpath, float(rest.sum())), (callpath, []), rest, (total, steps[0]))
    if of_stages and (waiting := sum(of_stages.values())) >= _LEAST * total:
        sentence = FIGURES.say(
            "GPUs wait {waiting} for ranks that work one after another, most of it for {place}.",
            waiting=waiting,
            place=run.place(max(of_stages, key=lambda one: of_stages[one])),
        )
        found = run.finding(NAME, sentence, _STAGES, waiting, base="device")
        found.share = waiting / total
        yield found


def _found(
    run: Run, sentence: Words, place: tuple[int, list[int]], costs: npt.NDArray[np.float64], of_all: tuple[float, int]
) -> Finding:
    """Return a finding; `of_all` are the time of all devices, and the number of steps."""
    total, steps = of_all
    callpath, ranks = place
    waiting = float(costs.sum())
    found = run.finding(
        NAME,
        sentence,
        _advice(run, callpath),
        waiting,
        callpath=callpath,
        ranks=ranks,
        base="device",
        evidence={"by_rank": costs.tolist(), "steps": steps},
    )
    found.share = waiting / total
    return found


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
    rows = run.result.tables.device_account.to_pylist()
    of_devices = sum(line["time"] for line in rows if line["row"] == "communication.wait")
    of_kernels = _total(profile, _OF_MESSAGES + _OF_GROUPS)
    shared = min(of_devices / of_kernels, 1.0) if of_kernels else 1.0
    number = int(rank.max(initial=0)) + 1
    found: dict[int, npt.NDArray[np.float64]] = {}
    for metric in ("delay_ccl", "delay_ccl_longterm"):
        if metric not in profile.metrics:
            continue
        key, value = profile.cells(metric)
        position, location = np.divmod(key, max(profile.locations, 1))
        callpath = profile.tree.preorder[position]
        for one in np.unique(callpath).tolist():
            here = callpath == one
            by_rank = np.bincount(np.maximum(rank[location[here]], 0), value[here], minlength=number)
            found[one] = found.get(one, np.zeros(number)) + shared * by_rank
    return found


def _culprits(costs: npt.NDArray[np.float64]) -> list[int]:
    """Return the fewest ranks that have most of some costs."""
    order = np.argsort(-costs, kind="stable")
    enough = int(np.searchsorted(np.cumsum(costs[order]), _CULPRIT * costs.sum() * (1 - 1e-9))) + 1
    return sorted(order[:enough].tolist())


def _steps(run: Run) -> tuple[int, float]:
    """Return the number of steps, and their mean length; a run without steps is one."""
    table = known_iterations(run.result)
    if table is None or not table.num_rows:
        return 1, run.length
    return table.num_rows, run.length / table.num_rows


def _of_few(
    run: Run,
    place: tuple[int, npt.NDArray[np.float64]],
    ranks: list[int],
    waiting: float,
    steps: tuple[int, float],
) -> Words:
    (callpath, of_ranks), (number, step) = place, steps
    others = [rank for rank in range(of_ranks.size) if rank not in ranks]
    own, other = float(of_ranks[ranks].mean()), float(of_ranks[others].mean()) if others else 0.0
    is_one = len(ranks) == 1
    who = f"rank{'s' * (not is_one)} {joined(Words(str(rank)) for rank in ranks).text}"
    verb = "makes" if is_one else "make"
    which = "GPU" if len(others) == 1 else f"{len(others)} GPUs"
    recurs = _recurs(run, ranks) if number > 1 else 1
    each = waiting / max(len(others), 1) / recurs
    words = FIGURES.say(f"{{who}} {verb} the other {{others}} wait", who=who, others=which).capitalized()
    if 1 < number == recurs:
        words += FIGURES.say(" {each} in each of {steps} steps of {step}: ", each=each, steps=number, step=step)
    elif number > 1:
        words += FIGURES.say(" {each} in {times} of {steps} steps: ", each=each, times=recurs, steps=number)
    else:
        words += FIGURES.say(" {each}: ", each=each)
    longer = (own - other) / recurs
    words += FIGURES.say("{place} takes", place=_place(run, callpath))
    if 2 * longer < each:
        words += " longer there at times."
    elif other > 0 and own >= EQUAL * other:
        words += FIGURES.say(" {longer} longer there, {factor} elsewhere.", longer=longer, factor=own / other)
    else:
        words += FIGURES.say(" {longer} longer there.", longer=longer)
    return words


def _recurs(run: Run, ranks: list[int]) -> int:
    """Return the number of steps in which the devices of others wait for some ranks."""
    table, waits = known_iterations(run.result), focused(run.result).tables.wait_states
    waits = waits.filter(pc.is_in(waits["kind"].cast(pa.string()), pa.array(_OF_MESSAGES + _OF_GROUPS)))
    of_ranks = np.isin(run.result.places.rank[waits["cause_location"].to_numpy()], ranks)
    begin, waiting = (waits[name].to_numpy()[of_ranks] for name in ("enter", "waiting"))
    steps = np.sort(table["begin"].to_numpy()) if table is not None else np.zeros(1)
    step = np.maximum(np.searchsorted(steps, begin, "right") - 1, 0)
    by_step = np.bincount(step, waiting, minlength=steps.size)
    return max(1, int(np.count_nonzero(by_step >= _RECURS * by_step.max(initial=0.0)))) if begin.size else steps.size


def _place(run: Run, callpath: int) -> str:
    place = run.place(callpath)
    return f"its data loader ({place})" if _LOADS.search("/".join(run.result.tree.path(callpath))) else place


def _of_many(run: Run, callpath: int, waiting: float) -> Words:
    return FIGURES.say(
        "{place} takes longer on another rank each time; GPUs wait {waiting} for it.",
        place=run.place(callpath),
        waiting=waiting,
    )


def _times(run: Run, callpath: int) -> npt.NDArray[np.float64]:
    """Return the time in a call path by rank, in the focus."""
    profile = focused(run.result).profile
    times = profile.row("time", int(run.result.tree.position[callpath]))
    rank = run.result.places.rank
    return sum_at(np.maximum(rank, 0), times, int(rank.max(initial=0)) + 1)


def _advice(run: Run, callpath: int) -> str:
    path = "/".join(run.result.tree.path(callpath))
    if _LOADS.search(path):
        return (
            "Use more workers of the data loader, prefetch, and pin memory; see which part of the data this rank reads."
        )
    if callpath in run.kernels:
        return "Compare the shapes of this kernel; if equal, look at clock, temperature and errors of the device."
    if _PAUSES.search(path):
        return "Freeze what lives long (gc.freeze), and collect garbage on all ranks in the same step."
    return "See what the host does there: pin its CPUs, and look for other processes on its node."


def changes(run: Run, finding: Finding) -> Iterator[Change | Price]:
    """Yield making the late ranks as fast as the others, or balancing the call path."""
    ranks = run.result.facts.get("traces", {}).get("ranks", [])
    # Where nothing but devices is recorded, a simulation keeps the steps of the hosts.
    if finding.callpath is None or any(rank["works"] and rank["unlaunched"] == rank["works"] for rank in ranks):
        return
    costs = np.zeros(run.result.profile.locations)
    by_rank = np.asarray(finding.evidence["by_rank"])
    places = run.result.places
    runs = run.changes.by_location("time", finding.callpath) > 0
    costs[runs] = by_rank[np.maximum(places.rank, 0)][runs]
    if (like_others := run.changes.like_others(finding.callpath, costs)) is not None:
        yield like_others
    if (balance := run.changes.balance(finding.callpath)) is not None:
        yield balance
    yield run.changes.faster(finding.callpath, 0.0)
