"""Compares the MPI events of two archives of the same program: `python tests/record/compare.py A B`.

Reads both with the official `otf2` package. What a run cannot repeat is left out: times, how often a program polled,
numbers of requests and of one-sided operations (only what belongs together counts), and the order of operations on
different partners. Prints what differs, a line each, and exits with 1 if anything does.
"""

import sys
from collections import Counter, defaultdict
from pathlib import Path

import otf2
from otf2 import events as records

# Programs call these until something has happened.
POLLS = frozenset(
    """MPI_Test MPI_Testall MPI_Testany MPI_Testsome MPI_Waitsome MPI_Iprobe MPI_Improbe MPI_Win_test
    MPI_Request_get_status MPI_Wtime""".split()
)


def text(value):
    """Name an enumeration's value."""
    return str(value).rpartition(".")[2]


class Reading:
    """What one location of an archive did, in terms that do not depend on the run."""

    def __init__(self):
        self.visits = Counter()
        self.records = Counter()  # everything that has no number to pair it with others
        self.order = defaultdict(list)  # messages between two processes, synchronization of a window
        self.requests = defaultdict(list)  # by id
        self.operations = defaultdict(list)  # by window and matching id
        self.io = defaultdict(list)  # by matching id
        self.windows = {}
        self.function = []

    def sections(self):
        """Return what must be equal, by name."""
        lives = Counter()
        for life in self.requests.values():
            # A persistent request has one life for each start.
            for number, step in enumerate(life):
                if number == 0 or step[0] in {"MpiIsend", "MpiIrecvRequest", "NonBlockingCollectiveRequest"}:
                    parts = [step]
                    for later in life[number + 1 :]:
                        if later[0] in {"MpiIsend", "MpiIrecvRequest", "NonBlockingCollectiveRequest"}:
                            break
                        parts.append(later)
                    lives[tuple(parts)] += 1
        return {
            "visits": self.visits,
            "records": self.records,
            "order": Counter({(key, tuple(value)): 1 for key, value in self.order.items()}),
            "requests": lives,
            "operations": Counter(tuple(sorted(life)) for life in self.operations.values()),
            "io": Counter(tuple(life) for life in self.io.values()),
        }


def members(group, own):
    """Return the ranks of a group."""
    if group.group_type == otf2.GroupType.COMM_SELF:
        return (own,)
    return tuple(location._ref for location in group.members)


def communicator(comm, own):
    """Return a communicator as the ranks of its members."""
    if isinstance(comm, otf2.definitions.InterComm):
        return tuple(sorted((members(comm.groupA, own), members(comm.groupB, own))))
    return members(comm.group, own)


def read(anchor):
    """Return the readings of an archive by location."""
    found = {}
    with otf2.reader.open(str(anchor)) as trace:
        for location, event in trace.events:
            note(found.setdefault(location._ref, Reading()), location._ref & 0xFFFFFFFF, event)
    return {location: reading.sections() for location, reading in found.items()}


