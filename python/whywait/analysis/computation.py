"""Which call paths compute: time in them belongs to the metric ``comp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whywait.model.profile import Profile

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.model.result import ResultData


def computes(result: ResultData) -> npt.NDArray[np.bool_]:
    """Return for each call path, by number, whether time in it is computation."""
    tree = result.tree
    size = len(tree)
    one_second = pa.table(
        {
            "metric": pa.array(["time"] * size).dictionary_encode(),
            "callpath": np.arange(size, dtype=np.uint32),
            "location": np.zeros(size, np.uint32),
            "value": np.ones(size),
        }
    )
    computation = Profile(tree, 1, one_second, result.tables.stored, np.ones(1, np.bool_)).by_position("comp")
    computes = np.zeros(size, np.bool_)
    computes[tree.preorder] = computation > 0
    return computes
