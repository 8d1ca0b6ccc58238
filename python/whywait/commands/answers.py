"""What a verb answers: data for ``--json``, and the same data as text."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from whywait.report.terminal import fitted, paragraph, percent, show, speaks_unicode, width
from whywait.report.values import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from whywait.analysis.focus import FocusedData
    from whywait.model.result import ResultData
    from whywait.report.terminal import Line


class Screen(NamedTuple):
    """Where text is printed.

    Attributes
    ----------
    width
        The number of columns.
    unicode
        Whether it has more than ASCII.
    """

    width: int
    unicode: bool


class Answer(NamedTuple):
    """The answer of a verb.

    Attributes
    ----------
    data
        What ``--json`` prints.
    lines
        A function that yields the same as text.
    code
        The exit code.
    results
        The results that the answer is about: what readers of their numbers must know follows the text, or is printed
        on standard error beside JSON.
    focus
        The focus of the only result that the answer is about: the text begins with it, and JSON has it.
    """

    data: Any
    lines: Callable[[Screen], Iterable[Line]]
    code: int = 0
    results: Sequence[ResultData] = ()
    focus: FocusedData | None = None


def tell(answer: Answer, *, as_json: bool) -> int:
    """Print an answer; return its exit code."""
    focus = None
    if answer.focus:
        # It needs NumPy, which help does not.
        from whywait.report.focus import focus_data, focus_line

        focus = focus_data(answer.focus), focus_line(answer.focus)
    results = [*answer.results, *([answer.focus] if answer.focus else [])]
    notes = dict.fromkeys(f"{result.run.name}: {note}" for result in results for note in result.notes)
    if as_json:
        data = {"focus": focus[0]} | answer.data if focus else answer.data
        sys.stdout.write(json.dumps(data, indent=1) + "\n")
        sys.stderr.writelines(f"whywait: {note}\n" for note in notes)
    else:
        columns = width(sys.stdout)
        if focus and focus[1]:
            show([*paragraph(focus[1], columns), []], sys.stdout)
        show(fitted(answer.lines(Screen(columns, speaks_unicode(sys.stdout))), columns), sys.stdout)
        show(([(line, "dim")] for note in notes for line in textwrap.wrap(note, _NOTE_WIDTH)), sys.stdout)
    return answer.code


_NOTE_WIDTH = 80


class Column(NamedTuple):
    """A column of a table as text: what it shows of a row of the data.

    Attributes
    ----------
    title
        The heading.
    width
        The number of columns of the terminal; negative to align at the left, 0 for text of any width after a gap.
    value
        The key of the value, or a function of the row; None is shown as ``-``.
    unit
        ``count``, ``share``, or a unit of a metric (``sec``, ``bytes``); empty for text.
    """

    title: str
    width: int
    value: str | Callable[[Mapping[str, Any]], Any]
    unit: str = ""

    def text(self, row: Mapping[str, Any]) -> str:
        """Return the value of a row as text."""
        value = row[self.value] if isinstance(self.value, str) else self.value(row)
        if value is None:
            return "-"
        if self.unit in ("", "count"):
            return f"{int(value):,}" if self.unit else str(value)
        return percent(value) if self.unit == "share" else quantity(value, self.unit)

    def cell(self, text: str) -> str:
        """Align a text in the column."""
        if not self.width:
            return f"  {text}" if text else ""
        return text.rjust(self.width) if self.width > 0 else text.ljust(-self.width)


def table(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    *,
    style: Callable[[Mapping[str, Any]], str] = lambda _: "",
    rest: Callable[[Mapping[str, Any]], Line] = lambda _: [],
) -> Iterator[Line]:
    """Yield the lines of a table: the headings, then the rows; without the room for them, the rows with headings.

    Parameters
    ----------
    rows
        The data.
    columns
        What to show of each row.
    style
        A function that returns the style of a row.
    rest
        A function that returns what follows the columns of a row.
    """
    screen = width(sys.stdout)
    if screen < _NOTE_WIDTH and screen < sum(abs(column.width) for column in columns):
        for row in rows:
            named = ", ".join(f"{column.title} {column.text(row)}".strip() for column in columns)
            first, *others = textwrap.wrap(named, screen, subsequent_indent="   ", break_on_hyphens=False)
            yield [(first, style(row))]
            yield from ([(line, style(row))] for line in others)
        return
    yield [("".join(column.cell(column.title) for column in columns), "bold")]
    for row in rows:
        yield [("".join(column.cell(column.text(row)) for column in columns), style(row)), *rest(row)]


def zeros(names: list[str]) -> Iterator[Line]:
    """Say which rows are left out."""
    if names:
        text = f"{len(names)} more {'is' if len(names) == 1 else 'are'} zero (--json has all): {', '.join(names)}"
        yield [(textwrap.shorten(text, 100, placeholder=" ..."), "dim")]


def number(value: float | None) -> str:
    """Return a number as text; whole ones with all digits."""
    if value is None:
        return "-"
    text = f"{value:,}" if isinstance(value, int) or (value == int(value) and abs(value) < 1e15) else f"{value:,.6g}"
    return text.removesuffix(".0")
