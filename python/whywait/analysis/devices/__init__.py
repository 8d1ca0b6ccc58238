"""Devices: what they did, why they were idle, and who made them wait."""
