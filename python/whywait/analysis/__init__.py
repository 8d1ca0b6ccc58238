"""Answers: what is drawn from the data of one result or of several."""
