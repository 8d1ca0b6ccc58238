"""Small exports of Nsight Systems, with the columns that a test is about."""

from __future__ import annotations

import sqlite3
from contextlib import closing

# What the tables of OpenMP have in common, and what each has besides.
_OPENMP = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER, eventKind INTEGER"
)
_CONSTRUCTS = {
    "PARALLEL": "parallelId INTEGER, parentTaskId INTEGER",
    "SYNC_REGION": "parallelId INTEGER, taskId INTEGER, kind INTEGER",
    "SYNC_REGION_WAIT": "parallelId INTEGER, taskId INTEGER, kind INTEGER",
    "TASK": "parallelId INTEGER, taskId INTEGER, kind INTEGER",
    "TASK_SCHEDULE": "parallelId INTEGER, priorTaskId INTEGER, priorTaskStatus INTEGER, nextTaskId INTEGER",
    "TASK_CREATE": "parentTaskId INTEGER, newTaskId INTEGER",
    "WORKSHARE": "kind INTEGER, parallelId INTEGER, taskId INTEGER, count INTEGER",
    "MUTEX_WAIT": "kind INTEGER, waitId INTEGER, taskId INTEGER",
    "CRITICAL_SECTION": "kind INTEGER, waitId INTEGER",
    "MUTEX_RELEASED": "kind INTEGER, waitId INTEGER, taskId INTEGER",
}
# Of each table the columns that the reader knows.
TABLES = {
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, name TEXT, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, systemClockNs INTEGER",
    "TARGET_INFO_GPU": "id INTEGER, name TEXT, busLocation TEXT, uuid TEXT",
    "TARGET_INFO_CUDA_DEVICE": "gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT",
    "SCHED_EVENTS": "start INTEGER, isSchedIn INTEGER, globalTid INTEGER",
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "MPI_RANKS": "globalTid INTEGER, rank INTEGER",
    "ThreadNames": "nameId INTEGER, priority INTEGER, globalTid INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, "
    "domainId INTEGER, text TEXT, textId INTEGER, globalTid INTEGER, endGlobalTid INTEGER, binaryData TEXT",
    "NVTX_PAYLOAD_SCHEMA_ENTRIES": "domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER, name TEXT, "
    "offset INTEGER",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
    "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "deviceId INTEGER, streamId INTEGER, correlationId INTEGER, "
    "globalPid INTEGER, syncType INTEGER, eventId INTEGER, eventSyncId INTEGER",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
    "eventId INTEGER, eventSyncId INTEGER",
    "MPI_P2P_EVENTS": "start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER, tag INTEGER, "
    "remoteRank INTEGER, size INTEGER, requestHandle INTEGER",
    "MPI_COLLECTIVES_EVENTS": "start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER, "
    "rootRank INTEGER, size INTEGER, recvSize INTEGER, requestHandle INTEGER",
    "MPI_START_WAIT_EVENTS": "start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, requestHandle INTEGER",
    "MPI_OTHER_EVENTS": "start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER",
    "MPI_COMMUNICATORS": "rank INTEGER, timestamp INTEGER, commHandle INTEGER, parentHandle INTEGER, "
    "localRank INTEGER, size INTEGER, groupRoot INTEGER, groupRootUid INTEGER, members TEXT, commUid INTEGER",
    "OSRT_API": "start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER",
    **{f"OPENMP_EVENT_KIND_{table}": f"{_OPENMP}, {columns}" for table, columns in _CONSTRUCTS.items()},
    **dict.fromkeys(
        ("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", "CUPTI_ACTIVITY_KIND_OPENACC_OTHER"),
        "start INTEGER, end INTEGER, eventKind INTEGER, nameId INTEGER, globalTid INTEGER, lineNo INTEGER, "
        "srcFile INTEGER, funcName INTEGER, bytes INTEGER",
    ),
    "PROFILER_OVERHEAD": "start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, returnValue INTEGER",
    "COMPOSITE_EVENTS": "id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, threadState INTEGER, "
    "globalTid INTEGER, cpuCycles INTEGER NOT NULL",
    "SAMPLING_CALLCHAINS": "id INTEGER, symbol INTEGER, module INTEGER, kernelMode INTEGER, unresolved INTEGER, "
    "originalIP INTEGER, stackDepth INTEGER",
    "UCP_SUBMIT_EVENTS": "start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, packedSize INTEGER",
}
PHRASE = "must not appear in any output"
MS = 1_000_000
# UTC of sessions.
START = 1_790_000_000_000_000_000
# The handle of MPI_COMM_WORLD, of which no export has a row.
WORLD = 0x60


def thread(rank=0, number=1):
    """Return the number of a thread; that of its process is the same without its last three bytes."""
    return 1 << 48 | (100 + rank) << 24 | (100 + rank + number)


def process(rank=0):
    return thread(rank) & ~0xFFFFFF


