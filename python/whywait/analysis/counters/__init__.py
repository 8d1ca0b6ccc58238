"""Counters of a trace, and queues by replay beside them."""
