"""The reports that open in a browser: each one file, no network."""

from whywait.report.html.comparison import write_comparison
from whywait.report.html.notebook import metric_table, run_table
from whywait.report.html.page import write_html

__all__ = ["metric_table", "run_table", "write_comparison", "write_html"]