def note(reading, own, event):  # noqa: PLR0915
    kind = type(event).__name__
    if isinstance(event, records.Enter | records.Leave):
        region = event.region.name
        if event.region.paradigm != otf2.Paradigm.MPI:
            return
        if isinstance(event, records.Leave):
            reading.function.pop()
        else:
            reading.function.append(region)
            if region not in POLLS:
                reading.visits[region] += 1
        return
    function = reading.function[-1] if reading.function else ""
    if not function:
        return
    match event:
        case records.MpiSend() | records.MpiIsend():
            comm = communicator(event.communicator, own)
            what = (kind, function, event.receiver, event.msg_tag, event.msg_length, comm)
            reading.order["sends", event.receiver, comm].append(what)
            if isinstance(event, records.MpiIsend):
                reading.requests[event.request_id].append(what)
        case records.MpiRecv() | records.MpiIrecv():
            comm = communicator(event.communicator, own)
            what = (kind, function, event.sender, event.msg_tag, event.msg_length, comm)
            if isinstance(event, records.MpiIrecv):
                reading.requests[event.request_id].append(what)
            else:
                reading.order["receives", event.sender, comm].append(what)
        case records.MpiIrecvRequest() | records.MpiIsendComplete() | records.MpiRequestCancelled():
            reading.requests[event.request_id].append((kind, function))
        case records.MpiRequestTest():
            pass
        case records.NonBlockingCollectiveRequest():
            reading.requests["collective", event.request_id].append((kind, function))
        case records.NonBlockingCollectiveComplete():
            comm = communicator(event.communicator, own)
            what = (kind, function, text(event.collective_op), comm, event.root, event.size_sent, event.size_received)
            reading.requests["collective", event.request_id].append(what)
        case records.MpiCollectiveEnd():
            comm = communicator(event.communicator, own)
            what = (kind, function, text(event.collective_op), event.root, event.size_sent, event.size_received)
            reading.order["collectives", comm].append(what)
        case records.RmaPut() | records.RmaGet():
            win = window(reading, event.win, own)
            what = (kind, function, win, event.remote, event.bytes)
            reading.operations[win, event.matching_id].append(what)
        case records.RmaAtomic():
            win = window(reading, event.win, own)
            sizes = (event.bytes_sent, event.bytes_received)
            reading.operations[win, event.matching_id].append(
                (kind, function, win, event.remote, text(event.type), sizes)
            )
        case records.RmaOpCompleteNonBlocking() | records.RmaOpCompleteRemote() | records.RmaOpCompleteBlocking():
            win = window(reading, event.win, own)
            reading.operations[win, event.matching_id].append((kind, function))
        case records.RmaCollectiveEnd():
            win = window(reading, event.win, own)
            what = (function, text(event.collective_op), event.sync_level.value, event.root)
            reading.order["window", win].append(what)
        case records.RmaGroupSync():
            if function == "MPI_Win_test" and not event.sync_level.value:
                return
            win = window(reading, event.win, own)
            what = (function, event.sync_level.value, members(event.group, own))
            reading.order["window", win].append(what)
        case records.RmaRequestLock() | records.RmaAcquireLock() | records.RmaReleaseLock():
            win = window(reading, event.win, own)
            lock = text(event.lock_type) if hasattr(event, "lock_type") else ""
            reading.order["window", win].append((kind, function, event.remote, event.lock_id, lock))
        case records.RmaWinCreate() | records.RmaWinDestroy():
            reading.order["window", window(reading, event.win, own)].append((kind, function, event.win.name))
        case records.IoOperationBegin():
            what = (
                kind,
                function,
                file(event.handle),
                text(event.mode),
                str(event.operation_flags),
                event.bytes_request,
            )
            reading.io[event.matching_id].append(what)
        case records.IoOperationComplete():
            reading.io[event.matching_id].append((kind, function, file(event.handle), event.bytes_result))
        case records.IoCreateHandle():
            what = (kind, function, file(event.handle), text(event.mode), str(event.creation_flags))
            reading.records[what, str(event.status_flags)] += 1
        case records.IoDestroyHandle():
            reading.records[kind, function, file(event.handle)] += 1
        case records.IoDeleteFile():
            reading.records[kind, function, Path(event.file.name).name] += 1
        case records.IoSeek():
            what = (kind, function, file(event.handle), event.offset_request, text(event.whence), event.offset_result)
            reading.records[what] += 1
        case _:
            reading.records[kind, function] += 1


def file(handle):
    """Name a file without its directory."""
    return Path(handle.file.name).name


def window(reading, win, own):
    """Return a window as the members of its communicator and how many these had before it."""
    if win._ref not in reading.windows:
        comm = communicator(win.comm, own)
        number = sum(1 for other, _ in reading.windows.values() if other == comm)
        reading.windows[win._ref] = (comm, number)
    return reading.windows[win._ref]


def differences(a, b):
    """Yield the differences between two archives, given by their anchors, as text."""
    first, second = read(a), read(b)
    for location in sorted({*first, *second}):
        if location not in first or location not in second:
            yield f"location {location}: only in {'first' if location in first else 'second'}"
            continue
        for section, expected in first[location].items():
            got = second[location][section]
            for sign, more in (("-", expected - got), ("+", got - expected)):
                for key, count in sorted(more.items(), key=str):
                    yield f"location {location}: {section}: {sign}{count} {key}"


def anchor(path):
    """Return the anchor of an archive that is given by it or by its directory."""
    path = Path(path)
    return path / "traces.otf2" if path.is_dir() else path


def main(arguments):
    found = list(differences(*map(anchor, arguments)))
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
