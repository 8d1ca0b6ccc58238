"""Which ranks a distributed program waits for when it hangs, from the dumps of PyTorch's flight recorder.

The recorder keeps the last operations of each process in a ring, and writes it when an operation times out. An
operation that some ranks have not begun waits for these; those of them that wait themselves, in another operation, are
not the cause.

*Source*: ``torch/csrc/distributed/c10d/FlightRecorder.hpp`` for the format.
"""

from __future__ import annotations

import json
import pickle
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from os import PathLike

_RANK = re.compile(r"(\d+)(?:\.json|\.pkl|\.pickle)?$")
_PEERS = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+|\?)$")
# Frames of the library itself say nothing about the program.
_LIBRARY = re.compile(r"(^|/)torch/|^<frozen")

_Group = tuple[str, str]
_Entry = dict[str, Any]


def hang(directory: str | PathLike[str]) -> dict[str, Any]:
    """Find the ranks that others wait for in operations that did not complete.

    Parameters
    ----------
    directory
        The dumps of PyTorch's flight recorder, one file a rank, with the rank at the end of its name: what
        ``TORCH_FR_DUMP_TEMP_FILE`` names (pickled), or the same as JSON.

    Returns
    -------
    dict
        ``ranks``: number of dumps; ``missing``: members of groups without a dump; ``stuck``: the operations that did
        not complete, each with ``group``, ``number``, ``operation``, ``waiting`` and ``late`` (ranks), ``place``
        (source line of a rank that waits) and ``kinds`` (operation by rank, if ranks call different ones); ``causes``:
        ranks that others wait for and that wait for nobody, with the ``last`` operation of each; ``circle``: whether
        ranks wait for each other.

    Raises
    ------
    whywait.ArchiveError
        If there is no dump, or one cannot be read.
    """
    dumps = _read(Path(directory))
    groups = _groups(dumps)
    stuck = [one for group in sorted(groups) for one in _of_group(dumps, group, groups[group])]
    waits: dict[int, set[int]] = defaultdict(set)
    for one in stuck:
        for rank in one["waiting"]:
            waits[rank].update(one["late"])
    awaited = set().union(*waits.values())
    causes = sorted(awaited - waits.keys())
    return {
        "ranks": len(dumps),
        "missing": sorted(set().union(*groups.values()) - dumps.keys()),
        "stuck": stuck,
        "causes": [{"rank": rank, "last": _last(dumps, rank)} for rank in causes],
        "circle": bool(awaited) and not causes,
    }


