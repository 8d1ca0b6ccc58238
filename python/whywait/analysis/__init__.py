"""Analyses of the data of one or several results."""
