"""What `whywait.whatif` can change, one class for each kind of change.

>>> from whywait.hypotheses import Scale, parse
>>> str(Scale("relax", 0.8)) == str(parse("scale", "relax=0.8"))
True
"""

from whywait.hypotheses.file import HypothesisFile, read
from whywait.hypotheses.kinds import (
    AsynchronousProgress,
    Balance,
    Cpu,
    Cut,
    CutMessages,
    EagerLimit,
    Hypothesis,
    IdealNetwork,
    Network,
    Overhead,
    Overlap,
    Protocol,
    Scale,
    Selection,
    Set,
    Split,
    Trim,
    parse,
)

__all__ = [
    "AsynchronousProgress",
    "Balance",
    "Cpu",
    "Cut",
    "CutMessages",
    "EagerLimit",
    "Hypothesis",
    "HypothesisFile",
    "IdealNetwork",
    "Network",
    "Overhead",
    "Overlap",
    "Protocol",
    "Scale",
    "Selection",
    "Set",
    "Split",
    "Trim",
    "parse",
    "read",
]
