"""The faults of mutants.toml fit the code: each can be planted, and the test that finds it exists.

`python tests/mutants.py` plants them.
"""

from itertools import groupby
from operator import attrgetter

import pytest

from tests import mutants

ALL = mutants.mutants()


def test_each_fault_fits_the_code_and_has_a_test():
    assert not [why for mutant in ALL for why in mutants.misfits(mutant)]


def test_faults_in_one_file_are_at_different_places():
    in_rust = sorted((mutant for mutant in ALL if mutant.is_rust), key=attrgetter("file"))
    for name, found in groupby(in_rust, attrgetter("file")):
        mutants.with_switches((mutants.ROOT / name).read_text(encoding="utf-8"), list(found))


@pytest.mark.parametrize(
    ("find", "replace", "both"),
    [
        ("self.count += 1;", "self.count += 2;", "if {} {{ self.count += 2; }} else {{ self.count += 1; }}"),
        ("let last = a.min(b) - c;", "let last = a - c;", "let last = (if {} {{ a - c }} else {{ a.min(b) - c }});"),
        ("if all(a) && b > 0 {", "if all(a) && b > 1 {", "if all(a) && (if {} {{ b > 1 }} else {{ b > 0 }}) {{"),
        ("find(|a| a.x == 1)?", "find(|a| a.x == 2)?", "find(|a| (if {} {{ a.x == 2 }} else {{ a.x == 1 }}))?"),
        ("(0, bytes), id", "(bytes, 0), id", "(if {} {{ (bytes, 0) }} else {{ (0, bytes) }}), id"),
    ],
)
def test_a_fault_in_rust_is_behind_a_switch(find, replace, both):
    mutant = mutants.Mutant(7, "name", "", "rust/core/src/lib.rs", find, replace, "")
    assert mutants.switched(mutant) == both.format("crate::is_mutant(7)")
