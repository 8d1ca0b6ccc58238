"""The shade of each part of the time within the color of its family.

What a part is decides its shade, not how large it is: the same part looks the same in all reports.
"""

from __future__ import annotations

from whywait.analysis.account import rows
from whywait.model.metrics import metric_tree
from whywait.model.schema import patterns

#: The shade of parts that are shown together, and of what has no other.
OTHERS = 4
# Wait states by cost class: point to point; operations with data; barriers; one-sided; all others have the last.
_CLASSES = (
    ("latesender", "latereceiver"),
    ("n2n", "12n", "n21", "tree"),
    ("barrier", "ompbarrier", "pthreadbarrier"),
    ("rma_create", "rma_free", "rma_late_post", "rma_early_wait", "rma_fence", "lock", "rma_progress"),
)
_WAITS = {name: shade for shade, names in enumerate(_CLASSES) for name in names}
# Neighbors of the first shade can bear no letters.
_COMPUTATION = {"computation.critical": 0, "computation.other": 2}


def of_row(name: str) -> int:
    """Return the shade of a row of the account, 0 to 4."""
    if name.startswith("wait."):
        return of_wait(name.removeprefix("wait."))
    if name in _COMPUTATION:
        return _COMPUTATION[name]
    group = [row.name for row in rows().values() if row.group == rows()[name].group]
    return min(OTHERS, group.index(name))


def of_wait(kind: str) -> int:
    """Return the shade of a wait state, 0 to 4."""
    return _WAITS.get(patterns()[kind].cost_class or "", OTHERS) if kind in patterns() else OTHERS


def of_metric(name: str) -> int:
    """Return the shade of a branch of the metric tree, 0 to 4."""
    siblings = [metric.name for metric in metric_tree().children(metric_tree()[name].parent)]
    return min(OTHERS, siblings.index(name))
