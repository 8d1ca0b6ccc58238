"""How far a predicted run may be from a recording of the changed program: an estimate from what the runs show.

*Noise.* A recording of the changed program has noise of its own, and the prediction has that of the measured run. The
variance of a run of n iterations is n times that of an iteration, if iterations are independent of each other. But an
iteration that ends late often makes the next one shorter, so the variance is taken from sums of two successive
iterations, of which there are n/2. (This is the estimator of Newey and West, 1987, with one lag.) An iteration counts
with its part of the critical path, as these parts add up to the length of the run. What repeats every k iterations is
no noise: if the means of every k-th iteration explain nearly all of the variance, what they leave counts.

*Assumptions.* The simulation knows how much time is spent in the calls about which it makes assumptions. The estimate
takes the mean over the locations, as if all of this time were wrong.

*Shared cores.* Where ranks share cores, a call can take longer because another rank runs. Whether it does so again
after a change is not known, so the estimate takes what calls take beyond the fastest of their kind, as if all of it
were wrong.

*Sampling.* Samples say how much of the time between two calls a function has, and how far they may be off by chance.

What none of them shows is not part of the estimate: start-up and shutdown, differences between two runs as a whole, and
what the simulation does not model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whywait.analysis.account import account
from whywait.analysis.findings.few_cores import shared_cores
from whywait.analysis.iterations import known_iterations, whole

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from whywait.model.result import ResultData

#: How many standard deviations of what is random the estimate has: with three, it holds for nine of ten recorded runs.
_DEVIATIONS = 3
# Fewer sums of two iterations say nothing about their variance, fewer periods nothing about what repeats.
_FEWEST = 3
# What repeats explains at least this share of the variance, with no more iterations than these.
_EXPLAINED, _LONGEST_PERIOD = 0.7, 32


class ErrorEstimate(NamedTuple):
    """An estimate of the error of a predicted run length; times in seconds.

    Attributes
    ----------
    noise
        Three standard deviations of the noise of the two runs; None if there are too few iterations to tell.
    assumptions
        The mean time per location in calls that the assumptions are about.
    cores
        What calls take beyond the fastest 5% of their kind, as the mean per location, if the recording says that ranks
        share cores.
    sampling
        Three standard deviations of what changed functions had on the critical path, by samples.
    iterations
        The number of iterations that the noise is taken from.
    untimed
        Names of the assumptions whose time is unknown; they are not part of the estimate.
    """

    noise: float | None
    assumptions: float
    cores: float
    sampling: float
    iterations: int
    untimed: list[str]

    @property
    def total(self) -> float | None:
        """The sum of all parts, or None if the noise is unknown."""
        return None if self.noise is None else self.noise + self.assumptions + self.cores + self.sampling


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
        _cores(measured),
        _DEVIATIONS * deviation,
        count,
        [row["assumption"] for row in rows if row["time"] is None],
    )


def _noise(result: ResultData) -> tuple[float | None, int]:
    """Return the standard deviation of the run length, seconds, and the number of iterations that it is taken from."""
    table = known_iterations(result) if result.has_causes else None
    if table is None:
        return None, 0
    own = whole(table["critical_path"].to_numpy())
    off = _unexplained(own)
    sums = off[1:] + off[:-1]
    if len(sums) < _FEWEST:
        return None, 0
    return float(math.sqrt(len(own) / 2) * np.std(sums, ddof=1)), len(own)


def _unexplained(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return what is left of values if those that repeat with the best period are taken away; all if none is good."""
    best = _EXPLAINED
    left: npt.NDArray[np.float64] = values - values.mean()
    variance = float(values.var(ddof=1)) if values.size > 1 else 0.0
    for period in range(2, min(_LONGEST_PERIOD, values.size // _FEWEST) + 1):
        phase = np.arange(values.size) % period
        rest = values - (np.bincount(phase, values) / np.bincount(phase))[phase]
        # What as many means explain by chance does not count.
        explained = 1 - float((rest**2).sum()) / (values.size - period) / variance if variance > 0 else 0.0
        if explained > best:
            best, left = explained, rest
    return left


def _cores(result: ResultData) -> float:
    """Return the mean time by which the calls of a location exceed what they need, seconds, if ranks share cores."""
    if not shared_cores(result.facts):
        return 0.0
    times = account(result).times
    return sum(time for name, time in times.items() if name.endswith(".excess")) / max(1, len(result.places))
