"""Words in the sentences of findings, and the figures that they are made from.

A sentence carries its figures and names as data. A rule declares what each of them means, and everything in a sentence
that differs from run to run comes from them, so that words can be checked against the trace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


@dataclass(frozen=True)
class Value:
    """A figure or a name in the words of a finding.

    Attributes
    ----------
    name
        What its rule calls it.
    value
        The number, or the name.
    unit
        ``s``, ``share``, ``count``, ``bytes``, ``bytes/s``, ``1/s``, ``times`` (as long as something else) or ``name``.
    meaning
        What it is.
    words
        How the sentence says it.
    """

    name: str
    value: float | str
    unit: str
    meaning: str
    words: str


@dataclass(frozen=True)
class Words:
    """A part of a sentence, and the values in it.

    Attributes
    ----------
    text
        The text.
    values
        Its figures and names.
    """

    text: str
    values: tuple[Value, ...] = ()

    def __add__(self, other: Words | str) -> Words:
        if isinstance(other, str):
            return Words(self.text + other, self.values)
        return Words(self.text + other.text, self.values + other.values)

    def __bool__(self) -> bool:
        return bool(self.text)

    def capitalized(self) -> Words:
        """Return the same at the begin of a sentence."""
        return Words(self.text[:1].upper() + self.text[1:], self.values)


def joined(parts: Iterable[Words]) -> Words:
    """Return some parts as a list: "a, b and c"."""
    *first, last = parts
    words = Words("")
    for number, part in enumerate(first):
        words += part
        words += ", " if number < len(first) - 1 else " and "
    return words + last


_THAT_RUNS = "what runs "
#: How the words for code begin that is only known to lie between calls.
UNSEEN = f"{_THAT_RUNS}between MPI calls of "


class Figures:
    """The figures and names of a rule: their units and meanings.

    Parameters
    ----------
    others
        Those of which the rule speaks, too.
    known
        Unit and meaning of each.
    """

    def __init__(self, *others: Figures, **known: tuple[str, str]) -> None:
        self.known: dict[str, tuple[str, str]] = {
            name: one for other in others for name, one in other.known.items()
        } | known

    def say(self, template: str, /, **values: Any) -> Words:
        """Return a text with values in it, which `template` names in braces."""
        made = []
        for name, value in values.items():
            unit, meaning = self.known[name]
            words = _UNITS[unit](value)
            if unit == "share" and value > 1 - 1e-9 and f"{{{name}}} of it" in template:
                words = "all"
            if unit == "name" and words.startswith(UNSEEN):
                # "works in what runs between calls", "runs what runs between calls".
                shorter = re.sub(rf"(?<!part )\bin (\{{{name}\}})", r"\1", template)
                shorter = re.sub(rf"\bruns (\{{{name}\}})", r"works \1", shorter)
                if shorter != template:
                    template, words = shorter, words.removeprefix(_THAT_RUNS)
            made.append(Value(name, value, unit, meaning, words))
        return Words(template.format_map({value.name: value.words for value in made}), tuple(made))


def seconds(value: float) -> str:
    """Return a time with three significant digits and a suitable unit."""
    for limit, factor, unit in ((1.0, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "us")):
        if abs(value) >= limit * 0.9995:
            scaled = value * factor
            return f"{scaled:,.{max(0, 3 - len(str(int(abs(scaled) * 1.0005))))}f} {unit}"
    return f"{value * 1e9:.3g} ns"


def percent(share: float) -> str:
    """Return a share as a percentage without decimals, or with one if it is small; never 100% of what is less."""
    if 0 < share < 0.0005:
        return "less than 0.1%"
    if 0.9995 <= share < 1 - 1e-9:
        return "more than 99.9%"
    if 0.995 <= share < 0.9995:
        return f"{share:.1%}"
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


def volume(number: float) -> str:
    """Return a number of bytes with three significant digits and a suitable unit."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = 0
    while number >= 999.5 and power < len(units) - 1:
        number /= 1024
        power += 1
    digits = 0 if not power or number == int(number) else max(0, 3 - len(str(int(number + 0.5))))
    return f"{number:.{digits}f} {units[power]}"


# Times that do not differ by more are as long as each other.
EQUAL = 1.0005


def times(factor: float) -> str:
    """Return how long something takes compared with something else, to be followed by that."""
    if factor < 1.15:
        if factor < 1.005:
            return f"{factor - 1:.1%} longer than" if factor >= EQUAL else "as long as"
        return f"{factor - 1:.0%} longer than"
    return f"{factor:,.0f} times as long as" if factor >= 10 else f"{factor:.2g} times as long as"


_UNITS: dict[str, Callable[[Any], str]] = {
    "s": seconds,
    "share": percent,
    "count": "{:,}".format,
    "bytes": volume,
    "bytes/s": lambda value: f"{volume(value)}/s",
    "1/s": "{:,.3g}".format,
    "times": times,
    "name": str,
}


def devices(names: Collection[str]) -> tuple[str, str]:
    """Return the words for all devices of a run, and whether it is one or they are several."""
    which = {1: "the device", 2: "both devices"}.get(len(names), f"{len(names)} devices")
    return which, "is" if len(names) == 1 else "are"
