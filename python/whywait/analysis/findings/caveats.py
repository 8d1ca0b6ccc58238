"""What the trace does not say, or what spoils the measurement, so that a verdict cannot stand without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.clocks import is_recommended
from whywait.analysis.findings.blame import LEAST
from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.few_cores import certainly
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Run
    from whywait.analysis.findings.words import Words

FIGURES = Figures(
    unknown=("share", "the part of the time of the run in calls of a communication library that is not known"),
    library=("name", "that library"),
    unmatched=("share", "the part of the receives that have no send in the trace"),
    inferred=("share", "the part of the CPU time of the focus that is waiting of which it is inferred what for"),
    missing=("count", "the ranks without events"),
    ranks=("count", "all ranks"),
    unseen=("share", "of the time of kernels that communicate, what follows the last known begin beside such ranks"),
    peers=("count", "the sends and receives whose peers are not recorded"),
    unknown_members=("share", "of the time of devices, that in which only kernels communicate that match no others"),
    worst=("s", "by how much the clocks of two locations violate the order of events at least"),
)


def caveats(run: Run) -> Iterator[Words]:
    """Yield what makes all findings doubtful, a sentence each."""
    for library in run.result.unknown_libraries:
        yield FIGURES.say(
            "{unknown} of the time lies in calls of {library}, "
            + ("of which the trace records nothing else" if library["is_silent"] else "which whywait does not know")
            + ": waiting in them is not seen.",
            unknown=library["share"],
            library=library["name"],
        )
    if run.unmatched:
        yield FIGURES.say(
            "{unmatched} of the receives have no send in this trace: their waiting is unknown.", unmatched=run.unmatched
        )
    if (inferred := run.inferred) >= LEAST:
        yield FIGURES.say(
            "{inferred} of the CPU time is waiting for late receivers in calls of which it is inferred which sends "
            "they complete.",
            inferred=inferred,
        )
    if missing := len(run.result.places.lost_ranks):
        ranks = run.result.facts["processes"]
        has, do = ("has", "it does") if missing == 1 else ("have", "they do")
        yield FIGURES.say(
            f"{{missing}} of {{ranks}} ranks {has} no events: what {do}, and who waits for it, is unknown.",
            missing=missing,
            ranks=ranks,
        )
    traces = run.result.facts.get("traces")
    if traces is not None and traces["missing"]:
        known = traces["world_size"] - len(traces["missing"])
        has, them = ("has", "it") if len(traces["missing"]) == 1 else ("have", "them")
        words = FIGURES.say(
            f"{{missing}} of {{ranks}} ranks {has} no trace",
            missing=len(traces["missing"]),
            ranks=traces["world_size"],
        )
        unseen = sum(group["time_after_last"] for group in traces["groups"] if group["partial"]) * 1e-9
        communication = run.result.profile.total("ccl") if known and "ccl" in run.result.profile.metrics else 0.0
        if communication > 0:
            share = min(1.0, unseen / communication)
            words += FIGURES.say(f"; {{unseen}} of the communication cannot be explained without {them}", unseen=share)
        yield words + "."
    if traces is not None and len(traces["ranks"]) > 1 and not traces["groups"] and "nsight" not in run.result.facts:
        yield FIGURES.say(
            "No kernel or operation was found that communicates (see --comm-kernels): who waits for whom is unknown."
        )
    if traces is not None and (unmatched := in_rows(run, "comm.unmatched")) >= LEAST * run.device_time > 0:
        yield FIGURES.say(
            "For {unknown_members} of the time of GPUs, only kernels run whose operation on other ranks is not known: "
            "waiting in them is not seen (see whywait info).",
            unknown_members=unmatched / run.device_time,
        )
    if traces is not None and "shapes" not in traces["recorded"]:
        unnamed = sum(group["message_parts"] for group in traces["groups"] if not group["messages"])
        if unnamed and not run.device_lines:
            yield FIGURES.say(
                "The peers of {peers} sends and receives are not recorded (record_shapes=True has them): who waits for "
                "whom in these is unknown.",
                peers=unnamed,
            )
    if is_recommended(run.result):
        yield FIGURES.say(
            "The clocks disagree by up to {worst}, and waits are wrong by as much: see --clocks.",
            worst=float(run.result.facts["clocks"]["worst"]),
        )
    if (shared := certainly(run)) is not None:
        yield shared
