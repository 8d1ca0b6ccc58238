"""A badge: the parallel efficiency of a run as a small SVG image for a README or a dashboard."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whywait.analysis.runs.series import SeriesData

_LABEL = "parallel efficiency"
# POP regards 80% as acceptable. White text is readable on every one of these colors.
_COLORS = ((0.8, "#2e7d32"), (0.6, "#a15c00"), (0.0, "#b3261e"))
_UNKNOWN = "#5c636b"
# Mean width of a character at a font size of 11 pixels.
_LETTER = 6.6
_TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{title}">
<title>{title}</title>
<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#444"/>\
<rect x="{left}" width="{right}" height="20" fill="{color}"/></g>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\
<text x="{label_at}" y="14">{label}</text><text x="{value_at}" y="14">{value}</text></g>
</svg>
"""


def badge(series: SeriesData) -> str:
    """Return a badge with the parallel efficiency of the last run of a series, as SVG."""
    value = series.efficiencies()[-1]["parallel_efficiency"].value
    text = "unknown" if value is None else f"{value:.0%}"
    color = _UNKNOWN if value is None else next(color for least, color in _COLORS if value >= least)
    left, right = (round(_LETTER * len(part) + 12) for part in (_LABEL, text))
    return _TEMPLATE.format(
        width=left + right, left=left, right=right, color=color, label=_LABEL, value=escape(text),
        title=f"{_LABEL}: {escape(text)}", label_at=left / 2, value_at=left + right / 2,
    )  # fmt: skip
