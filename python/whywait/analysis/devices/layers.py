"""Efficiency of devices by layer of their parallelism: over time, over multiprocessors, over the threads of a warp.

D. Eberius, "Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics"
(dissertation, University of Tennessee, 2020), chapter 4, takes the efficiency of a kernel as the product of what each
level of a device uses (equation 4.3). Here each level keeps its factor, and says what it loses of what the levels above
leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.devices.load import EFFICIENCIES, Means, counted_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from whywait.model.result import ResultData

#: What the counters of nvprof are about.
_LAYERS = {"sm_efficiency": "multiprocessors", "warp_execution_efficiency": "threads of a warp"}


def layers(
    result: ResultData,
    kernels: pa.Table,
    devices: int,
    names: Sequence[str] = (),
    *,
    length: float,
) -> list[dict[str, Any]]:
    """Return the efficiency of each layer, from the whole device down.

    Parameters
    ----------
    result
        The result.
    kernels
        The kernels and copies of devices.
    devices
        The number of devices.
    names
        Counters of the layers within a device, from the outermost on; if empty, `EFFICIENCIES`.
    length
        The length of the part of the run that the kernels are of, seconds.

    Returns
    -------
    list of dict
        Of each layer its name (``layer``), the ``counter`` that it is known by (None for the first), ``efficiency``
        (the share that it uses of what the layer above does), and ``lost`` (that it does not use, in seconds of
        devices). The first layer is time: the share of that length in which devices run kernels. Only this one if a
        counter is not known at all kernels.
    """
    whole = devices * length
    if not devices or not whole:
        return []
    weight = counted_times(kernels, kernels["device"].to_numpy())
    used = float(weight.sum())
    found = [_layer("time", None, used, whole)]
    means = Means(result, kernels)
    names = tuple(names or EFFICIENCIES)
    if all(means.is_known(name) for name in names):
        for name in names:
            weight = weight * means.share(name)
            above, used = used, float(weight.sum())
            found.append(_layer(_LAYERS.get(name, name), name, used, above))
    return found


def _layer(layer: str, counter: str | None, used: float, above: float) -> dict[str, Any]:
    return {"layer": layer, "counter": counter, "efficiency": used / above if above else 0.0, "lost": above - used}
