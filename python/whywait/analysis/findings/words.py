"""Words in the sentences of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def seconds(value: float) -> str:
    """Return a time with three significant digits and a suitable unit."""
    for limit, factor, unit in ((1.0, 1, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "us")):
        if abs(value) >= limit * 0.9995:
            scaled = value * factor
            return f"{scaled:,.{max(0, 3 - len(str(int(abs(scaled) * 1.0005))))}f} {unit}"
    return f"{value * 1e9:.3g} ns"


def percent(share: float) -> str:
    """Return a share as a percentage without decimals, or with one if it is small."""
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def volume(number: float) -> str:
    """Return a number of bytes with three significant digits and a suitable unit."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = 0
    while number >= 999.5 and power < len(units) - 1:
        number /= 1024
        power += 1
    digits = max(0, 3 - len(str(int(number + 0.5)))) if power else 0
    return f"{number:.{digits}f} {units[power]}"


def times(factor: float) -> str:
    """Return how long something takes compared with something else, to be followed by that."""
    if factor < 1.15:
        return f"{factor - 1:.0%} longer than" if factor >= 1.005 else "as long as"
    return f"{factor:,.0f} times as long as" if factor >= 10 else f"{factor:.2g} times as long as"


def devices(names: Collection[str]) -> tuple[str, str]:
    """Return the words for all devices of a run, and those for what they are."""
    which = {1: "the device", 2: "both devices"}.get(len(names), f"{len(names)} devices")
    return which, "it is" if len(names) == 1 else "they are"
