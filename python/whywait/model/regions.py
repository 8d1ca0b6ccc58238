"""Masks of call paths for derived metrics, by the paradigms and roles of regions that the core recognizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Paradigms of communication between processes.
COMMUNICATION = frozenset({"mpi", "shmem", "armci", "pgas"})
#: Other libraries of communication: the analysis knows nothing but the names of their calls.
UNKNOWN = frozenset(_native.unknown_libraries())
#: What all of them are together, as a paradigm and as a mask.
OTHER = "other_communication"
# Paradigms whose regions do not count as computation.
_LIBRARIES = COMMUNICATION | UNKNOWN | {"ccl", "openmp", "pthread", "openacc", "opencl", "cuda", "hip", "io"}

# Variants of MPI calls: for large counts, and with the underscores of Fortran compilers.
_VARIANT = "(_c)?_*"


@dataclass(frozen=True, slots=True)
class Region:
    """A function or construct, in the terms of the classes of call paths.

    Attributes
    ----------
    name
        As recorded, or demangled.
    paradigm
        ``mpi``, ``openmp``, ``user``, ``measurement``, ...
    role
        ``function``, ``barrier``, ``point2point``, ``one2all``, ...
    file
        The source file; for accelerator kernels, the kind of kernel.
    """

    name: str
    paradigm: str
    role: str
    file: str = ""

    @classmethod
    def all_of(cls, recorded: Sequence[tuple[str, str, str]]) -> list[Region]:
        """Return regions from names, paradigms, and roles as recorded; the core recognizes calls by their names."""
        terms = _native.region_terms(recorded)
        return [cls(name, *of_region) for (name, _, _), of_region in zip(recorded, terms, strict=True)]

    @property
    def is_library(self) -> bool:
        """Whether it belongs to a library, so that its time is not computation of the program."""
        return self.paradigm in _LIBRARIES

    @property
    def is_own(self) -> bool:
        """Whether it is the program's own code: neither a library's nor the measurement's."""
        return not self.is_library and self.paradigm != "measurement"

    @property
    def is_communication(self) -> bool:
        """Whether it belongs to a library of communication between processes."""
        return self.paradigm in COMMUNICATION

    def is_in(self, mask: str) -> bool:
        """Return whether call paths that end in this region are in a mask.

        Parameters
        ----------
        mask
            A key of `MASKS`, or ``execution``: everything except ``overhead``.
        """
        if mask == "execution":
            return not self.is_in("overhead")
        return any(self in one for one in MASKS[mask])


@dataclass(frozen=True, slots=True)
class Class:
    """A class of regions: those of a paradigm that have one of the roles or match a name pattern.

    Without roles and names, all regions of the paradigm except those of the forms in `but` and roles in `but_roles`.
    """

    paradigm: str
    names: str = ""
    roles: frozenset[str] = frozenset()
    files: str = ""
    but: str = ""
    but_roles: frozenset[str] = frozenset()

    def __contains__(self, region: Region) -> bool:
        if region.paradigm != self.paradigm or (self.but and re.fullmatch(self.but, region.name)):
            return False
        if region.role in self.but_roles:
            return False
        if not (self.names or self.roles or self.files):
            return True
        return (
            region.role in self.roles
            or bool(self.names and re.fullmatch(self.names, _bare(region.name)))
            or bool(self.files and re.fullmatch(self.files, region.file))
        )


def _bare(name: str) -> str:
    """Return the name of a call without the parentheses that some tools (TAU) append."""
    return name.removesuffix("()")


def _mpi(names: str = "", *roles: str) -> tuple[Class, ...]:
    return (Class("mpi", f"(?i:MPI_({names}){_VARIANT})" if names else "", frozenset(roles)),)


def _openmp(*roles: str) -> tuple[Class, ...]:
    return (Class("openmp", roles=frozenset(roles)),)


def _calls(paradigm: str, names: str) -> tuple[Class, ...]:
    return (Class(paradigm, names),)


_FLUSH = "BUFFER FLUSH"
# OTF2 3 has a role for kernels; older recorders mark them by the file name.
_KERNEL = frozenset({"kernel"})
# Others record kernels as functions: what has neither the name of a call nor that of a copy.
_NO_KERNEL = frozenset({"wrapper", "artificial", "data transfer", "allocate", "deallocate", "reallocate"})
_NO_CALL = r"(?!_*(cu|cuda|nv|hip|roc)[A-Z_])(?!(?i:.*(memcpy|memset|flush|idle|sync|wait))).+"

