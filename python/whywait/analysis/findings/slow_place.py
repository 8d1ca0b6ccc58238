"""One rank or node is slower than all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.findings.groups import is_one, who
from whywait.analysis.findings.words import Figures, Words
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "slow_place"
TITLE = "A slow rank or node"
DOCUMENT = """\
One rank, or the ranks of one node, have at least half of the excess of library calls with at most a quarter of the
calls; or the fastest 5% of most of its calls, and of most of its functions, take at least 1.2 times as long as those of
any other rank. Look at this node: its clock rate, other processes, cooling, its link. The loss is the excess of the
calls at this place, the runtime of its threads, and the waiting that its calls pass on.
"""
FIGURES = Figures(
    who=("name", "the rank, or the ranks of the node"),
    factor=("times", "what the fastest 5% of `region` take there, as a multiple of the slowest place elsewhere"),
    region=("name", "the call or function with most of the time among those that are slower there"),
    rank_share=("share", "the part of what all library calls take beyond the fastest 5% that the rank has"),
    calls_share=("share", "the part of the library calls in the focus that it makes"),
    lost=("s", "the loss at this place"),
)

_SHARE, _CALLS, _RANKS = 0.5, 0.25, 4


def detect(run: Run) -> Found:
    """Yield the excess of the calls at a slow place."""
    if run.ranks < _RANKS:
        return
    advice = "Look at the node of {who}:"
    if (found := _slower(run)) is None:
        advice, found = "See what {who} waits for in these calls, and look at its node:", _most_excess(run)
    if found is None:
        return
    where, sentence, evidence = found
    loss = _take(run, where)
    if loss <= 0:
        return
    ranks = np.unique(run.result.places.rank[where]).tolist()
    yield run.finding(
        NAME,
        sentence + FIGURES.say(" Calls there lose {lost}.", lost=loss),
        FIGURES.say(f"{advice} its clock rate, its link, and other processes on it.", who=who(run, where)),
        loss,
        ranks=ranks,
        evidence=evidence,
    )


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind."""
    yield run.changes.trim()


_Place = tuple["npt.NDArray[np.int64]", Words, "dict[str, object]"]


def _slower(run: Run) -> _Place | None:
    """Return the place at which several calls and functions are slower."""
    for place in run.reasons("slow_places"):
        where = np.array(place["locations"])
        if _has_more_work(run, where, place["region"]):
            continue
        named = who(run, where)
        start = "the node of {who} is" if place["is_node"] else f"{{who}} {'is' if is_one(named) else 'are'}"
        sentence = FIGURES.say(
            f"{start} slow: even the fastest 5% of {{region}} take {{factor}} those of any other, and so do most other "
            "calls and functions there.",
            who=named,
            factor=place["factor"],
            region=place["region"],
        )
        return where, sentence.capitalized(), place
    return None


def _has_more_work(run: Run, where: npt.NDArray[np.int64], region: str) -> bool:
    """Return whether others wait for a place because of what it does in a function, as another finding says."""
    ranks = set(run.result.places.rank[where].tolist())
    return any(
        bearer.kind == "own" and run.region(bearer.callpath).name == region and ranks >= set(run.culprits(bearer.costs))
        for key, bearer in run.losses.bearers.items()
        if key not in run.rest
    )


def _most_excess(run: Run) -> _Place | None:
    """Return the rank that has most of the excess with few of the calls."""
    cells = run.losses.account.cells
    rows = pc.starts_with(cells["row"].cast("string"), "transfer.")
    cells = cells.filter(pc.or_(rows, pc.starts_with(cells["row"].cast("string"), "library.")))
    location = cells["location"].to_numpy()
    size = run.result.profile.locations
    # Of a call with an excess, both parts count.
    number = np.where(pc.ends_with(cells["row"].cast("string"), ".needed"), cells["calls"], 0)
    excess, calls = (sum_at(location, values, size) for values in (cells["excess"].to_numpy(), number))
    rank = np.maximum(run.result.places.rank, 0)
    by_rank, of_ranks = (np.bincount(rank, values) for values in (excess, calls))
    most = int(by_rank.argmax())
    share, of_calls = (float(values[most] / max(values.sum(), 1e-300)) for values in (by_rank, of_ranks))
    if share < _SHARE or of_calls > _CALLS:
        return None
    sentence = FIGURES.say(
        "{who} has {rank_share} of all time that library calls take beyond the fastest 5% of their kind, with "
        "{calls_share} of the calls.",
        who=f"rank {most}",
        rank_share=share,
        calls_share=of_calls,
    )
    where = np.flatnonzero((rank == most) & run.result.places.works)
    return where, sentence.capitalized(), {"share": share, "calls": of_calls}


def _take(run: Run, where: npt.NDArray[np.int64]) -> float:
    """Take what slow calls lose at some locations as explained, and return it."""
    cells = run.losses.account.cells
    row = cells["row"].cast("string")
    slow = pc.or_(pc.ends_with(row, ".excess"), pc.starts_with(row, "threads."))
    here = cells.filter(pc.and_(slow, pc.is_in(cells["location"].cast("int64"), pa.array(where, pa.int64()))))
    loss = 0.0
    bearers = {(bearer.callpath, bearer.kind == "threads"): bearer for bearer in run.slow()}
    for name, callpath, time in zip(
        here["row"].cast("string").to_pylist(), here["callpath"].to_pylist(), here["time"].to_pylist(), strict=True
    ):
        if (bearer := bearers.get((callpath, name.startswith("threads.")))) is not None:
            loss += bearer.take(name, time)
    return loss + sum(bearer.take_waiting(where) for bearer in bearers.values())
