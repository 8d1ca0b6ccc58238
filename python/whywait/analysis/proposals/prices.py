"""Prices: what the changes that findings propose would save of the focus, by simulation.

A price is the length of the measured focus less that of the simulated one, the same number as `whywait.whatif` has for
the change (`Simulation.focus_saved`). Prices do not add up, so the first ones are simulated together, too.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

import whywait._native as _native
from whywait.analysis.changes import Change
from whywait.analysis.findings import findings, imbalance, late_partner, proposals, thread_imbalance
from whywait.analysis.findings.finding import Price, Run
from whywait.analysis.findings.words import Words
from whywait.analysis.focus import find_focus
from whywait.analysis.native import NativeDataset
from whywait.analysis.proposals.time_limit import Clock
from whywait.analysis.proposals.trials import BATCH, Trials
from whywait.hypotheses.kinds import Network, Trim
from whywait.hypotheses.lengths import Lengths
from whywait.model.regions import COMMUNICATION
from whywait.model.schema import schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from whywait.analysis.findings import Findings
    from whywait.analysis.findings.finding import Finding
    from whywait.analysis.proposals.trials import Trial
    from whywait.model.result import ResultData

# The rules that say of others that they have less to do, and the changes that would let them have as much.
_IMBALANCES = frozenset({imbalance.NAME, thread_imbalance.NAME})
_BALANCES = ("balance", "distribute")
# So many changes are simulated at most.
_MOST = 24
# So many findings have prices, and so many are combined.
_PRICED, _TOGETHER = 8, 3
# What fails if a rule or a simulation does.
_PRICE = "a price"
# If assumptions concern more than this share of the time, prices are rough.
_ROUGH = 0.2
#: Up to so many events, prices are simulated without being asked for.
SMALL = 1_000_000
#: Of runs with more events, pages have no prices: a simulation takes half as much memory as the analysis.
LARGE = 20_000_000
#: A smaller share of the focus is nothing.
NOTHING = 0.001

NO_EVENTS = "Not simulated: the result has no events."
TOO_EXPENSIVE = "Not simulated: too expensive here; run `whywait advise TRACE`."
UNKNOWN = "Not simulated: no change of durations removes it."
REFUSED = "Not simulated: the change cannot be applied to this run."
NO_FIT = "Not simulated: no network of this model explains the length of the run."


def priced_findings(
    result: ResultData,
    limit: int = 5,
    *,
    focus: str | None = None,
    simulate: bool = False,
    threads: int | None = None,
    seconds: float | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Findings:
    """Return the findings of a run with the prices that are known.

    Parameters
    ----------
    result
        The result.
    limit
        How many to show at most.
    focus
        A call path: only what it, and what is below it, is to blame for. None for all.
    simulate
        Whether to simulate prices that are not known; the result keeps them if they are of all call paths.
    threads
        The number of threads to use; None for one per core.
    seconds
        About how long the simulation may take; what does not fit has no price. None for no limit.
    progress
        Called with ``prices`` and the share that is done, 0..1.
    """
    found = findings(result, limit, focus)
    if result.tables.prices.num_rows:
        _attach(result, found, result.tables.prices)
    if simulate and not any(one.prices or one.unpriced for one in found):
        # A few more than are shown by default.
        _simulate(result, found, found.notable[:_PRICED], threads, seconds, progress)
        if focus is None:
            _keep(result, found)
    return found


def simulate_ideal(result: ResultData) -> None:
    """Simulate the ideal network of a run without prices, which is all that efficiencies need: the result keeps it."""
    found = findings(result)
    _simulate(result, found, ())
    _keep(result, found)


def _keep(result: ResultData, found: Findings) -> None:
    if isinstance(dataset := result.tables, NativeDataset):
        dataset.prices = table(found)


def _simulate(
    result: ResultData,
    found: Findings,
    shown: Sequence[Finding],
    threads: int | None = None,
    seconds: float | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> None:
    """Simulate the changes that findings propose, and an ideal network; add the prices."""
    run = Run(result)
    ideal = run.changes.ideal_network() if result.tree.paradigms & COMMUNICATION else None
    if not shown and ideal is None:
        return
    clock = Clock(seconds)
    lengths = None
    with suppress(_native.UsageError):
        lengths = Lengths(result, threads=threads)
        run.changes.fitted = lengths.network
    for one in shown:
        one.prices = []
    wanted = list(proposals(run, shown))
    changes = [change for _, change in wanted if not isinstance(change, Price)][:_MOST]
    if ideal is not None:
        # Efficiencies need it.
        changes.insert(0, ideal)
    simulated = None
    if lengths is not None:
        trials = Trials(result, find_focus(result), lengths, threads)
        simulated = _Simulated(result, trials, changes, lengths.assumed, clock, progress)
    for one, change in wanted:
        if isinstance(change, Price):
            one.prices.append(change)
        elif simulated is not None:
            one.prices.append(_capped(simulated.price(change), one))
    for one in shown:
        one.unpriced = NO_EVENTS if simulated is None else _why_not(one)
    _restate(result, found)
    if simulated is not None:
        found.ideal = None if ideal is None else simulated.price(ideal)
        found.together = simulated.together(wanted, found.largest)


class _Simulated:
    """Simulates changes of a run.

    Parameters
    ----------
    result, progress
        As for `priced_findings`.
    trials
        Where changes are tried.
    changes
        The changes.
    assumed
        The time that the simulation makes assumptions about, seconds.
    clock
        Says whether there is time for another batch.
    """

    def __init__(
        self,
        result: ResultData,
        trials: Trials,
        changes: Sequence[Change],
        assumed: float,
        clock: Clock,
        progress: Callable[[str, float], object] | None,
    ) -> None:
        self._result, self._trials, self._clock = result, trials, clock
        whole = result.profile.total("time")
        self._is_rough = bool(whole) and assumed > _ROUGH * whole
        self._tried: dict[str, Trial | None] = {}
        different = list({change.option: change for change in changes}.values())
        for first in range(0, len(different), BATCH):
            if progress is not None:
                progress("prices", first / len(different))
            if not clock.has_time():
                break
            self._simulate(different[first : first + BATCH])

    def _simulate(self, batch: Sequence[Change]) -> None:
        """Simulate changes at the same time; if that fails, one by one."""
        found: Sequence[Trial | None] = [None] * len(batch)
        is_done = False
        with self._result.surviving(_PRICE, batch[0].option if len(batch) == 1 else None):
            found, is_done = self._trials.of(batch), True
        if is_done or len(batch) == 1:
            self._tried |= dict(zip((one.option for one in batch), found, strict=True))
        else:
            for one in batch:
                self._simulate([one])

    def price(self, change: Change) -> Price:
        """Return what a change saves."""
        trial = self._tried.get(change.option)
        saved = None if trial is None else trial.saved
        reason = None
        if saved is None:
            reason = REFUSED if change.option in self._tried else TOO_EXPENSIVE
            if trial is not None and trial.before is None:
                reason = NO_FIT
        return Price(
            change.what,
            change.label,
            change.then,
            change.option,
            saved,
            change.is_bound,
            is_rough=self._is_rough,
            reason=reason,
        )

    def together(self, wanted: Iterable[tuple[Finding, Change | Price]], shown: Sequence[Finding]) -> Price | None:
        """Return what the changes of the first findings save together; None if that is nothing, or of one alone.

        Only changes of the program: calls do not become faster by what a program does.
        """
        chosen = {change.option: change for _, change in wanted if isinstance(change, Change)}
        best = {}
        for number, one in enumerate(shown[:_TOGETHER], 1):
            price = one.price
            if (
                price is not None
                and price.option is not None
                and (price.saved or 0.0) > NOTHING * self._trials.measured
            ):
                best[number] = chosen[price.option]
        of_calls = (Trim, Network)
        changes = {number: change for number, change in best.items() if not isinstance(change.hypothesis, of_calls)}
        if len(changes) < 2 or not self._clock.has_time():
            return None
        length = self._trials.together(list(changes.values()))
        if length is None or length >= self._trials.measured:
            return None
        *first, last = map(str, changes)
        what = f"{', '.join(first)} and {last} together"
        option = " ".join(one.option for one in changes.values())
        saved = self._trials.measured - length
        return Price(what, "together", "Together", option, saved, is_rough=self._is_rough)


def _capped(price: Price, one: Finding) -> Price:
    """Return a bound that removes no more than the finding loses: what it bounds may also remove other losses."""
    if not price.is_bound or price.saved is None or one.base != "cpu" or price.saved <= one.loss:
        return price
    return replace(price, what=f"{price.what}, of what is lost here", option=None, saved=one.loss)


def table(found: Findings) -> pa.Table:
    """Return the prices of findings as rows of the table `prices`."""
    rows: list[tuple[int | None, Finding | None, Price]] = [
        (number, one, price) for number, one in enumerate(found, 1) for price in one.prices
    ]
    rows += [(None, None, price) for price in (found.together, found.ideal) if price is not None]
    columns = {
        "finding": [number for number, _, _ in rows],
        "rule": [one and (one.detected or one.rule) for _, one, _ in rows],
        "callpath_id": [one and one.callpath for _, one, _ in rows],
        "what": [price.what for _, _, price in rows],
        "label": [price.label for _, _, price in rows],
        "then": [price.then for _, _, price in rows],
        "option": [price.option for _, _, price in rows],
        "saved": [price.saved for _, _, price in rows],
        "bound": [price.is_bound for _, _, price in rows],
        "about": [price.is_rough for _, _, price in rows],
        "reason": [price.reason for _, _, price in rows],
    }
    return pa.table(columns, schema=schema_of("prices"))


def _attach(result: ResultData, found: Findings, prices: pa.Table) -> None:
    """Add stored prices to the findings that they were simulated for."""
    of_keys = {(one.rule, one.callpath): one for one in found}
    for line in prices.to_pylist():
        price = Price(
            line["what"],
            line["label"],
            line["then"],
            line["option"],
            line["saved"],
            line["bound"],
            line["about"],
            line["reason"],
        )
        if line["rule"] is None and price.is_bound:
            found.ideal = price
        elif line["rule"] is None:
            found.together = price
        elif (finding := of_keys.get((line["rule"], line["callpath_id"]))) is not None:
            finding.prices.append(price)
    for one in found:
        one.unpriced = _why_not(one) if one.prices else None
    _restate(result, found)


def _restate(result: ResultData, found: Findings) -> None:
    """Say only that others wait for it, of an imbalance that balancing saves nothing of."""
    run = None
    for number, one in enumerate(found):
        price = next((price for price in one.prices if price.label.startswith(_BALANCES)), None)
        if price is None or price.saved is None or price.saved >= NOTHING * found.length:
            continue
        one.remark("balance", Words("Balancing it alone saves nothing: others would be waited for as long."))
        if one.rule in _IMBALANCES:
            run = run or Run(result)
            found[number] = late_partner.restated(run, one)


def _why_not(one: Finding) -> str | None:
    """Return why a finding has no price; None if it has one, or at least a bound."""
    if one.price is not None:
        return None
    reasons = [price.reason for price in one.prices if not price.is_bound and price.reason is not None]
    if reasons:
        return reasons[0]
    return None if any(price.saved is not None for price in one.prices) else UNKNOWN
