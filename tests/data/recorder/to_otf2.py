"""Makes an OTF2 archive, laid out as Score-P does it, of the logs that recorder.c left, and the file of known waits."""

import inspect
import json
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import _otf2

TOLERANCE, RELATIVE_TOLERANCE = 0.002, 0.05  # the larger one holds; many small waits add up their noise
UNDEFINED_REF = 2**32 - 1
# Calls with so much work of their own that their length says nothing against a known wait.
LABORIOUS = ("MPI_Finalize", "MPI_Win_create", "MPI_Win_allocate", "MPI_Win_free")

ROLES = {
    "POINT2POINT": """Send Ssend Bsend Rsend Recv Isend Issend Ibsend Irsend Irecv Send_init Ssend_init Recv_init
        Sendrecv Sendrecv_replace Probe Iprobe""",
    "BARRIER": "Barrier Ibarrier",
    "COLL_ONE2ALL": "Bcast Scatter Scatterv",
    "COLL_ALL2ONE": "Gather Gatherv Reduce",
    "COLL_ALL2ALL": "Allgather Allreduce Iallreduce Alltoall Alltoallv Reduce_scatter_block",
    "COLL_OTHER": "Scan Exscan",
    "RMA": "Put Get Rput Rget",
    "ATOMIC": "Accumulate Raccumulate Get_accumulate Rget_accumulate Fetch_and_op Compare_and_swap",
    "ALLOCATE": "Win_allocate",
}
ROLE_OF = {f"MPI_{name}": role for role, names in ROLES.items() for name in names.split()}

# Which definition an argument of the event writer names, by the argument's own name.
MAPPED = {"region": "REGION", "communicator": "COMM", "group": "GROUP", "win": "RMA_WIN"}


@dataclass
class Definitions:
    """Definitions of the whole run: each key has the id of its first appearance."""

    strings: dict = field(default_factory=lambda: {"": 0})
    regions: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)
    comms: dict = field(default_factory=dict)
    windows: dict = field(default_factory=dict)

    @staticmethod
    def number(table, key):
        return table.setdefault(key, len(table))

    def string(self, text):
        return self.number(self.strings, text)


@dataclass
class Rank:
    """What one rank logged."""

    clock: int = 0
    events: list = field(default_factory=list)
    expected: list = field(default_factory=list)
    regions: list = field(default_factory=list)  # by local id, as the lists below: the key in Definitions
    comms: list = field(default_factory=list)
    groups: list = field(default_factory=list)
    windows: list = field(default_factory=list)


def read(path, ranks):
    """Read one rank's log; communicators and windows get keys that are equal on all ranks which share them."""
    rank = Rank()
    created = Counter()  # how many were made so far of each kind: calls on one communicator have one order everywhere
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            record, time, *arguments = line.split()
            rank.events.append((record, int(time), arguments))
            continue
        _, kind, *words = line.split()
        match kind:
            case "clock":
                rank.clock = int(words[0])
            case "region":
                rank.regions.append(words[1])
            case "group":
                rank.groups.append(("COMM_GROUP", tuple(map(int, words[1:]))))
            case "comm" | "nocomm":
                parent = int(words[1 if kind == "comm" else 0])
                members = tuple(map(int, words[2:]))
                created["comm", parent] += parent >= 0
                if kind == "nocomm":
                    continue
                if parent >= 0:
                    rank.comms.append((rank.comms[parent], created["comm", parent], members))
                else:  # the recorder's first communicator is MPI_COMM_WORLD, its second MPI_COMM_SELF
                    rank.comms.append((None, len(rank.comms), members if not rank.comms else ()))
            case "intercomm":
                bar = words.index("|")
                sides = tuple(sorted(tuple(map(int, side)) for side in (words[2:bar], words[bar + 1 :])))
                created[sides] += 1
                rank.comms.append((rank.comms[int(words[1])], created[sides], sides))
            case "window":
                comm = rank.comms[int(words[1])]
                created["window", comm] += 1
                rank.windows.append((comm, created["window", comm], f"{words[2]} window"))
            case "expect":
                metrics, callpath, milliseconds, cause = words
                rank.expected.append((metrics.split("+"), callpath, float(milliseconds) / 1e3, int(cause)))
    if rank.comms[0][2] != tuple(range(ranks)):
        raise ValueError(f"{path} is not of a run with {ranks} ranks")
    return rank


def name_functions(logs, program):
    """Replace addresses by (function, file, line)."""
    addresses = sorted({name[1:] for log in logs for name in log.regions if name.startswith("@")})
    found = subprocess.run(["addr2line", "-f", "-e", program, *addresses], capture_output=True, text=True, check=True)
    lines = found.stdout.splitlines()
    names = {}
    for address, function, place in zip(addresses, lines[::2], lines[1::2], strict=True):
        file, line = place.split()[0].rsplit(":", 1)
        names["@" + address] = (function, Path(file).name, int(line))
    for log in logs:
        log.regions = [names.get(name, (name, "MPI", 0)) for name in log.regions]


