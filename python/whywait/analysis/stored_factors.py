"""Selection of the waits whose factors are stored: all, or the longest and the earlier waits that cause them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from whywait.model.dataset import Dataset

Factors = Literal["longest", "all"]

# Number of longest waits per kind; maximum length of chains to earlier waits, and maximum number of waits in total.
_LONGEST = 1000
_DEPTH = 8
_MOST = 50_000


def stored_factors(dataset: Dataset, which: Factors) -> tuple[pa.Table, pa.Table]:
    """Return the intervals and the factors to write with a result.

    Parameters
    ----------
    dataset
        The dataset with the waits.
    which
        ``"all"``, or ``"longest"`` for the longest of each kind and the chains of up to eight earlier waits that cause
        them, up to a maximum number.

    Returns
    -------
    tuple of pyarrow.Table
        As of `whywait.model.dataset.Dataset.factors`, in the order of the waits.

    Raises
    ------
    whywait.UsageError
        If the dataset has no factors.
    """
    # A stored dataset has the factors that were stored.
    if which == "all" or dataset.analysis is None:
        return dataset.factors(None)
    rows = np.array(dataset.analysis.longest_waits(_LONGEST), np.int64)
    known = np.zeros(dataset.wait_states.num_rows, np.bool_)
    pieces: list[tuple[pa.Table, pa.Table]] = [dataset.factors([])]
    for _ in range(_DEPTH):
        if not rows.size or np.count_nonzero(known) + rows.size > _MOST:
            break
        known[rows] = True
        pieces.append(dataset.factors(rows.tolist()))
        earlier = np.unique(pieces[-1][1]["earlier"].drop_null().to_numpy())
        rows = earlier[~known[earlier]]
    intervals, factors = (pa.concat_tables(parts).unify_dictionaries() for parts in zip(*pieces, strict=True))
    # The factors of a wait keep their order.
    order = np.argsort(factors["wait"].to_numpy(), kind="stable")
    return intervals.sort_by("wait"), factors.take(pa.array(order))
