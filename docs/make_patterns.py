"""Write docs/patterns.md from the rows of the core: ``python docs/make_patterns.py``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whywait.model.schema import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.schema import Pattern

TARGET = Path(__file__).with_name("patterns.md")
NAMES = {
    "MPI": "MPI",
    "SHMEM": "OpenSHMEM",
    "ARMCI": "ARMCI",
    "OPENMP": "OpenMP",
    "PTHREAD": "POSIX threads",
    "GPU": "Accelerators",
}
INTRODUCTION = """\
# Patterns

Every wait state that whywait looks for. The documents behind the names have the meaning, a picture, the formula with
its guards, the source, and examples worked out by hand; they are tests that the program must pass. "Thesis" is
[Hermanns 2018](references.md#the-thesis); *completion* is no waiting, but listed with it.

[One-sided communication](one-sided.md) has the words, the decisions with their reasons, and what the records cannot
tell. [Some calls](../tests/patterns/one-sided-contention-and-progress.md) wait first for a lock and then for progress.

Written by `docs/make_patterns.py` from `rust/core/src/schema/rows`.
"""
REST = """
## Counting

What is counted rather than waited for: [time and visits](../tests/patterns/time.md),
[messages, operations and bytes](../tests/patterns/counts-and-bytes.md),
[bytes of one-sided operations](../tests/patterns/one-sided-bytes.md),
[pairs of processes that synchronize](../tests/patterns/one-sided-pairs.md). How messages and collective operations find
each other: [communicators](../tests/patterns/communicators.md), [what has no partner](../tests/patterns/unmatched.md).

## What follows from wait states

Who is to blame for them, and what determines how long the run takes: [causes](causes.md).

| what | documents |
|---|---|
| costs of delays | [delays](../tests/patterns/causes-delays.md) |
| the same in one-sided communication | [one-sided communication](../tests/patterns/causes-one-sided.md) |
| costs of intervals | [contention](../tests/patterns/causes-contention.md) |
| critical path | [critical path](../tests/patterns/causes-critical-path.md) |
| explanations | [what is said of a wait](../tests/patterns/explain.md) |
| iterations | [what marks them](../tests/patterns/iterations.md) |
| what-if simulation | [worked examples](../tests/patterns/whatif.md) |

All metrics with their formulas: [metrics](metrics.md). Where results differ from Scalasca on purpose:
[deviations](deviations.md).
"""


def page() -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join("".join(_section(paradigm)) for paradigm in NAMES) + REST


def _section(paradigm: str) -> Iterator[str]:
    yield f"\n## {NAMES[paradigm]}\n\n"
    yield "| wait state | metric | what it is | source |\n|---|---|---|---|\n"
    for pattern in patterns().values():
        if pattern.paradigm == paradigm:
            yield _row(pattern)


def _row(pattern: Pattern) -> str:
    name = pattern.display_name + (" (upper bound)" if pattern.is_bound else "")
    link = f"[{name}](../tests/patterns/{pattern.document}.md)"
    completion = " Completion." if pattern.is_completion else ""
    return f"| {link} | `{pattern.kind}` | {pattern.description}{completion} | {pattern.source} |\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
