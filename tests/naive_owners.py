"""In which order processes owned a lock: of few epochs, all orders are tried (specification.md#ownership-of-locks)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.naive_rma import LockEpoch

FEW = 6


def first_order(epochs: list[LockEpoch], proofs: dict[LockEpoch, int], few: int = FEW) -> tuple[list[LockEpoch], bool]:
    """Return the first order by releases that no proof contradicts, and whether there is none.

    Of few epochs, all orders are tried.
    """

    def precedes(a: LockEpoch, b: LockEpoch) -> bool:
        """Return whether b cannot have owned the lock before a: a did before b began to release it."""
        return a is not b and not (a.shared and b.shared) and proofs[a] < b.release.enter

    by_release = sorted(epochs, key=lambda e: e.order)
    if len(epochs) <= few:
        for order in itertools.permutations(by_release):
            if not any(precedes(b, a) for a, b in itertools.combinations(order, 2)):
                return list(order), False
    order, rest, contradicts = [], list(by_release), False
    while rest:
        free = [b for b in rest if not any(precedes(a, b) for a in rest)]
        contradicts |= not free
        order.append((free or rest)[0])
        rest.remove(order[-1])
    return order, contradicts


def holders(before: list[LockEpoch], waiter: LockEpoch) -> list[LockEpoch]:
    """Return whose releases an epoch needed, by release: of all that shared the lock since the last exclusive epoch."""
    exclusive = [i for i, e in enumerate(before) if not e.shared]
    sharing = before[exclusive[-1] + 1 :] if exclusive else before
    if waiter.shared or not sharing:
        return [before[exclusive[-1]]] if exclusive else []
    return sorted(sharing, key=lambda e: e.release.leave)
