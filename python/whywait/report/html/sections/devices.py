"""What the devices did, and why they were idle; kernels and copies only while the events are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.analysis.devices.kernels import Devices
from whywait.analysis.devices.use import device_efficiencies, idle_times
from whywait.report.html import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.report.html.sections import Report

# Longer lists are cut; the largest come first.
_MOST = 50
_LISTS = ("kernels", "copies", "synchronizations", "starving", "lost", "unlaunched")
_NUMBERS = ("name", "ranks", "kernels", "copies", "busy", "account", "streams_overlap", "copies_overlap",
            "starved", "mpi_starved", "latency", "queued", "stream_wait")  # fmt: skip


def data(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the account of each device, what ran on it, and the efficiencies."""
    result = report.result
    accounts = idle_times(result)
    if not accounts:
        return
    found: dict[str, Any] = {"efficiencies": device_efficiencies(result)}
    found["rows"] = [[name, label] for name, label, _ in _native.device_rows()]
    found["devices"] = [{"name": name, "account": account} for name, account in accounts.items()]
    if result.tables.analysis is not None:
        summary = Devices(result).summary()
        found["devices"] = [{name: device[name] for name in _NUMBERS} for device in summary["devices"]]
        found |= {name: summary[name][:_MOST] for name in _LISTS}
        found |= {f"{name}_count": len(summary[name]) for name in _LISTS}
        found["clock_violations"] = summary["clock_violations"]
    yield "devices", blocks.document(found)
