"""Plot what `whywait bench run` has measured: `python benches/plot.py bench.json docs/scale.svg`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from whywait.bench import speed

COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8e5ea2", "#b8860b", "#444444", "#008b8b", "#a05195")


def svg(report: dict[str, Any]) -> str:
    """Return a plot of the time per event over the number of processes; dashed lines keep the number of events."""
    curves: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for point in report["points"]:
        curves.setdefault((point["workload"], point["series"]), []).append((point["ranks"], speed.nanoseconds(point)))
    ranks = sorted({rank for curve in curves.values() for rank, _ in curve})
    most = max(value for curve in curves.values() for _, value in curve)
    step = 10 ** math.floor(math.log10(most))
    step = next(size for size in (step / 5, step / 2, step, step * 2) if most / size <= 8)
    top = step * math.ceil(most / step)
    width, height, left, base, roof = 640, 360, 60, 320, 20
    span = math.log2(ranks[-1] / ranks[0]) or 1

    def place(rank: int, value: float) -> tuple[float, float]:
        return left + 40 + 380 * math.log2(rank / ranks[0]) / span, base - (base - roof) * value / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="12">processor time an event, ns ({speed.conditions(report)})</text>',
        f'<text x="{left + 230}" y="{height - 5}" text-anchor="middle">processes</text>',
    ]
    for number in range(round(top / step) + 1):
        _, y = place(ranks[0], number * step)
        parts.append(f'<path d="M{left} {y:.1f}H{left + 430}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 5}" y="{y + 4:.1f}" text-anchor="end">{number * step:,g}</text>')
    free = float(width)
    for rank in reversed(ranks):
        x, _ = place(rank, 0)
        if x <= free:
            parts.append(f'<text x="{x:.1f}" y="{base + 15}" text-anchor="middle">{rank:,}</text>')
            free = x - 45
    workloads = list(dict.fromkeys(workload for workload, _ in curves))
    for (workload, series), curve in curves.items():
        color = COLORS[workloads.index(workload) % len(COLORS)]
        dash = "" if series == "per-rank" else ' stroke-dasharray="5 4"'
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in (place(*p) for p in curve)]
    for number, workload in enumerate(workloads):
        y = roof + 16 * (number + 1)
        parts.append(f'<text x="{left + 445}" y="{y}" fill="{COLORS[number % len(COLORS)]}">{workload}</text>')
    for number, (dash, text) in enumerate(
        ((' stroke-dasharray="5 4"', speed.SERIES["total"]), ("", speed.SERIES["per-rank"]))
    ):
        y = base - 10 - 28 * number
        parts.append(f'<path d="M{left + 445} {y - 14}h30" stroke="#444"{dash}/>')
        parts.append(f'<text x="{left + 445}" y="{y}" font-size="8">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    _report, _picture = map(Path, sys.argv[1:])
    _picture.write_text(svg(speed.read(_report)))
