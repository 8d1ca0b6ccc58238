"""The options of an analysis that its result depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

CostModel = Literal["thesis", "unified", "bounded", "scalasca"]
QueueArrival = Literal["progress", "estimate", "send"]
QueueMatch = Literal["pair", "list"]
ClockCorrection = Literal["measured", "nodes", "lines", "clc", "both", "auto"]
ClockDomain = Literal["auto", "process", "node"]

# Written with every result; the others only if they differ from their default.
_ALWAYS = ("wrong_order_window", "causes", "cost_model", "idle_threads")


@dataclass(frozen=True)
class Options:
    """The options of `whywait.analyze` that its result depends on, with their defaults; see there.

    `clocks` is None for the correction that is usual for the run.
    """

    wrong_order_window: int = 100
    causes: bool = True
    cost_model: CostModel = "thesis"
    idle_threads: bool = False
    queues: QueueArrival | None = None
    queue_match: QueueMatch = "pair"
    counter_modes: Mapping[str, str] = field(default_factory=dict)
    fold_recursion: bool = False
    window: tuple[float, float] | None = None
    clocks: ClockCorrection | None = None
    clock_domain: ClockDomain = "auto"
    min_latency: float = 0.0

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Options:
        """Return options that were written with a result; what this version does not know is left out."""
        names = {one.name for one in fields(cls)}
        options = {name: value for name, value in known.items() if name in names}
        if options.get("window") is not None:
            options["window"] = tuple(options["window"])
        return cls(**options)

    def as_dict(self) -> dict[str, Any]:
        """Return the options as keyword arguments of `whywait.analyze`, without defaults that need not be said."""
        usual = asdict(Options())
        found = {name: value for name, value in asdict(self).items() if name in _ALWAYS or value != usual[name]}
        if self.queues is not None:
            found["queue_match"] = self.queue_match
        return found
