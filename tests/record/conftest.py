"""Fixtures of the recorder's tests."""

import pytest
from whywait._record import fitted, libmpi

from .mpis import MPIS


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
