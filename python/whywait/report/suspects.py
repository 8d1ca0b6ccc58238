"""What may be behind waiting that no work explains, by what was waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_THREADS = ("omp_", "pthread_")
_DEVICES = ("gpu_",)
_LIBRARIES = ("shmem_", "armci_", "pgas_")


def suspects(kinds: Iterable[str]) -> str:
    """Return what to suspect behind wait states of these kinds.

    >>> suspects(["gpu_host_wait"])
    'noise or the driver of the device'
    >>> suspects(["gpu_host_wait", "mpi_latesender"])
    'noise, the network, or MPI itself'
    """
    names = tuple(kinds)
    if all(name.startswith(_DEVICES) for name in names):
        return "noise or the driver of the device"
    if all(name.startswith(_THREADS) for name in names):
        return "noise or the threading runtime"
    if all(name.startswith((*_THREADS, *_DEVICES)) for name in names):
        return "noise, the threading runtime, or the driver of the device"
    if all(name.startswith((*_THREADS, *_DEVICES, *_LIBRARIES)) for name in names):
        return "noise, the network, or the communication library itself"
    return "noise, the network, or MPI itself"
