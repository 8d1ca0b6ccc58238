"""Who waits for another one of the tree that an N-to-1 operation is made of, for tests/naive.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def in_tree(root: Any, parts: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield who leaves right after another one comes, and that one (wait-in-tree.md)."""
    for p in parts:
        come = [q for q in parts if p.begin < q.begin < p.end]
        if p is not root and come:
            last = max(come, key=lambda q: (q.begin, -q.rank))
            if 5 * len(come) * (p.end - last.begin) <= p.end - p.begin:
                yield p, last
