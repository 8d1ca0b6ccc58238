"""Scaling models: how a quantity grows with the number of processes.

The performance model normal form of Extra-P with one term,

    f(p) = c0 + c1 * p^i * log2(p)^j,

fitted by least squares for each pair of exponents; cross-validation chooses among them. A. Calotoiu, T. Hoefler,
M. Poke, F. Wolf, "Using automated performance modeling to find scalability bugs in complex codes" (SC13), section 3.
The growing terms are those that Extra-P 4 tries by default; those that shrink are the negative powers, for strong
scaling.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

#: Minimum number of process counts for a model: with fewer, any term fits. Extra-P requires the same.
NEEDED = 5

# Powers of p, by power of log2(p).
_POWERS = {
    0: "1/4 1/3 1/2 2/3 3/4 4/5 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3",
    1: "0 1/4 1/3 1/2 2/3 3/4 1 5/4 4/3 3/2 2 5/2 3",
    2: "0 1/4 1/3 1/2 2/3 3/4 1 3/2 2 5/2",
}
_GROWING = [(Fraction(power), log) for log, powers in _POWERS.items() for power in powers.split()]
_SHRINKING = [(-Fraction(power), 0) for power in _POWERS[0].split()]
#: The exponents (i, j) of each term.
TERMS: list[tuple[Fraction, int]] = _GROWING + _SHRINKING
# Smaller shares of the largest value make a term insignificant.
_LEAST = 0.0005
# A term must reduce the error of the constant to this share: by chance alone, half of all terms reduce it.
_BETTER = 0.5
# Rounding may leave a constant that is a little less than zero.
_ROUNDING = 1e-9
_PIECE = 4096


class Model(NamedTuple):
    """A scaling model: ``constant + coefficient * p^power * log2(p)^log_power``.

    Attributes
    ----------
    constant, coefficient
        In the unit of the quantity. Without growth the coefficient is 0.
    power, log_power
        The exponents of the term; 0 and 0 without growth.
    error
        How far the model is off in the mean at a number of processes that it was not fitted to: the symmetric mean
        absolute percentage error (SMAPE) of leave-one-out cross-validation, 0 is best, 2 is worst.
    r2
        The coefficient of determination, adjusted; None for a constant.
    """

    constant: float
    coefficient: float
    power: Fraction
    log_power: int
    error: float
    r2: float | None

    def __call__(self, processes: float) -> float:
        """Return the prediction for a number of processes."""
        if not self.coefficient:
            return self.constant
        return self.constant + self.coefficient * float(
            _term(np.array([float(processes)]), self.power, self.log_power)[0]
        )

    @property
    def growth(self) -> str:
        """The term alone: ``p^(3/2) * log2(p)``; ``1`` without growth."""
        power = "" if not self.power else "p" if self.power == 1 else f"p^{_exponent(self.power)}"
        log = "" if not self.log_power else "log2(p)" if self.log_power == 1 else f"log2(p)^{self.log_power}"
        return " * ".join(filter(None, (power, log))) or "1"

    def __str__(self) -> str:
        if not self.coefficient:
            return f"{self.constant:.3g}"
        constant = f"{self.constant:.3g} + " if self.constant else ""
        return f"{constant}{self.coefficient:.3g} * {self.growth}"


def _exponent(power: Fraction) -> str:
    return str(power) if power.denominator == 1 and power > 0 else f"({power})"


def _term(processes: npt.NDArray[np.float64], power: Fraction, log: int) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = processes ** float(power) * np.log2(processes) ** log
    return values


def fit(processes: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> list[Model] | None:
    """Fit a model to each quantity.

    Parameters
    ----------
    processes
        The number of processes of each run, at least 1; runs with the same number are averaged.
    values
        One row per quantity, one column per run; nonnegative.

    Returns
    -------
    list of Model or None
        A model for each row; None where there are fewer than `NEEDED` different numbers of processes.

    Notes
    -----
    Only models that do not become negative with more processes are considered: a term that grows has a positive
    coefficient, and one that shrinks leaves a constant of at least zero. The constant model stands unless a term at
    least halves its error; Extra-P, which otherwise finds the same models, takes any term that is better.
    """
    points, group = np.unique(processes, return_inverse=True)
    if points.size < NEEDED:
        return None
    runs = np.bincount(group)
    means = np.zeros((len(values), points.size))
    np.add.at(means.T, group, values.T)
    means /= runs
    found: list[Model] = []
    for start in range(0, len(means), _PIECE):
        found.extend(_fit(points.astype(np.float64), means[start : start + _PIECE]))
    return found


class _Fits(NamedTuple):
    """Fits of one term to many quantities: coefficients, residuals of the fit, and of the points left out of it."""

    constant: npt.NDArray[np.float64]
    coefficient: npt.NDArray[np.float64]
    residual: npt.NDArray[np.float64]
    left_out: npt.NDArray[np.float64]


def _fit(points: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> list[Model]:
    count = points.size
    mean = values.mean(axis=1)
    residual = values - mean[:, None]
    best = _error(values, residual * count / (count - 1))
    models = [Model(float(c), 0.0, Fraction(0), 0, float(e), None) for c, e in zip(mean, best, strict=True)]
    best *= _BETTER
    spread = (residual**2).sum(axis=1)
    most = values.max(axis=1)
    for power, log in TERMS:
        term = _term(points, power, log)
        fits = [_with_constant(term, values)]
        if power < 0:
            fits.append(_through_zero(term, values))
        for found in fits:
            error = _error(values, found.left_out)
            constant = np.where(np.abs(found.constant) <= _ROUNDING * most, 0.0, found.constant)
            shrinks = (constant >= 0) & (constant + found.coefficient * term[0] >= 0)
            allowed = shrinks if power < 0 else found.coefficient > 0
            matters = np.abs(found.coefficient) * term.max() >= _LEAST * most
            with np.errstate(divide="ignore", invalid="ignore"):
                r2 = 1 - (found.residual**2).sum(axis=1) / spread * (count - 1) / (count - 2)
            for row in np.flatnonzero(allowed & matters & (error < best)).tolist():
                best[row] = error[row]
                numbers = (float(column[row]) for column in (constant, found.coefficient, error, r2))
                first, second, percentage_error, fitted = numbers
                models[row] = Model(first, second, power, log, percentage_error, fitted)
    return models


def _with_constant(term: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> _Fits:
    centered = term - term.mean()
    square = float(centered @ centered)
    coefficient = values @ centered / square
    constant = values.mean(axis=1) - coefficient * term.mean()
    residual = values - constant[:, None] - coefficient[:, None] * term
    # A point that is left out of a linear fit is missed by its residual over one minus its leverage.
    return _Fits(constant, coefficient, residual, _prediction_errors(residual, 1 / term.size + centered**2 / square))


def _through_zero(term: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> _Fits:
    square = float(term @ term)
    coefficient = values @ term / square
    residual = values - coefficient[:, None] * term
    return _Fits(np.zeros(len(values)), coefficient, residual, _prediction_errors(residual, term**2 / square))


def _prediction_errors(residual: npt.NDArray[np.float64], leverage: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return residual / np.maximum(1 - leverage, 1e-12)


def _error(values: npt.NDArray[np.float64], prediction_errors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the symmetric mean absolute percentage error of predictions."""
    size = np.abs(values) + np.abs(values - prediction_errors)
    share = np.divide(2 * np.abs(prediction_errors), size, out=np.zeros_like(size), where=size > 0)
    error: npt.NDArray[np.float64] = share.mean(axis=1)
    return error
