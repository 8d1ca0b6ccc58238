"""Reports for the browser: one file each, no network access."""

from whywait.report.html.compare import write_comparison
from whywait.report.html.notebook import metric_table, run_table
from whywait.report.html.page import write_html

__all__ = ["metric_table", "run_table", "write_comparison", "write_html"]
