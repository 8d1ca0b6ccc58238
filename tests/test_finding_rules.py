"""Each rule of findings has an example in tests/patterns/findings.md, and one in which it is silent."""

from __future__ import annotations

import re

import pytest
import whywait
from whywait.analysis.findings import findings, rules

from tests.test_patterns import BLOCK, PATTERNS, path
from tests.tracedsl import trace_from_text

DOCUMENT = PATTERNS / "findings.md"


def repeated(text: str) -> str:
    """Write out the blocks ``repeat N every S`` ... ``end``."""
    lines: list[str] = []
    block: list[str] | None = None
    count, every = 1, 0.0
    for line in text.splitlines():
        if m := re.fullmatch(r"repeat (\d+) every ([\d.]+)", line.strip()):
            block, count, every = [], int(m[1]), float(m[2])
        elif line.strip() == "end":
            for n in range(count):
                lines += [shifted(one, n, every * n) for one in block or []]
            block = None
        elif block is None:
            lines.append(line)
        else:
            block.append(line)
    return "\n".join(lines) + "\n"


def shifted(line: str, n: int, by: float) -> str:
    """Compute what stands in braces, and move the times in brackets."""
    line = re.sub(r"\{(.+?)\}", lambda m: f"{eval(m[1], {}, {'n': n}):.10g}", line)  # noqa: S307
    return re.sub(r"\[([\d.]+), ([\d.]+)\]", lambda m: f"[{float(m[1]) + by:.9f}, {float(m[2]) + by:.9f}]", line)


def examples():
    heading, trace = "", ""
    for block in BLOCK.finditer(DOCUMENT.read_text()):
        if block[1]:
            heading = block[1]
        elif block[2] == "trace":
            trace = block[3]
        else:
            yield pytest.param(trace, block[3], id=f"{heading}: {block[3].splitlines()[0]}")


@pytest.mark.parametrize(("trace", "expected"), list(examples()))
def test_the_document_says_what_is_found(trace, expected, tmp_path):
    result = whywait.analyze(trace_from_text(repeated(trace), tmp_path))
    found = {}
    for one in findings(result):
        found.setdefault(one.rule, one)
    remarks = {(name, one.rule) for one in findings(result) for name in one.remarks}
    for line in filter(None, map(str.strip, expected.splitlines())):
        if m := re.fullmatch(r"finding (\w+) (.+) ([\d.]+)", line):
            one = found[m[1]]
            place = None if one.callpath is None else tuple(result.tree.path(one.callpath))
            assert place == (None if m[2] == "-" else path(m[2]))
            assert one.loss == pytest.approx(float(m[3]), abs=1e-6)
            assert rules()[m[1]].document
        elif m := re.fullmatch(r"says (\w+) (.+)", line):
            assert m[2] in f"{found[m[1]].sentence} {found[m[1]].advice}"
        elif m := re.fullmatch(r"remark (\w+) on (\w+)", line):
            assert (m[1], m[2]) in remarks
        elif m := re.fullmatch(r"silent (\w+)", line):
            assert m[1] in rules()
            assert m[1] not in found
            assert m[1] not in {name for name, _ in remarks}
        else:
            raise ValueError(f"not an expectation: {line!r}")
