"""Functions between events, by samples of the call path."""
