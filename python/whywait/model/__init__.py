"""The data of a result: metrics, call tree, severities and tables, and values derived from these alone."""
