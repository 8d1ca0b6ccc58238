"""The evidence: how fast the analysis is, how good its predictions are, and what others have published."""
