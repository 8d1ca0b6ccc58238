"""Call stacks in the file format of speedscope (https://www.speedscope.app)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.report.stacks import stacks

if TYPE_CHECKING:
    from whywait.model.result import ResultData
    from whywait.report.stacks import Frame

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_PROFILES = {"time": "Time", "critical": "Critical path", "cost": "Waiting that it causes"}


def speedscope(result: ResultData) -> dict[str, Any]:
    """Return the stacks of all locations as one file with a profile for time, critical path, and costs."""
    frames: dict[Frame, int] = {}
    of_stacks: dict[tuple[int, ...], dict[str, float]] = {}
    for stack, _, values in stacks(result):
        numbers = tuple(frames.setdefault(frame, len(frames)) for frame in stack)
        sums = of_stacks.setdefault(numbers, dict.fromkeys(_PROFILES, 0.0))
        for name in _PROFILES:
            sums[name] += getattr(values, name)
    profiles = []
    for name, title in _PROFILES.items():
        # The format knows no negative weights: functions in which a late rank spends less time have no cost here.
        chosen = [(numbers, sums[name]) for numbers, sums in of_stacks.items() if sums[name] > 0]
        if chosen:
            profiles.append(
                {
                    "type": "sampled",
                    "name": title,
                    "unit": "seconds",
                    "startValue": 0,
                    "endValue": sum(weight for _, weight in chosen),
                    "samples": [list(numbers) for numbers, _ in chosen],
                    "weights": [weight for _, weight in chosen],
                }
            )
    return {
        "$schema": _SCHEMA,
        "name": result.tables.trace.name,
        "exporter": f"whywait {_native.__version__}",
        "shared": {
            "frames": [
                {"name": frame.name}
                | ({"file": frame.file} if frame.file else {})
                | ({"line": frame.line} if frame.line else {})
                for frame in frames
            ]
        },
        "profiles": profiles,
    }