class Report:
    """An export while it is written.

    Parameters
    ----------
    rank
        The rank of its process, as MPI says; None if it says nothing.
    start
        UTC of the session, in ns.
    """

    def __init__(self, rank=0, *, says_rank=True, start=START, system=None):
        self.rank, self.strings = rank, {}
        self.rows = {name: [] for name in TABLES}
        self.add("META_DATA_EXPORT", name="EXPORT_PRODUCT_VERSION", value="2025.1.1.1")
        self.add("META_DATA_CAPTURE", name="PROCESS_0:ENVIRONMENT_VARIABLE", value=f"API_KEY={PHRASE}")
        self.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node0")
        self.add("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value=f"TOKEN={PHRASE}")
        self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=start, systemClockNs=system)
        if says_rank:
            self.add("MPI_RANKS", globalTid=thread(rank), rank=rank)

    def add(self, table, **values):
        """Add a row; columns that are not named are null."""
        self.rows[table].append(values)
        return self

    def name(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def range(self, text, begin, end, *, kind=59, number=1, **values):
        """Add a range of a thread, in ms."""
        at = {"start": int(begin * MS), "end": None if end is None else int(end * MS)}
        return self.add(
            "NVTX_EVENTS",
            **at,
            eventType=kind,
            text=text,
            globalTid=thread(self.rank, number),
            **({"domainId": 0} | values),
        )

    def call(self, name, begin, end, correlation=None):
        """Add a call of CUDA, in ms."""
        at = {"start": int(begin * MS), "end": int(end * MS), "eventClass": 0, "globalTid": thread(self.rank)}
        return self.add("CUPTI_ACTIVITY_KIND_RUNTIME", **at, correlationId=correlation, nameId=self.name(name))

    def kernel(self, name, begin, end, correlation=None, stream=7, context=1):
        """Add a kernel, in ms."""
        at = {"start": int(begin * MS), "end": int(end * MS), "globalPid": process(self.rank)}
        where = {"deviceId": 0, "contextId": context, "streamId": stream}
        return self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL", **at, **where, correlationId=correlation, shortName=self.name(name)
        )

    def sample(self, at, *functions, cycles=1):
        """Add a sample, in ms, with functions from the outside; none is one that is not resolved."""
        number = len(self.rows["COMPOSITE_EVENTS"]) + 1
        values = {"start": round(at * MS), "globalTid": thread(self.rank), "cpuCycles": cycles}
        self.add("COMPOSITE_EVENTS", id=number, **values)
        for depth, function in enumerate(reversed(functions)):
            symbol = self.name(function or "0x7f0012")
            module = self.name("/usr/lib/libm.so.6")
            frame = {"symbol": symbol, "module": module, "unresolved": int(function is None), "stackDepth": depth}
            self.add("SAMPLING_CALLCHAINS", id=number, **frame)
        return self

    def openmp(self, table, number, begin, end, **values):
        """Add a construct of OpenMP on the thread with a number, in ms."""
        at = {"start": round(begin * MS), "end": round(end * MS), "globalTid": thread(self.rank, number)}
        return self.add(f"OPENMP_EVENT_KIND_{table}", **at, **values)

    def system(self, name, begin, end, *, number=1):
        """Add a call of the operating system, in ms."""
        at = {"start": int(begin * MS), "end": int(end * MS), "globalTid": thread(self.rank, number)}
        return self.add("OSRT_API", **at, nameId=self.name(name))

    def mpi(self, name, begin, end, **values):
        """Add a call of MPI, in ms; its table is that of its kind, and `requests` has a row each."""
        row = {
            "start": int(begin * MS),
            "end": int(end * MS),
            "globalTid": thread(self.rank),
            "textId": self.name(name),
        }
        if "requests" in values:
            for request in values["requests"]:
                self.add("MPI_START_WAIT_EVENTS", **row, requestHandle=request)
        elif {"to", "source"} & values.keys():
            peer = values.pop("to", None)
            peer = values.pop("source") if peer is None else peer
            self.add("MPI_P2P_EVENTS", **({"commHandle": WORLD, "tag": 0, "size": 8} | row | values), remoteRank=peer)
        elif name.startswith(("MPI_Init", "MPI_Finalize", "MPI_Win")):
            self.add("MPI_OTHER_EVENTS", **row)
        else:
            self.add("MPI_COLLECTIVES_EVENTS", **({"commHandle": WORLD, "size": 8} | row | values))
        return self

    def write(self, path, *, page_size=4096, encoding="UTF-8", rename=(), statements=(), is_new=True):
        """Write the file; `rename` has tables with other names, `statements` are executed at the end."""
        if is_new:
            path.unlink(missing_ok=True)
        self.rows["StringIds"] = [{"id": number, "value": text} for text, number in self.strings.items()]
        with closing(sqlite3.connect(path)) as base:
            base.execute(f"PRAGMA page_size={page_size}")
            base.execute(f"PRAGMA encoding='{encoding}'")
            for table, declared in TABLES.items():
                name = dict(rename).get(table, table)
                base.execute(f"CREATE TABLE {name} ({declared})")
                columns = [column.split()[0] for column in declared.split(", ")]
                rows = [[row.get(column) for column in columns] for row in self.rows[table]]
                base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)
            for statement in statements:
                base.execute(statement)
            base.commit()
        return path


class MpiReport(Report):
    """A report from MPI_Init to MPI_Finalize, with the given calls between 1 and 90 ms."""

    def write(self, path, **options):
        self.mpi("MPI_Init", 0, 1).mpi("MPI_Finalize", 90, 91)
        return super().write(path, **options)


def visits(run, location=0):
    """Return what a location does: name, begin and end in ms of the session of a made report."""
    names = {row["id"]: row["name"] for row in run.definitions["Region"].to_pylist()}
    begun, done = [], []
    for event in run.events(location).to_pylist():
        if event["type"] == "Enter":
            begun.append((event["region"], event["time"]))
        elif event["type"] == "Leave":
            at = max(place for place, (region, _) in enumerate(begun) if region == event["region"])
            region, begin = begun.pop(at)
            done.append((names[region], (begin - START) / 1e6, (event["time"] - START) / 1e6))
    return sorted(done, key=lambda visit: (visit[1], -visit[2]))
