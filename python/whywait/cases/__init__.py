"""Published experiments, repeated and compared with their published figures.

>>> from whywait import cases
>>> case = cases.named("lock").scaled(processes=4)
>>> report = cases.run(case)
>>> [row["name"] for row in report["rows"]][:2]
['Lock Contention, process 1', 'Lock Contention and Wait for Progress, process 2']
>>> [f"{value:.1f}" for value in report["rows"][0]["here"]]
['2.0']
"""

from __future__ import annotations

from whywait.cases.case import Case, Row, Variant
from whywait.cases.published import CASES, named
from whywait.cases.rerun import run

__all__ = ["CASES", "Case", "Row", "Variant", "named", "run"]
