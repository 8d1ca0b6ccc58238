"""Say which ranks a hanging program of PyTorch waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

# So many operations are shown.
_SHOWN = 10


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    add_verb(
        verbs,
        "hang",
        "say which ranks a hanging program of PyTorch waits for",
        "Read the dumps of PyTorch's flight recorder (one file a rank, the rank at the end of its name), and say which "
        "ranks have not come to an operation in which others wait, and what they did last. To have them written when "
        "an operation times out, set TORCH_FR_BUFFER_SIZE=2000 and TORCH_FR_DUMP_ON_TIMEOUT=1 (in older versions "
        "TORCH_NCCL_TRACE_BUFFER_SIZE and TORCH_NCCL_DUMP_ON_TIMEOUT).",
        "whywait hang /tmp/nccl_traces/",
        run,
        {"directory": "the directory of the dumps"},
        analyzes=False,
    )


def run(options: argparse.Namespace) -> Answer:
    """Return who waits for whom."""
    import whywait

    found = whywait.hang(options.directory)
    return Answer({"directory": options.directory, **found}, lambda screen: _lines(found, screen.width))


def _lines(found: dict[str, Any], width: int) -> Iterator[Line]:
    from whywait.report.terminal import paragraph

    def say(text: str, indent: str = "") -> Iterator[Line]:
        for line in paragraph(text, width - len(indent)):
            yield [(indent, ""), *line]

    late = {rank for one in found["stuck"] for rank in one["late"]}
    if not found["stuck"]:
        yield from say(f"{found['ranks']} ranks: all operations that they have begun are complete.")
    elif found["circle"]:
        yield from say(f"{_ranks(sorted(late))} wait for each other in a circle.")
    elif found["causes"]:
        causes = [one["rank"] for one in found["causes"]]
        yield from say(f"{_ranks(causes)} {'is' if len(causes) == 1 else 'are'} waited for.")
    else:
        yield from say("All ranks have come to an operation that none has completed: see the network and the devices.")
    for one in found["stuck"][:_SHOWN]:
        yield from say(_stuck(one), "   ")
    if len(found["stuck"]) > _SHOWN:
        yield from say(f"and {len(found['stuck']) - _SHOWN} more operations", "   ")
    for one in found["causes"]:
        if one["last"] is not None:
            yield from say(f"Rank {one['rank']} last began {_operation(one['last'])}, which {_end(one['last'])}.")
    if found["missing"]:
        yield from say(f"No dump of {_ranks(found['missing']).lower()}.")


def _end(last: dict[str, Any]) -> str:
    return "completed" if last["complete"] else "did not complete"


def _operation(one: dict[str, Any]) -> str:
    place = f", {one['place']}" if one["place"] else ""
    return f"{one['operation']} {one['number']} of {one['group']}{place}"


def _stuck(one: dict[str, Any]) -> str:
    text = f"{_ranks(one['waiting'])} {'waits' if len(one['waiting']) == 1 else 'wait'} in {_operation(one)}"
    if one["late"]:
        text += f" for {_ranks(one['late']).lower()}"
    if one["kinds"]:
        text += "; " + ", ".join(f"rank {rank} calls {kind}" for rank, kind in list(one["kinds"].items())[:_SHOWN])
    return text


def _ranks(ranks: list[int]) -> str:
    from whywait.analysis.changes import rank_list

    return f"Rank{'s' * (len(ranks) > 1)} {rank_list([str(rank) for rank in ranks])}"
