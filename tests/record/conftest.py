"""Fixtures of the recorder's tests."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from whywait._record import fitted, libmpi

from .mpis import MPIS

# Where processes share memory, and the names of the files that MPI libraries make there.
MEMORY = Path("/dev", "shm")
OF_MPI = ("open_mpi.", "vader_segment.", "sm_segment.", "mpich_shm_", "mpich_shar_")


@pytest.fixture(params=MPIS, ids=lambda mpi: mpi.name)
def mpi(request):
    """Each MPI that is here."""
    if not request.param.is_here:
        pytest.skip(f"{request.param.name} is not installed ({request.param.compiler})")
    return request.param


@pytest.fixture(scope="session", autouse=True)
def recorder():
    """The recorder's library, without which there is nothing to test."""
    if not libmpi.platform_has_recorder():
        pytest.skip("there is no recorder for this platform")
    if not fitted.LIBRARY.is_file():
        pytest.skip(f"{fitted.LIBRARY.name} is not built: python packaging/backend.py")
    return fitted.LIBRARY


@pytest.fixture(scope="session", autouse=True)
def shared_memory():
    """Remove what killed programs leave in memory: with 128 such files, no program of Open MPI starts."""
    began = time.time()
    yield
    used = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            lines = maps.read_text(errors="replace").splitlines()
            used.update(line.split()[-1] for line in lines if str(MEMORY) in line)
    for file in (file for name in OF_MPI for file in MEMORY.glob(f"{name}*")):
        with suppress(OSError):
            about = file.stat()
            # What a program has just made, it may not have mapped yet.
            is_left = began < about.st_mtime < time.time() - 2 and str(file) not in used
            if is_left and about.st_uid == os.getuid():
                file.unlink()
