"""Writing a trace again, with corrected clocks."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import whywait._native as _native
import whywait.mpi as mpi
from whywait.api.analyze import analyze
from whywait.api.whatif import refuse_archive
from whywait.model.trace import TraceIdentity

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from whywait.analysis.native import NativeDataset
    from whywait.api.run import Run
    from whywait.model.options import ClockCorrection, ClockDomain


def correct(
    run: Run | str | PathLike[str],
    directory: str | PathLike[str],
    *,
    clocks: ClockCorrection = "auto",
    clock_domain: ClockDomain = "auto",
    min_latency: float = 0.0,
    threads: int | None = None,
    memory_limit: int | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> dict[str, Any]:
    """Write a trace again, with corrected clocks.

    The archive has the records of the trace in their order, at corrected times, and no clock offsets. Its anchor file
    names the correction.

    Parameters
    ----------
    run
        The trace.
    directory
        The directory to write to, created if necessary. It must not contain an archive.
    clocks, clock_domain, min_latency, threads, memory_limit, progress
        As for `whywait.analyze`; all that is needed is corrected by default.

    Returns
    -------
    dict
        What was violated and what was done, as `Result.clocks`, and the anchor file (``written``).

    Raises
    ------
    whywait.UsageError
        If the directory already contains an archive, or an option is wrong.
    """
    target = Path(directory)
    refuse_archive(target)
    result = analyze(
        run,
        causes=False,
        census=True,
        clocks=clocks,
        clock_domain=clock_domain,
        min_latency=min_latency,
        threads=threads,
        memory_limit=memory_limit,
        progress=progress,
    )
    analysis = cast("NativeDataset", result.tables).analysis
    target.mkdir(parents=True, exist_ok=True)
    path, name = result.run.path, result.run.archive_name
    with tempfile.TemporaryDirectory(prefix=".correct-", dir=target) as staging:
        if _native.source_of(path) == "otf2":
            source = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            source = TraceIdentity.of(name, path).sha256 or ""
        mpi.together(analysis.write_run, staging, source=source, progress=progress)
        # The anchor is last, so an archive with an anchor is complete.
        for file in (name, f"{name}.def", f"{name}.otf2"):
            (Path(staging) / file).rename(target / file)
    return {**(result.clocks or {}), "written": str(target / f"{name}.otf2")}
