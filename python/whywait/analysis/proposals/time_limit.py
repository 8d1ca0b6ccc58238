"""A limit of the time that work in steps may take."""

from __future__ import annotations

from time import monotonic


class Clock:
    """Says whether there is time for another step, which may take as long as the longest so far.

    Parameters
    ----------
    seconds
        How long all steps may take; None for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._begin = self._step = monotonic()
        self._longest = 0.0

    @property
    def left(self) -> float | None:
        """The time that is left, in seconds, at least 0; None without a limit."""
        return None if self._seconds is None else max(self._seconds - (monotonic() - self._begin), 0.0)

    def has_time(self) -> bool:
        """Return whether there is time for the step that begins now."""
        now = monotonic()
        self._longest, self._step = max(self._longest, now - self._step), now
        return self._seconds is None or now - self._begin + self._longest <= self._seconds
