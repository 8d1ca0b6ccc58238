"""The report that opens in a browser: one file, no network."""

from whywait.report.html.notebook import metric_table
from whywait.report.html.page import write_html

__all__ = ["metric_table", "write_html"]