_FILE_ASK = r"File_(delete|get_\w+|seek(_shared)?)"
_FILE_CHANGE = r"File_(close|open|preallocate|set_(atomicity|info|size|view)|sync)"
_ALONE = r"File_i?{}(_at|_shared)?"
_TOGETHER = r"File_(i{0}_(at_)?all|{0}_((at_)?all|ordered)(_begin|_end)?)"
_EITHER = "(read|write)"

# What threads do outside of calls besides running, by the states of Paraver traces.
_STATES = "not created|tracing disabled|flush|idle|state: .*"

#: A call path is in a mask if its region is in one of the classes.
MASKS: dict[str, tuple[Class, ...]] = {
    "overhead": (
        Class("measurement", f"TRACE BUFFER FLUSH|TRACING|{_STATES}"),
        Class("opencl", _FLUSH),
        Class("cuda", _FLUSH),
        Class("hip", _FLUSH),
    ),
    "io": (Class("io"),),
    "mpi": (Class("mpi", but="PARALLEL"),),
    "mpi_mgmt_startup": _mpi(r"Init(_thread|ialized)?|Finalized?|Session_\w+"),
    "mpi_mgmt_comm": _mpi(
        r"Cart_\w+|Cartdim_get|Graph_\w+|Graphdims_get|Dist_graph_\w+|Dims_create|Topo_test"
        r"|Comm_(accept|compare|connect|create(_group|_from_group|_keyval)?|delete_attr|disconnect|dup(_with_info)?|free(_keyval)?"
        r"|[gs]et_(attr|info|name)|get_parent|group|idup(_with_info)?|join|rank|remote_(group|size)|size|spawn(_multiple)?"
        r"|split(_type)?|test_inter)"
        r"|Intercomm_(create(_from_groups)?|merge)|(Open|Close)_port|(Lookup|Publish|Unpublish)_name"
    ),
    "mpi_mgmt_file": _mpi(f"{_FILE_ASK}|{_FILE_CHANGE}"),
    "mpi_mgmt_win": _mpi(
        r"Win_(allocate(_shared)?|attach|c2f|call_errhandler|create(_dynamic|_errhandler|_keyval)?|delete_attr|detach|f2c"
        r"|free(_keyval)?|fromint|[gs]et_\w+|shared_query|toint)"
    ),
    "mpi_sync_collective": _mpi("", "barrier"),
    "mpi_sync_rma_active": _mpi(r"Win_(complete|fence|post|start|test|wait)"),
    "mpi_sync_rma_passive": _mpi(r"Win_((flush(_local)?|lock|unlock)(_all)?|sync)"),
    "mpi_comm_p2p": _mpi(r"(Test|Wait)(all|any|some)?", "point2point"),
    "mpi_comm_collective": _mpi("", "one2all", "all2one", "all2all", "other collective"),
    "mpi_comm_rma": _mpi("", "rma", "atomic"),
    "mpi_comm_rma_puts": _mpi(r"R?[Pp]ut"),
    "mpi_comm_rma_gets": _mpi(r"R?[Gg]et"),
    "mpi_comm_rma_atomics": _mpi("", "atomic"),
    "mpi_file_individual": _mpi(_ALONE.format(_EITHER)),
    "mpi_file_collective": _mpi(_TOGETHER.format(_EITHER)),
    "mpi_file_iops": _mpi(f"{_FILE_ASK}|{_ALONE.format(_EITHER)}"),
    "mpi_file_irops": _mpi(_ALONE.format("read")),
    "mpi_file_iwops": _mpi(_ALONE.format("write")),
    "mpi_file_cops": _mpi(f"{_FILE_CHANGE}|{_TOGETHER.format(_EITHER)}"),
    "mpi_file_crops": _mpi(_TOGETHER.format("read")),
    "mpi_file_cwops": _mpi(_TOGETHER.format("write")),
    "shmem": (Class("shmem"),),
    "shmem_mgmt": _calls(
        "shmem",
        r"start_pes|shmem_(init(_thread)?|finalize|global_exit|info_get_\w+|query_thread|my_pe|n_pes|ptr)|_?(my_pe|num_pes)"
        r"|shmem_(addr|pe)_accessible|shmalloc|shmemalign|shrealloc|shfree|shp(alloc|deallc|clmove)|shmem_(malloc\w*|calloc|align|realloc|free)"
        r"|shmem_team_(?!sync)\w+|shmem_ctx_(create|destroy|get_team|session_\w+)|shmem_pcontrol"
        r"|shmem_((clear|set)_cache\w*|cache_flush|udcflush\w*)",
    ),
    "shmem_sync_collective": (Class("shmem", roles=frozenset({"barrier"})),),
    "shmem_sync_rma": _calls(
        "shmem",
        r"shmem_(\w+_lock|(ctx_|pe_)?quiet|(ctx_|pe_)?fence|(\w+_)?(wait|test)(_until\w*|_all\w*|_any\w*|_some\w*)?)",
    ),
    "shmem_comm_collective": (Class("shmem", roles=frozenset({"one2all", "all2one", "all2all", "other collective"})),),
    "shmem_comm_rma": (Class("shmem", roles=frozenset({"rma", "atomic"})),),
    OTHER: tuple(map(Class, sorted(UNKNOWN))),
    "armci": (Class("armci"),),
    "armci_mgmt": _calls(
        "armci",
        r"P?ARMCI_((?i:Init\w*|(un)?set_\w+)|Finalize|Cleanup|Error|Malloc\w*|Free\w*|(Create|Destroy)_mutexes|Memget|Memat"
        r"|Memctl|Uses_shm|Group_?\w+|Domain_\w+|Same_node|Absolute_id)",
    ),
    "armci_sync_collective": (Class("armci", roles=frozenset({"barrier"})),),
    "armci_sync_rma": _calls("armci", r"P?ARMCI_((All)?Fence|Lock|Unlock|Wait(All|Proc)?|Test|Notify(_wait)?)"),
    "armci_comm_collective": (Class("armci", roles=frozenset({"one2all", "all2one", "all2all", "other collective"})),),
    "armci_comm_rma": (Class("armci", roles=frozenset({"rma", "atomic"})),),
    "pgas": (Class("pgas"),),
    "pgas_mgmt": _calls(
        "pgas",
        r"p?gaspi_(proc_\w+|(dis)?connect|group_\w+|segment_\w+|queue_\w+|config_\w+|state_vec_\w+|\w+_(max|num|size|min))"
        r"|upc_(all_(lock_)?(alloc|free)|global_\w+|(lock_)?(alloc|free)|local_alloc|\w+_lock_alloc)",
    ),
    "pgas_sync_collective": (Class("pgas", roles=frozenset({"barrier"})),),
    "pgas_sync_rma": _calls(
        "pgas",
        r"p?gaspi_(wait|notify(_waitsome|_reset)?|passive_(send|receive))|upc_(fence|lock(_attempt)?|unlock)",
    ),
    "pgas_comm_collective": (Class("pgas", roles=frozenset({"one2all", "all2one", "all2all", "other collective"})),),
    "pgas_comm_rma": (Class("pgas", roles=frozenset({"rma", "atomic"})),),
    "omp_sync_ebarrier": _openmp("barrier"),
    "omp_sync_ibarrier": _openmp("implicit barrier"),
    "omp_sync_critical": _openmp("critical", "atomic"),
    "omp_sync_lock_api": (
        Class("openmp", r"omp_(destroy|init|set|test|unset)(_nest)?_lock|OpenMP (Set|Test|Unset)( Nest)? Lock"),
    ),
    "omp_sync_ordered": _openmp("ordered"),
    # Only the wait at the end of a task group is synchronization: the rest is its block.
    "omp_sync_taskwait": (Class("openmp", roles=frozenset({"taskwait"}), but="(?i).*task ?group.*"),),
    "omp_task_creation": _openmp("task create"),
    "omp_flush": _openmp("flush"),
    "pthread_mgmt": _calls("pthread", r"pthread_(cancel|create|detach|exit|join)"),
    "pthread_sync_mutex": _calls("pthread", r"pthread_(mutex|rwlock|spin)_\w*(destroy|init|lock)"),
    "pthread_sync_condition": _calls("pthread", r"pthread_cond_(broadcast|destroy|init|signal|(timed)?wait)"),
    "pthread_sync_barrier": _calls("pthread", r"pthread_barrier_(destroy|init|wait)"),
    # Kernels on a device are computation, whoever launches them.
    "openacc": (Class("openacc", but_roles=_KERNEL),),
    "openacc_setup": _calls("openacc", r"acc_(init|shutdown)(@.*)?"),
    "openacc_comm": _calls("openacc", r"acc_(up|down)load(@.*)?"),
    "openacc_sync": _calls("openacc", r"acc_wait(@.*)?"),
    "openacc_kernel_launches": _calls("openacc", r"acc_launch_kernel(@.*)?"),
    "opencl": (Class("opencl", but=_FLUSH),),
    "opencl_setup": _calls(
        "opencl",
        r"cl(Get(?!MemObject|Image|Pipe|Sampler).*|(Create|Retain|Release)(SubDevices|Device|Context|Program|Kernel"
        r"|Event|UserEvent|CommandQueue)\w*|(Build|Compile|Link)Program|Set(UserEvent|Event|CommandQueue)\w+|Flush"
        r"|Unload\w+)",
    ),
    "opencl_comm": _calls(
        "opencl",
        r"cl((Create|Retain|Release)(Buffer|SubBuffer|Pipe|Image|Sampler|MemObject)\w*|SVM(Alloc|Free)"
        r"|Enqueue(Read|Write|Fill|Copy|Map|Unmap|Migrate|SVM)\w+)",
    ),
    "opencl_sync": _calls(
        "opencl", r"clFinish|cl(Enqueue)?WaitForEvents|clEnqueue(Barrier|Marker)\w*|WAIT FOR COMMAND QUEUE"
    ),
    "opencl_kernel_launches": _calls("opencl", r"cl(SetKernel\w+|EnqueueNDRangeKernel|EnqueueTask)"),
    "opencl_kernel_executions": (Class("opencl", roles=_KERNEL, files="OPENCL_KERNEL"),),
    "cuda": (Class("cuda", but=_FLUSH),),
    "cuda_setup": _calls(
        "cuda",
        r"cu(da)?((Device|Ctx|Context|Stream|Event|Module|Function|Func|Driver|Runtime|Thread|Primary)(?!\w*(Synchronize"
        r"|WaitEvent))\w+|Init|GetDevice\w*|SetDevice\w*|ChooseDevice|DriverGetVersion)",
    ),
    "cuda_comm": _calls("cuda", r"cu(da)?(Mem(?!set)\w+|Malloc\w*|Free\w*|Host\w+|Array\w+|[GS]etSymbol\w+)"),
    "cuda_sync": _calls("cuda", r"cu(da)?(\w+Synchronize|StreamWaitEvent)|(DEVICE|STREAM|EVENT) SYNCHRONIZE"),
    "cuda_kernel_launches": _calls("cuda", r"cu(da)?(Launch\w*|Memset\w*|ConfigureCall|SetupArgument|Param\w+)"),
    "cuda_kernel_executions": (
        Class("cuda", roles=_KERNEL, files="CUDA_KERNEL"),
        Class("cuda", names=_NO_CALL, but_roles=_NO_KERNEL),
    ),
    "ccl": (Class("ccl"),),
    "hip": (Class("hip", but=_FLUSH),),
    "hip_setup": _calls(
        "hip",
        r"hip((Device|Ctx|Stream|Event|Module(?!Launch)|Func|Driver|Runtime)(?!\w*(Synchronize|WaitEvent))\w*|Init"
        r"|GetDevice\w*|SetDevice\w*|ChooseDevice)",
    ),
    "hip_comm": _calls("hip", r"hip(Mem(?!set)\w+|Malloc\w*|Free\w*|Host\w+|Array\w+|[GS]etSymbol\w+)"),
    "hip_sync": _calls("hip", r"hip(\w+Synchronize|StreamWaitEvent)"),
    "hip_kernel_launches": _calls("hip", r"hip((Module|Ext(Module)?)?Launch\w*|Memset\w*|ConfigureCall|SetupArgument)"),
    "hip_kernel_executions": (
        Class("hip", roles=_KERNEL, files="HIP_KERNEL"),
        Class("hip", names=_NO_CALL, but_roles=_NO_KERNEL),
    ),
}
