"""The page docs/patterns.md, made from the rows of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.model.schema import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.model.schema import Pattern

NAMES = {
    "MPI": "MPI",
    "SHMEM": "OpenSHMEM",
    "ARMCI": "ARMCI",
    "PGAS": "GASPI and UPC",
    "OPENMP": "OpenMP",
    "PTHREAD": "POSIX threads",
    "GPU": "Accelerators",
    "CCL": "Communication of devices",
}
INTRODUCTION = """\
# Patterns

This page lists every wait state that whywait detects. Each name links to a document with its meaning, a picture, the
formula and its guards, the source, and examples worked out by hand. These documents are also tests. "Thesis" is
[Hermanns 2018](references.md#the-thesis). *Completion* does not count as waiting but is listed here, too.

[One-sided communication](one-sided.md) explains the terms and decisions for one-sided wait states and the limits of
the records. [Some calls](../tests/patterns/one-sided-contention-and-progress.md) wait first for a lock and then for
progress.

`docs/make_patterns.py` generates this page from `rust/core/src/schema/rows`.
"""
REST = """
## Counting

These documents cover metrics other than waiting: [time and visits](../tests/patterns/time.md), [messages, operations,
and bytes](../tests/patterns/counts-and-bytes.md), [bytes of one-sided
operations](../tests/patterns/one-sided-bytes.md), and [pairs of processes that
synchronize](../tests/patterns/one-sided-pairs.md). Two more explain how messages and collective operations are
matched: [communicators](../tests/patterns/communicators.md) and [records without a
partner](../tests/patterns/unmatched.md). [Partitions](../tests/patterns/partitions.md) are messages whose parts are
sent one by one.

## What follows from wait states

[Causes](causes.md) explains who causes wait states and what determines the run time.

| topic | document |
|---|---|
| costs of delays | [delays](../tests/patterns/causes-delays.md) |
| the same in one-sided communication | [one-sided communication](../tests/patterns/causes-one-sided.md) |
| costs of intervals | [contention](../tests/patterns/causes-contention.md) |
| critical path | [critical path](../tests/patterns/causes-critical-path.md) |
| explanations | [explanations of waits](../tests/patterns/explain.md) |
| where all time went | [the account](../tests/patterns/account.md) |
| why it is lost | [findings](../tests/patterns/findings.md) |
| clocks | [census and correction](../tests/patterns/clocks.md) |
| iterations | [marks of iterations](../tests/patterns/iterations.md) |
| what-if simulation | [worked examples](../tests/patterns/whatif.md) |

[Metrics](metrics.md) lists all metrics with their formulas, and [Deviations](deviations.md) the deliberate
differences from Scalasca.
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
