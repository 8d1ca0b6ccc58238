"""Files of hypotheses: the grammar of Jül-4297 (table 4.1, listing 4.4), with extensions.

    MODEL "Reenact"
      OPTION "compensate perturbation" TRUE
    BALANCE REGION "foo" OPTION "mode" "scaled"
    SCALE REGION "bar" 0.5          # half as long
    CUT MESSAGE SIZE == 0

A region is a selection as on the command line (``solve/relax@0-3``). Extensions are ``SET REGION "r" "2ms"``, ``CPU 2``
(or ``CPU "2@0-3"``), ``NETWORK "ideal"``, ``PROTOCOL REGION "r" "eager"``, ``PROGRESS "asynchronous"``,
``OVERLAP REGION "r" OPTION "after" "bar"``, ``SPLIT REGION "r"``, and the option ``"min_span" "10us"`` of a SCALE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import whywait._native as _native
from whywait.hypotheses.kinds import (
    Balance,
    CutMessages,
    Hypothesis,
    Overhead,
    Overlap,
    Selection,
    Split,
    check,
    duration,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TOKEN = re.compile(
    r'(?P<string>"[^"\n]*")|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<word>[A-Za-z_]\w*)'
    r"|(?P<relation>==|!=|<=|>=|<|>)|(?P<comma>,)|(?P<skip>[ \t\r\n]+|#[^\n]*)"
)

# The modes of a balance, as named in Jül-4297, and one more.
_MODES = {
    "global instance": "instance",
    "segment": "segment",
    "process-local": "local",
    "global": "global",
    "scaled": "scaled",
    "median": "median",
}
#: The overhead of an event in Scalasca 1.x.
_PERTURBATION = 1.05e-6
# Options of a simulator that executes the program again, and of its log; they do not apply here.
_IGNORED = frozenset(
    {
        "aggregate idle", "idle overhead", "noop threshold", "skip threshold", "deterministic", "max messagesize",
        "max sendbufs", "debug",
    }
)  # fmt: skip
# Booleans of the grammar, and of Scalasca 1.x.
_FLAGS = {"TRUE": True, "FALSE": False, "ENABLED": True, "DISABLED": False, "1": True, "0": False}
# The smallest distance of events; the first is the spelling of Scalasca 1.x.
_LEAST = frozenset({"mininal latency", "minimal latency"})


@dataclass(frozen=True)
class HypothesisFile:
    """The content of a file.

    Attributes
    ----------
    hypotheses
        The hypotheses, in order.
    ignored
        Names of options that do not apply here, in order, each once.
    """

    hypotheses: list[Hypothesis]
    ignored: list[str]


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int
    column: int


def read(text: str, name: str = "hypotheses") -> HypothesisFile:
    """Read a file of hypotheses.

    Parameters
    ----------
    text
        Its content.
    name
        The name of the file in messages.

    Raises
    ------
    whywait.UsageError
        If it does not follow the grammar; the message names the place.
    """
    return _Parser(name, list(_tokens(text, name))).configuration()


class _Misplaced(_native.UsageError):
    """An error whose text has its line and column."""


def _fail(name: str, line: int, column: int, why: str) -> NoReturn:
    raise _Misplaced(f"{name}, line {line}, column {column}: {why}")


def _tokens(text: str, name: str) -> Iterator[_Token]:
    position, line, start = 0, 1, 0
    while position < len(text):
        column = position - start + 1
        match = _TOKEN.match(text, position)
        if not match:
            why = "a quote is never closed" if text[position] == '"' else f"{text[position]!r} has no meaning here"
            _fail(name, line, column, why)
        kind, found = match.lastgroup or "", match[0]
        if kind == "string":
            yield _Token(kind, found[1:-1], line, column)
        elif kind == "word":
            # Files of Scalasca 1.x prefix every keyword.
            yield _Token(kind, found.upper().removeprefix("SC_"), line, column)
        elif kind != "skip":
            yield _Token(kind, found, line, column)
        line += found.count("\n")
        start = position + found.rindex("\n") + 1 if "\n" in found else start
        position = match.end()
    yield _Token("end", "the end of the file", line, position - start + 1)


class _Parser:
    """Reads a list of tokens from left to right."""

    def __init__(self, name: str, tokens: list[_Token]) -> None:
        self._name = name
        self._tokens = tokens
        self._next = 0
        self._ignored: list[str] = []

    def configuration(self) -> HypothesisFile:
        self._expect("word", "MODEL")
        self._expect("string")
        found: list[Hypothesis] = []
        compensates, least = False, None
        for token, option, value in self._options():
            if option == "compensate perturbation":
                compensates = self._flag(token, option, value)
            elif option in _LEAST:
                least = (token, option, duration(value))
            else:
                self._ignore(token, option)
        if compensates:
            overhead = Overhead(_PERTURBATION, least[2]) if least else Overhead(_PERTURBATION)
            found.append(self._checked(least[0] if least else self._peek(), lambda: overhead))
        elif least:
            # No other hypothesis brings events closer together.
            self._ignored.append(least[1])
        while self._peek().kind != "end":
            self._skip_comma()
            token = self._expect("word")
            reader = _HYPOTHESES.get(token.text)
            if reader is None:
                self._fail(token, f"unknown hypothesis {token.text}: expected one of {', '.join(_HYPOTHESES)}")
            found.append(self._checked(token, partial(reader, self)))
        return HypothesisFile(found, list(dict.fromkeys(self._ignored)))

    def _checked(self, token: _Token, read: Callable[[], Hypothesis]) -> Hypothesis:
        """Read a hypothesis; name the place of an error in its values."""
        try:
            hypothesis = read()
            check(hypothesis)
        except _Misplaced:
            raise
        except _native.UsageError as error:
            self._fail(token, str(error))
        return hypothesis

    def balance(self) -> Hypothesis:
        selection = self._region()
        mode, by, uneven, among = "instance", 1.0, None, None
        for token, option, value in self._options():
            if option == "mode":
                mode = _MODES.get(value, value)
                if mode not in _MODES.values():
                    self._fail(token, f"unknown mode {value!r}: expected one of {', '.join(_MODES)}")
            elif option == "by":
                by = self._float(token, value)
            elif option == "uneven" and value == "average":
                uneven = "average"
            elif option == "among":
                among = value
            else:
                self._ignore(token, option)
        return Balance(selection, mode, by, uneven, among)  # type: ignore[arg-type]

    def cut(self) -> Hypothesis:
        what = self._expect("word")
        if what.text == "REGION":
            selection = self._expect("string").text
            self._no_options()
            return parse("cut", selection)
        if what.text != "MESSAGE":
            self._fail(what, "REGION or MESSAGE is cut")
        key = self._expect("word")
        if key.text not in {"SIZE", "TAG"}:
            self._fail(key, "a message has a SIZE and a TAG")
        relation, number = self._expect("relation").text, self._expect("number")
        if not number.text.lstrip("+").isdecimal():
            self._fail(number, f"{number.text} is not a number of zero or more")
        self._no_options()
        return CutMessages(f"{key.text.lower()}{relation}{number.text.lstrip('+')}")

    def scale(self) -> Hypothesis:
        text = f"{self._region()}={self._value().text}"
        for token, option, value in self._options():
            if option == "min_span":
                text += f",min_span={value}"
            else:
                self._ignore(token, option)
        return parse("scale", text)

    def set(self) -> Hypothesis:
        return parse("set", f"{self._region()}={self._value().text}")

    def cpu(self) -> Hypothesis:
        return parse("cpu", self._value().text)

    def network(self) -> Hypothesis:
        return parse("network", self._expect("string").text)

    def protocol(self) -> Hypothesis:
        return parse("protocol", f"{self._region()}={self._value().text.lower()}")

    def progress(self) -> Hypothesis:
        return parse("progress", self._value().text.lower())

    def overlap(self) -> Hypothesis:
        selection, after = self._region(), None
        for token, option, value in self._options():
            if option == "after":
                after = value
            else:
                self._ignore(token, option)
        return Overlap(selection, after)

    def split(self) -> Hypothesis:
        return Split(self._region())

    def _no_options(self) -> None:
        for token, option, _ in self._options():
            self._ignore(token, option)

    def _ignore(self, token: _Token, option: str) -> None:
        if option not in _IGNORED:
            self._fail(token, f"there is no option {option!r} here")
        self._ignored.append(option)

    def _region(self) -> Selection:
        self._expect("word", "REGION")
        return Selection.parse(self._expect("string").text)

    def _options(self) -> Iterator[tuple[_Token, str, str]]:
        while True:
            comma = self._next
            self._skip_comma()
            if (self._peek().kind, self._peek().text) != ("word", "OPTION"):
                self._next = comma
                return
            self._next += 1
            name = self._expect("string")
            value = self._value()
            if value.kind == "word" and value.text not in _FLAGS:
                self._fail(value, f"a string, a number, TRUE, or FALSE is expected, not {value.text}")
            yield name, name.text, value.text

    def _value(self) -> _Token:
        token = self._peek()
        if token.kind not in {"string", "number", "word"}:
            self._fail(token, f"a value is expected, not {token.text}")
        self._next += 1
        return token

    def _flag(self, token: _Token, option: str, text: str) -> bool:
        if text.upper() not in _FLAGS:
            self._fail(token, f"{option} is TRUE or FALSE, not {text}")
        return _FLAGS[text.upper()]

    def _float(self, token: _Token, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            self._fail(token, f"{text!r} is not a number")

    def _skip_comma(self) -> None:
        if self._peek().kind == "comma":
            self._next += 1

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _expect(self, kind: str, text: str | None = None) -> _Token:
        token = self._peek()
        if token.kind != kind or (text is not None and token.text != text):
            self._fail(token, f"{text or f'a {kind}'} is expected, not {token.text}")
        self._next += 1
        return token

    def _fail(self, token: _Token, why: str) -> NoReturn:
        _fail(self._name, token.line, token.column, why)


_HYPOTHESES: dict[str, Callable[[_Parser], Hypothesis]] = {
    "BALANCE": _Parser.balance,
    "CUT": _Parser.cut,
    "SCALE": _Parser.scale,
    "SET": _Parser.set,
    "CPU": _Parser.cpu,
    "NETWORK": _Parser.network,
    "PROTOCOL": _Parser.protocol,
    "PROGRESS": _Parser.progress,
    "OVERLAP": _Parser.overlap,
    "SPLIT": _Parser.split,
}