class _Plain(pickle.Unpickler):
    """Reads numbers, strings and containers: a file from elsewhere must not run code."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")


def _read(directory: Path) -> dict[int, _Entry]:
    """Return the dump of each rank."""
    if not directory.is_dir():
        raise _native.ArchiveError(f"{directory}: not a directory with dumps of PyTorch's flight recorder")
    found: dict[int, _Entry] = {}
    for file in sorted(one for one in directory.iterdir() if one.is_file() and _RANK.search(one.name)):
        rank = int(_RANK.findall(file.name)[0])
        dump = _read_one(file)
        if rank in found and file.suffix == ".json":
            # The same without frames.
            continue
        found[rank] = dump
    if not found:
        raise _native.ArchiveError(f"{directory}: no dumps of PyTorch's flight recorder (such as nccl_trace_rank_0)")
    return found


def _read_one(file: Path) -> _Entry:
    with file.open("rb") as content:
        is_json = content.read(1) == b"{"
        content.seek(0)
        try:
            dump = json.load(content) if is_json else _Plain(content).load()
        except Exception as error:  # noqa: BLE001 Damaged pickles raise anything.
            raise _native.ArchiveError(f"{file}: no dump of PyTorch's flight recorder: {error}") from None
    if not isinstance(dump, dict) or not isinstance(entries := dump.get("entries", []), list):
        raise _native.ArchiveError(f"{file}: no dump of PyTorch's flight recorder")
    dump["entries"] = [entry for entry in entries if _is_entry(entry)]
    return dump


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("profiling_name"), str)
        and isinstance(entry.get("collective_seq_id", 0), int)
        and isinstance(group := entry.get("process_group", ()), list | tuple)
        and len(group) > 1
    )


def _group_of(entry: _Entry) -> _Group:
    name, description = entry["process_group"][:2]
    return str(name), str(description)


def _groups(dumps: Mapping[int, _Entry]) -> dict[_Group, set[int]]:
    """Return the ranks of each group: those that the dumps list, else those that used it; all of the default group."""
    members: dict[_Group, set[int]] = defaultdict(set)
    for rank, dump in dumps.items():
        configured = dump.get("pg_config")
        for name, group in (configured if isinstance(configured, dict) else {}).items():
            listed = re.findall(r"\d+", str(group.get("ranks", ""))) if isinstance(group, dict) and name else []
            if listed:
                members[str(name), str(group.get("desc", ""))].update(map(int, listed))
        for entry in dump["entries"]:
            members[_group_of(entry)].add(rank)
    for (_, description), ranks in members.items():
        if description == "default_pg":
            ranks.update(dumps)
    return dict(members)


def _is_complete(entry: _Entry) -> bool:
    return entry.get("state") == "completed" or bool(entry.get("retired"))


def _kind(entry: _Entry) -> str:
    name: str = entry["profiling_name"]
    return name.partition(":")[2] or name


def _place(entry: _Entry) -> str | None:
    """Return the source line of the program that began an operation."""
    frames = [frame for frame in entry.get("frames") or [] if isinstance(frame, dict)]
    own = next((frame for frame in frames if not _LIBRARY.search(str(frame.get("filename", "")))), None)
    if own is None:
        return None
    return f"{Path(str(own.get('filename', ''))).name}:{own.get('line', 0)} ({own.get('name', '')})"


def _described(entry: _Entry) -> dict[str, Any]:
    is_message = bool(entry.get("is_p2p"))
    name, description = _group_of(entry)
    return {
        "group": name if description in {"", "undefined"} else description,
        "number": entry.get("p2p_seq_id" if is_message else "collective_seq_id", 0),
        "operation": _kind(entry),
        "place": _place(entry),
    }


def _last(dumps: Mapping[int, _Entry], rank: int) -> dict[str, Any] | None:
    """Return the last operation that a rank began, and whether it completed; None without a dump or an operation."""
    entries = dumps[rank]["entries"] if rank in dumps else []
    if not entries:
        return None
    entry = max(entries, key=lambda one: one.get("record_id", 0))
    return {**_described(entry), "complete": _is_complete(entry)}


def _of_group(dumps: Mapping[int, _Entry], group: _Group, members: set[int]) -> Iterable[dict[str, Any]]:
    """Yield the first operation of all that did not complete, and messages that did not."""
    of_ranks: dict[int, dict[int, _Entry]] = {rank: {} for rank in sorted(members & dumps.keys())}
    for rank, entries in of_ranks.items():
        for entry in dumps[rank]["entries"]:
            if _group_of(entry) == group and not entry.get("is_p2p"):
                entries[entry.get("collective_seq_id", 0)] = entry
    begun = {rank: max(entries, default=0) for rank, entries in of_ranks.items()}
    numbers = sorted({number for entries in of_ranks.values() for number in entries})
    unknown = sorted(members - dumps.keys())
    for number in numbers:
        here = {rank: entries[number] for rank, entries in of_ranks.items() if number in entries}
        waiting = [rank for rank, entry in here.items() if not _is_complete(entry)]
        kinds = {rank: _kind(entry) for rank, entry in here.items()}
        if not waiting:
            continue
        late = [rank for rank, last in begun.items() if last < number]
        yield {
            **_described(here[waiting[0]]),
            "waiting": waiting,
            "late": late or unknown,
            "kinds": kinds if len(set(kinds.values())) > 1 else None,
        }
        break
    yield from _messages(dumps, group, sorted(members))


def _messages(dumps: Mapping[int, _Entry], group: _Group, members: list[int]) -> Iterable[dict[str, Any]]:
    """Yield the sends and receives that did not complete, and whose peer has none open in return."""
    still_open: dict[int, list[tuple[str, int, _Entry]]] = defaultdict(list)
    for rank in members:
        for entry in dumps[rank]["entries"] if rank in dumps else []:
            peers = _PEERS.match(_kind(entry))
            if _group_of(entry) == group and peers and not _is_complete(entry):
                peer = int(peers[3]) if peers[3] != "?" else len(members)
                still_open[rank].append((peers[1], members[peer] if peer < len(members) else -1, entry))
    for rank, entries in still_open.items():
        for direction, peer, entry in entries:
            answers = {one for one, other, _ in still_open.get(peer, []) if other == rank}
            if peer not in {-1, rank} and not answers - {direction}:
                yield {**_described(entry), "waiting": [rank], "late": [peer], "kinds": None}
                break
