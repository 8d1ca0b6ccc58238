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
        Time of each call path on the critical path, with all below it.
    work
        Its time in all of the run, likewise, without what a perfectly balanced run would not have.
    workers
        Locations that do the work of each: threads, or streams of devices.

    Returns
    -------
    numpy.ndarray
        The share of the first that exceeds the average of the second; 0 where it does not.
    """
    excess = path - work / np.maximum(1, workers)
    return np.divide(excess, path, out=np.zeros_like(path), where=(path > 0) & (excess > 0))
