"""Tests of whywait."""

from otf2.definitions import Comm, InterComm

# The official package (3.2) gives inter-communicators the fields of communicators on top of their own, so that it can
# neither write nor read one. What they have is a name, two groups, a common communicator, and flags.
if len(InterComm._fields) > 5:
    name, _, parent, flags = Comm._fields
    InterComm._fields = (name, *InterComm._fields[4:6], parent, flags)
