"""Run the examples and write them as notebooks with their outputs: `python docs/make_examples.py`.

An example is a script in cells: `# %%` begins code, `# %% [markdown]` text. What a cell prints, and the value of its
last expression, is its output.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(Path(__file__).parent.glob("examples/*.py"))


def notebook(script: Path) -> str:
    """Return an example as a notebook, run in the root of the repository."""
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        space: dict[str, Any] = {"__name__": "__main__"}
        cells = [_cell(number, kind, text, space) for number, (kind, text) in enumerate(_cells(script.read_text()))]
    finally:
        os.chdir(before)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    data = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _cells(text: str) -> list[tuple[str, str]]:
    parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)[1:]
    return [(kind.strip(), body.strip("\n")) for kind, body in zip(parts[::2], parts[1::2], strict=True)]


def _cell(number: int, kind: str, text: str, space: dict[str, Any]) -> dict[str, Any]:
    if kind == "[markdown]":
        prose = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        return {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": _lines(prose)}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"cell-{number}",
        "metadata": {},
        "outputs": _run(text, space),
        "source": _lines(text),
    }


def _run(code: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell as a notebook does."""
    *statements, last = ast.parse(code).body
    value = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(statements, []), "<cell>", "exec"), space)  # noqa: S102
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)  # noqa: S307
        else:
            exec(compile(ast.Module([*statements, last], []), "<cell>", "exec"), space)  # noqa: S102
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for script in EXAMPLES:
        script.with_suffix(".ipynb").write_text(notebook(script), encoding="utf-8")
