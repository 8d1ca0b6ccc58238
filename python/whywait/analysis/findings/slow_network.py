"""Transfers between nodes take longer than they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.changes import rank_list
from whywait.analysis.devices.groups import device_groups
from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Found, Run

NAME = "slow_network"
TITLE = "Slow network"
DOCUMENT = """\
Devices of several nodes transfer data for at least 2% of the time longer than the fastest 5% of such transfers
take; of the groups across nodes, the one with most of this is named. Look for a link or a node that is slow, and for
other jobs that share the network.
"""
FIGURES = Figures(
    excess=(
        "s",
        "the time of transfers between devices beyond what the fastest 5% of their kind take, if nothing hides it",
    ),
    nodes=("count", "the nodes"),
    groups=("count", "the groups with ranks on several nodes"),
    group=("name", "the group with most of the excess of all groups across nodes, and its ranks"),
    of_group=("share", "the part of that excess in this group"),
)

_LEAST = 0.02


def detect(run: Run) -> Found:
    """Yield the excess of transfers of groups across nodes."""
    loss, total = in_rows(run, "comm.excess"), run.device_time
    across = [group for group in device_groups(run.result) if len(group["nodes"]) > 1]
    if not across or loss <= _LEAST * total:
        return
    nodes = {node for group in across for node in group["nodes"]}
    what = "a group" if len(across) == 1 else "{groups} groups"
    words = FIGURES.say(
        f"Transfers of {what} across {{nodes}} nodes take {{excess}} longer than the fastest of their kind",
        **({} if len(across) == 1 else {"groups": len(across)}),
        nodes=len(nodes),
        excess=loss,
    )
    most = max(across, key=lambda group: group["excess"])
    whole = sum(group["excess"] for group in across)
    if len(across) > 1 and whole > 0:
        named = f"{most['name']} (ranks {rank_list(list(map(str, most['ranks'])))})"
        words += FIGURES.say(", {of_group} of it in {group}", of_group=most["excess"] / whole, group=named)
    evidence = {"groups": [{name: group[name] for name in ("name", "ranks", "nodes", "excess")} for group in across]}
    advice = "See which node's group is slow, and who shares its network."
    yield run.finding(NAME, words + ".", advice, loss, base="device", evidence=evidence)
