"""Rows of the account of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Run


def lines_of(run: Run, *names: str) -> list[dict[str, Any]]:
    """Return the lines of the account of devices whose rows begin with one of some names."""
    return [line for line in run.device_lines if line["row"].startswith(names)]


def in_rows(run: Run, *names: str) -> float:
    """Return the time of devices in rows that begin with one of some names, in the focus."""
    return float(sum(line["time"] for line in lines_of(run, *names)))
