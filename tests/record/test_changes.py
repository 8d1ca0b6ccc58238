"""The error that predictions state covers what changes save: programs/changes.c, before and after."""

import pytest

from . import changes
from .mpis import on_schedule

#: Programs with the rules that their first findings may have: those of the program, not of the machine.
FIRST = {
    "corner": {"imbalance"},
    "drift": {"varying"},
    "residual": {"varying"},
    "checkpoint": {"one_does_all"},
    "hand_over": {"late_partner"},
    "row": {"imbalance"},
    "collect": {"one_does_all"},
    "scatter": {"one_does_all"},
}
# Where ranks share cores, these say so.
OF_THE_MACHINE = {"few_cores", "slow_calls", "pauses"}


@pytest.mark.nightly
@pytest.mark.parametrize("mpi", [pytest.param(mpi, id=mpi.name) for mpi in changes.mpis()])
def test_the_stated_error_covers_what_changes_save(mpi, tmp_path):
    def check():
        pairs = [pair for program in changes.CHANGES for pair in changes.measure(mpi, program, tmp_path, turns=1)]
        stated = [pair for pair in pairs if pair.error is not None]
        assert len(stated) >= 0.9 * len(pairs), pairs
        assert sum(pair.holds for pair in stated) >= 0.9 * len(stated), pairs

    on_schedule(check, attempts=2)


@pytest.mark.nightly
@pytest.mark.parametrize("program", FIRST)
@pytest.mark.parametrize("mpi", [pytest.param(mpi, id=mpi.name) for mpi in changes.mpis()])
def test_the_cause_is_named_first(mpi, program, tmp_path):
    def check():
        changes.recorded(mpi, program, "before", tmp_path)
        found = [one.rule for one in changes.found(tmp_path) if one.rule not in OF_THE_MACHINE]
        assert found[0] in FIRST[program], found

    on_schedule(check)
