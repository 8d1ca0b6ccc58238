"""Load imbalance, and its adjustment for work on devices.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), chapter 4. Its efficiencies of a kernel are those of nvprof: the share of
time in which a multiprocessor has an active warp, and the share of the threads of a warp that are active, both means.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import whywait._native as _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt


class Kernel(NamedTuple):
    """An execution of a kernel: its time (s), efficiency (0..1) and device."""

    begin: float
    end: float
    efficiency: float = 1.0
    device: int = 0


def imbalance(loads: npt.ArrayLike) -> float | None:
    """Return the relative excess of the maximum load over the average (Eberius, equation 4.1); None without load.

    Parameters
    ----------
    loads
        One value per process, measured or adjusted (Eberius, equation 4.5).
    """
    values = np.asarray(loads, dtype=np.float64)
    most = float(values.max(initial=0.0))
    # The mean is rounded: without the bound, equal loads could be less than balanced.
    mean = min(float(values.mean()), most) if values.size else 0.0
    return (most - mean) / mean if mean > 0 else None


def process_loads(total: npt.ArrayLike, mpi: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the time of each process outside of MPI (Eberius, equation 4.2)."""
    return np.asarray(total, dtype=np.float64) - np.asarray(mpi, dtype=np.float64)


def share(name: str, value: float, *, percent: bool | None = None) -> float:
    """Return a share that a counter gives as a share (0..1) or in percent (0..100).

    Parameters
    ----------
    name
        The name of the counter.
    value
        Its value.
    percent
        Whether it is a percentage; None if it is one above 1.

    Raises
    ------
    whywait.UsageError
        If it is neither.
    """
    if not 0 <= value <= 100:
        raise _native.UsageError(f"{name} is {value:g}, which is not a share or a percentage")
    return value / 100 if value > 1 or percent else value


def gpu_efficiency(sm_efficiency: float, warp_execution_efficiency: float) -> float:
    """Return the share of a device that a kernel uses (Eberius, equation 4.3).

    Parameters
    ----------
    sm_efficiency
        Share of time in which a multiprocessor has at least one active warp, mean over all; or percent.
    warp_execution_efficiency
        Mean of the active threads of a warp, as a share of all; or percent.
    """
    return share("sm_efficiency", sm_efficiency) * share("warp_execution_efficiency", warp_execution_efficiency)


def adjusted_load(host: float, kernels: Iterable[Kernel]) -> tuple[float, float]:
    """Return the load of a process with its devices, as measured and adjusted by efficiency (Eberius, equation 4.4).

    Kernels that overlap on one device count once, with the efficiency of the latest to start.

    Parameters
    ----------
    host
        Seconds of computation on the host while no kernel of the process runs.
    kernels
        The kernels on its devices.

    Returns
    -------
    tuple of float
        ``host + sum t`` and ``host + sum t * efficiency``, seconds.
    """
    by_device: dict[int, list[Kernel]] = {}
    for kernel in kernels:
        by_device.setdefault(kernel.device, []).append(kernel)
    times = [(kernel, time) for own in by_device.values() for kernel, time in zip(own, counted(own), strict=True)]
    measured = math.fsum([host, *(time for _, time in times)])
    return measured, math.fsum([host, *(time * kernel.efficiency for kernel, time in times)])


def counted(kernels: Sequence[Kernel]) -> list[float]:
    """Return for how long each kernel of a device counts: of those that overlap, the latest to start.

    Of those that start at the same time the first one counts.
    """
    times = [0.0] * len(kernels)
    waiting = deque(sorted(range(len(kernels)), key=lambda number: (kernels[number].begin, -number)))
    running = deque[int]()
    for begin, end in pairwise(sorted({time for kernel in kernels for time in (kernel.begin, kernel.end)})):
        while waiting and kernels[waiting[0]].begin <= begin:
            running.append(waiting.popleft())
        # The latest to start comes last. Another one that has ended stays until it would count.
        while running and kernels[running[-1]].end < end:
            running.pop()
        if running:
            times[running[-1]] += end - begin
    return times


def geometry_efficiency(blocks: int, threads: int, multiprocessors: int, warp: int) -> float:
    """Return the upper bound of a kernel's efficiency from the geometry of its launch.

    ``G / (S ceil(G / S)) * B / (W ceil(B / W))``: the last round of blocks leaves multiprocessors without work, the
    last warp of a block leaves threads without work. An upper bound of the efficiency of a kernel (Eberius, equation
    4.3).

    Parameters
    ----------
    blocks, threads
        Blocks of the grid (G), threads of a block (B).
    multiprocessors, warp
        Multiprocessors of the device (S), threads of a warp (W).
    """
    if min(blocks, threads, multiprocessors, warp) < 1:
        raise _native.UsageError("blocks, threads, multiprocessors and warp must be at least 1")

    def filled(number: int, places: int) -> float:
        return number / (places * -(-number // places))

    return filled(blocks, multiprocessors) * filled(threads, warp)
