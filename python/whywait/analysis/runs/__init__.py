"""Several runs: how they differ, scale, and keep limits."""
