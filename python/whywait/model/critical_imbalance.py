"""Critical-path imbalance: by how much the critical path exceeds what a balanced run would spend at a place.

*Source*: thesis, definition 23; specification.md#critical-path-imbalance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def critical_imbalance(
    path: npt.NDArray[np.float64], work: npt.NDArray[np.float64], workers: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Compute the imbalance of call paths on the critical path (thesis, definition 23).

    Parameters
    ----------
    path
        Inclusive time of each call path on the critical path.
    work
        Its inclusive time in the whole run, without time that a perfectly balanced run would not have.
    workers
        Number of locations that execute each call path: threads, or streams of devices.

    Returns
    -------
    numpy.ndarray
        The excess of `path` over the average `work` per worker, as a share of `path`; 0 if there is none.
    """
    excess = path - work / np.maximum(1, workers)
    return np.divide(excess, path, out=np.zeros_like(path), where=(path > 0) & (excess > 0))
