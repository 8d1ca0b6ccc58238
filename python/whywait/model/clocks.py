"""Names of what concerns the clocks of a run."""

#: The options of `whywait.analyze` that decide how clocks are corrected.
CLOCK_OPTIONS = ("clocks", "clock_domain", "min_latency")
#: The tables about clocks.
CLOCK_TABLES = ("clock_violations", "clock_course", "clock_processes", "clock_domains", "clock_pairs", "clock_moves")
