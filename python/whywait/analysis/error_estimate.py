"""How far a predicted run may be from a recording of the changed program: an estimate from what the runs show.

*Noise.* A recording of the changed program has noise of its own, and the prediction has that of the measured run. The
variance of a run of n iterations is n times that of an iteration, if iterations are independent of each other. But an
iteration that ends late often makes the next one shorter, so the variance is taken from sums of two successive
iterations, of which there are n/2. (This is the estimator of Newey and West, 1987, with one lag.) An iteration counts
with its part of the critical path, as these parts add up to the length of the run.

*Assumptions.* The simulation knows how much time is spent in the calls about which it makes assumptions. The estimate
takes the mean over the locations, as if all of this time were wrong.

*Sampling.* Samples say how much of the time between two calls a function has, and how far they may be off by chance.

What none of them shows is not part of the estimate: start-up and shutdown, differences between two runs as a whole, and
what the simulation does not model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait.analysis.iterations import known_iterations

if TYPE_CHECKING:
    import pyarrow as pa

    from whywait.model.result import ResultData

#: How many standard deviations of what is random the estimate has: with three, it holds for nine of ten recorded runs.
_DEVIATIONS = 3
# Fewer sums of two iterations say nothing about their variance.
_FEWEST = 3


class ErrorEstimate(NamedTuple):
    """An estimate of the error of a predicted run length; times in seconds.

    Attributes
    ----------
    noise
        Three standard deviations of the noise of the two runs; None if there are too few iterations to tell.
    assumptions
        The mean time per location in calls that the assumptions are about.
    sampling
        Three standard deviations of what changed functions had on the critical path, by samples.
    iterations
        The number of iterations that the noise is taken from.
    untimed
        Names of the assumptions whose time is unknown; they are not part of the estimate.
    """

    noise: float | None
    assumptions: float
    sampling: float
    iterations: int
    untimed: list[str]

    @property
    def total(self) -> float | None:
        """The sum of all parts, or None if the noise is unknown."""
        return None if self.noise is None else self.noise + self.assumptions + self.sampling


def error_estimate(
    measured: ResultData, simulated: ResultData, assumptions: pa.Table, deviation: float
) -> ErrorEstimate:
    """Estimate how far a predicted run is from a recording of the changed program.

    Parameters
    ----------
    measured
        The run that was changed, with causes.
    simulated
        The changed run, with causes.
    assumptions
        As in `whywait.Simulation.assumptions`.
    deviation
        The standard deviation that samples leave of what the changes save, seconds.
    """
    # How noisy the changed program is shows in neither run; at most as noisy as the noisier one.
    noise, count = max((_noise(result) for result in (measured, simulated)), key=lambda found: found[0] or 0.0)
    rows = assumptions.to_pylist()
    return ErrorEstimate(
        None if noise is None else _DEVIATIONS * math.sqrt(2) * noise,
        sum(row["time"] or 0.0 for row in rows) / max(1, len(measured.places)),
        _DEVIATIONS * deviation,
        count,
        [row["assumption"] for row in rows if row["time"] is None],
    )


def _noise(result: ResultData) -> tuple[float | None, int]:
    """Return the standard deviation of the run length, seconds, and the number of iterations that it is taken from."""
    table = known_iterations(result) if result.has_causes else None
    if table is None:
        return None, 0
    own = table["critical_path"].to_numpy()
    sums = own[1:] + own[:-1]
    if len(sums) < _FEWEST:
        return None, 0
    return float(math.sqrt(len(own) / 2) * np.std(sums, ddof=1)), len(own)