def collect(logs, program):
    """Gather the definitions of all ranks; also where each local id leads."""
    all_ = Definitions()
    all_.groups[("COMM_LOCATIONS", tuple(range(len(logs))))] = 0
    all_.regions[(program.name, None, 0)] = 0
    tables = []
    for log in logs:
        for comm in log.comms:
            members = comm[2]
            if is_inter(comm):
                for side in members:
                    all_.number(all_.groups, ("COMM_GROUP", side))
            else:
                all_.number(all_.groups, ("COMM_GROUP", members) if members else ("COMM_SELF", ()))
        tables.append(
            {
                "REGION": [all_.number(all_.regions, key) for key in log.regions],
                "GROUP": [all_.number(all_.groups, key) for key in log.groups],
                "COMM": [all_.number(all_.comms, key) for key in log.comms],
                "RMA_WIN": [all_.number(all_.windows, key) for key in log.windows],
            }
        )
    return all_, tables


def is_inter(comm):
    """Tell whether this key of a communicator is of one between two groups."""
    return bool(comm[2]) and isinstance(comm[2][0], tuple)


def enum(prefix, name):
    return getattr(_otf2, f"{prefix}_{name}")


def convert(record, arguments):
    """Arguments of one event as the library wants them; ids stay local, the mapping tables translate them."""
    parameters = list(inspect.signature(getattr(_otf2, f"EvtWriter_{record}")).parameters)[3:]
    converters = {
        "collectiveOp": lambda text: enum("COLLECTIVE_OP", text),
        "syncLevel": lambda text: _otf2.RmaSyncLevel(int(text)),
        "lockType": lambda text: enum("LOCK", ("EXCLUSIVE", "SHARED")[int(text)]),
        "type": lambda text: enum("RMA_ATOMIC_TYPE", text),
    }
    return [converters.get(name, int)(text) for name, text in zip(parameters, arguments, strict=True)]


def write_events(archive, rank, log, table, offset, program_string):
    definitions = _otf2.Archive_GetDefWriter(archive, rank)
    for kind, ids in table.items():
        if ids:
            id_map = _otf2.IdMap_CreateFromUint64Array(ids, False)
            _otf2.DefWriter_WriteMappingTable(definitions, enum("MAPPING", kind), id_map)
            _otf2.IdMap_Free(id_map)
    for time in (log.events[0][1], log.events[-1][1]):
        _otf2.DefWriter_WriteClockOffset(definitions, time, offset, 0.0)
    _otf2.Archive_CloseDefWriter(archive, definitions)

    writer = _otf2.Archive_GetEvtWriter(archive, rank)
    for record, time, arguments in log.events:
        if record == "ProgramBegin":
            attributes = _otf2.AttributeList_New()
            _otf2.AttributeList_AddUint64(attributes, 0, int(arguments[1]))
            _otf2.EvtWriter_ProgramBegin(writer, attributes, time, program_string, [])
            _otf2.AttributeList_Delete(attributes)
        else:
            getattr(_otf2, f"EvtWriter_{record}")(writer, None, time, *convert(record, arguments))
    _otf2.Archive_CloseEvtWriter(archive, writer)


def write_definitions(archive, all_, logs, begin, end):
    """Write the global definitions, each after those it names."""
    string = all_.string
    entries = []  # strings are collected while the others are composed, and written before them

    def add(record, *arguments):
        entries.append((record, arguments))

    add("Paradigm", _otf2.PARADIGM_MPI, string("MPI"), _otf2.PARADIGM_CLASS_PROCESS)
    add("SystemTreeNode", 0, string("Linux"), string("machine"), UNDEFINED_REF)
    add("SystemTreeNode", 1, string("localhost"), string("node"), 0)
    for rank, log in enumerate(logs):
        add("LocationGroup", rank, string(f"MPI Rank {rank}"), _otf2.LOCATION_GROUP_TYPE_PROCESS, 1, UNDEFINED_REF)
        add("Location", rank, string("Master thread"), _otf2.LOCATION_TYPE_CPU_THREAD, len(log.events), rank)
    for (name, file, line), ref in all_.regions.items():
        mpi = file == "MPI"
        role = "ARTIFICIAL" if file is None else ROLE_OF.get(name, "FUNCTION")
        paradigm = "MEASUREMENT_SYSTEM" if file is None else "MPI" if mpi else "COMPILER"
        place = UNDEFINED_REF if file is None else string(file)
        add("Region", ref, string(name), string(name), 0, enum("REGION_ROLE", role), enum("PARADIGM", paradigm),
            _otf2.REGION_FLAG_NONE, place, line, 0)  # fmt: skip
    for (kind, members), ref in all_.groups.items():
        add("Group", ref, 0, enum("GROUP_TYPE", kind), _otf2.PARADIGM_MPI, _otf2.GROUP_FLAG_NONE, members)
    for key, ref in all_.comms.items():
        parent, number, members = key
        if is_inter(key):
            sides = [all_.groups["COMM_GROUP", side] for side in members]
            add("InterComm", ref, 0, *sides, all_.comms[parent], _otf2.COMM_FLAG_NONE)
            continue
        name = ("MPI_COMM_WORLD", "MPI_COMM_SELF")[number] if parent is None else ""
        group = all_.groups[("COMM_GROUP", members) if members else ("COMM_SELF", ())]
        add("Comm", ref, string(name), group, UNDEFINED_REF if parent is None else all_.comms[parent],
            _otf2.COMM_FLAG_NONE)  # fmt: skip
    for (comm, _, name), ref in all_.windows.items():
        add("RmaWin", ref, string(name), all_.comms[comm], _otf2.RMA_WIN_FLAG_CREATE_DESTROY_EVENTS)
    add("Attribute", 0, string("ProcessId"), string("Process identifier"), _otf2.TYPE_UINT64)

    writer = _otf2.Archive_GetGlobalDefWriter(archive)
    _otf2.GlobalDefWriter_WriteClockProperties(writer, 10**9, begin, end - begin, 2**64 - 1)
    for text, ref in all_.strings.items():
        _otf2.GlobalDefWriter_WriteString(writer, ref, text)
    for record, arguments in entries:
        getattr(_otf2, f"GlobalDefWriter_Write{record}")(writer, *arguments)
    _otf2.Archive_CloseGlobalDefWriter(archive, writer)


