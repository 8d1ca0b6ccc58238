"""Changes worth trying: which, and what they save by simulation."""
