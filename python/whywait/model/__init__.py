"""What an analysis found, as data: metrics, call tree, severities, tables, and what follows from these alone."""
