"""Common parts of the verbs."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from whywait.commands.answers import Answer

    #: The function of a verb: it returns what to print, or the exit code if it prints by itself.
    Run = Callable[[argparse.Namespace], Answer | int]


# Maximum line width of help texts.
_WIDEST = 98
# An option that never takes the word after it for its value, and how it is parsed without one: no word can be so.
SAMPLE, BARE_SAMPLE = "--sample", "--sample=\0"
_TRACE = {"trace": "the anchor file of an OTF2 archive, or its directory"}


def add_verb(
    verbs: Any,
    name: str,
    summary: str,
    description: str,
    example: str,
    run: Run,
    operands: Mapping[str, str] = _TRACE,
    *,
    analyzes: bool = True,
    modules: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a verb that works on a trace, or on other operands.

    Parameters
    ----------
    verbs
        The object that `argparse.ArgumentParser.add_subparsers` returned.
    name, summary, description, example
        The texts of the verb's help.
    run
        The function that executes the verb.
    operands
        The help of each operand by name.
    analyzes
        Whether the verb needs more than definitions; if so, the libraries for tables are loaded while it starts.
    modules
        Modules that the verb needs after its analysis, and which are loaded meanwhile.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=textwrap.fill(description, _WIDEST),
        epilog=f"example:\n  {example}\n",
        formatter_class=Help,
    )
    for operand, text in operands.items():
        parser.add_argument(operand, metavar=operand.upper(), help=text)
    answers(parser, run)
    parser.set_defaults(analyzes=analyzes, modules=modules)
    return parser


def answers(parser: argparse.ArgumentParser, run: Run) -> None:
    """Let a parser execute a function, and print what that returns as text or as JSON."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=partial(_respond, run))


def _respond(run: Run, options: argparse.Namespace) -> int:
    from whywait.commands.answers import tell

    answer = run(options)
    return answer if isinstance(answer, int) else tell(answer, as_json=options.json)


class Help(argparse.RawDescriptionHelpFormatter):
    """Help with a maximum line width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(_WIDEST, shutil.get_terminal_size().columns - 2))


def positive(text: str) -> int:
    """Read a number of at least one."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def add_terms(parser: argparse.ArgumentParser) -> None:
    """Add the option that explains the words of the first screen."""
    parser.add_argument("--explain-terms", action="store_true", help="add what the words of the answer mean")


def add_top(parser: argparse.ArgumentParser, what: str, default: int = 10) -> None:
    """Add the option for the number of rows."""
    text = f"{what} (default: %(default)s)"
    parser.add_argument("--top", type=positive, default=default, metavar="N", help=text)


def refuse_file(directory: Path) -> None:
    """Raise an error if a directory to write to is a file, or cannot be written."""
    from whywait import UsageError

    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is a file, not a directory to write to")
    above = next(place for place in (directory.absolute(), *directory.absolute().parents) if place.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise UsageError(f"{directory} cannot be written: {above} is {'read-only' if above.is_dir() else 'a file'}")


def share(text: str) -> float:
    """Read a share: 0.5% or 0.005."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(%?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text} is not a share such as 0.5% or 0.005")
    return float(match[1]) * (0.01 if match[2] else 1.0)


def memory_size(text: str) -> int:
    """Read a size in bytes, with K, M, G or T for 1024 and its powers."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 500M or 8G")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


class Progress:
    """A transient progress bar on standard error, shown only on a terminal."""

    _WIDTH = 30

    def __init__(self, *, quiet: bool = False) -> None:
        self._shown = sys.stderr.isatty() and not quiet

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._write("")

    def __call__(self, stage: str, share: float) -> None:
        """Show the completed share (0..1) of a stage."""
        done = round(share * self._WIDTH)
        self._write(f"{stage:<12} [{'=' * done}{' ' * (self._WIDTH - done)}] {share:4.0%}")

    def _write(self, text: str) -> None:
        if self._shown:
            # Return to the beginning of the line and clear it.
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