def write_archive(logs, program, directory):
    all_, tables = collect(logs, program)
    program_string = all_.string(program.name)
    offsets = [log.clock - min(log.clock for log in logs) for log in logs]
    begin = min(log.events[0][1] + offset for log, offset in zip(logs, offsets, strict=True))
    end = max(log.events[-1][1] + offset for log, offset in zip(logs, offsets, strict=True))

    archive = _otf2.Archive_Open(
        str(directory), "traces", _otf2.FILEMODE_WRITE, 1 << 20, 1 << 18, _otf2.SUBSTRATE_POSIX, _otf2.COMPRESSION_NONE
    )
    flush = _otf2.FlushCallbacks(pre_flush=lambda *_: _otf2.FLUSH, post_flush=None)
    _otf2.Archive_SetFlushCallbacks(archive, flush, None)
    _otf2.Archive_SetSerialCollectiveCallbacks(archive)
    _otf2.Archive_SetCreator(archive, "whywait test recorder")
    _otf2.Archive_OpenDefFiles(archive)
    _otf2.Archive_OpenEvtFiles(archive)
    for rank, (log, table, offset) in enumerate(zip(logs, tables, offsets, strict=True)):
        write_events(archive, rank, log, table, offset, program_string)
    _otf2.Archive_CloseEvtFiles(archive)
    _otf2.Archive_CloseDefFiles(archive)
    write_definitions(archive, all_, logs, begin, end)
    _otf2.Archive_Close(archive)


def mpi_seconds(log):
    """Time of one rank in MPI calls, by the path of their regions: from Enter and Leave alone."""
    spent = defaultdict(int)
    stack = []
    for record, time, arguments in log.events:
        if record == "Enter":
            stack.append((log.regions[int(arguments[0])][0], time))
        elif record == "Leave":
            path = "/".join(name for name, _ in stack)
            name, entered = stack.pop()
            if name.startswith("MPI_"):
                spent[path] += time - entered
    return {path: ticks / 1e9 for path, ticks in spent.items()}


def known_waits(logs):
    """Collect what the programs expect; a run too disturbed to show it is refused, judged by its calls' durations."""
    known, misses = [], []
    for rank, log in enumerate(logs):
        spent = mpi_seconds(log)
        for metrics, callpath, seconds, cause in log.expected:
            paths = [path for path in spent if f"/{callpath}/" in f"/{path}/"]
            measured = sum(spent[path] for path in paths)
            tolerance = max(TOLERANCE, RELATIVE_TOLERANCE * seconds)
            excess = 0.0 if callpath.endswith(LABORIOUS) else measured - seconds
            if seconds and (measured < seconds - tolerance or excess > tolerance):
                misses.append(f"rank {rank}: {callpath} took {measured * 1e3:.2f} ms, expected {seconds * 1e3:.2f} ms")
            known.append({"metrics": metrics, "rank": rank, "callpath": callpath, "seconds": seconds,
                          "tolerance": tolerance, "cause": None if cause < 0 else cause})  # fmt: skip
    return known, misses


def make(log_directory, program, ranks, directory):
    """Write archive and expected.json into `directory`; return what makes the run unfit, an empty list if nothing."""
    logs = [read(log_directory / f"rank.{rank}.log", ranks) for rank in range(ranks)]
    name_functions(logs, program)
    known, misses = known_waits(logs)
    if not misses:
        write_archive(logs, program, directory)
        lines = ",\n".join(f"  {json.dumps(entry)}" for entry in known)
        (directory / "expected.json").write_text(f"[\n{lines}\n]\n")
    return misses
