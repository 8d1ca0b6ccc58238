"""Output for people and other tools: the summary, Cube files, tables and HTML reports."""
