"""Efficiencies of processes, threads, and devices."""
