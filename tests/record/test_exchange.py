"""A call that sends and receives waits for its receiver as well, if the message needs it."""

import pytest
import whywait

from .mpis import MPIS, PROGRAMS, compiled, on_schedule, record

# How late the receiver of exchange.c is, and the sender of `both`, seconds.
LATE, SENDER = 0.04, 0.02


@pytest.mark.parametrize("mpi", MPIS[:2], ids=lambda mpi: mpi.name)
def test_exchanges_wait_for_receivers(mpi, tmp_path):
    if not mpi.is_here:
        pytest.skip(f"{mpi.name} is not installed")
    program = compiled(mpi, PROGRAMS / "exchange.c", tmp_path)

    def check():
        done = record([*mpi.start(3), program], tmp_path, "--force")
        assert done.returncode == 0, done.stderr
        calls = {}
        for wait in whywait.analyze(tmp_path / "out").wait_states(parts=False).to_pylist():
            call = wait["callpath"][-1]
            if wait["rank"] == 1 and call in {"MPI_Sendrecv", "MPI_Waitall"} and wait["waiting"] > 0.005:
                calls.setdefault(wait["enter"], []).append((wait["kind"], wait["waiting"], wait["inferred"], call))
        # That of small messages is eager.
        large, both = (calls[enter] for enter in sorted(calls))
        [(kind, waiting, is_inferred, call)] = large
        assert (kind, call, is_inferred) == ("mpi_exchange_latereceiver", "MPI_Sendrecv", True)
        assert 0.85 * LATE < waiting < 1.5 * LATE
        times = {kind: waiting for kind, waiting, _, _ in both}
        assert times.keys() == {"mpi_latesender", "mpi_exchange_latereceiver"}
        assert 0.7 * SENDER < times["mpi_latesender"] < 1.5 * SENDER
        assert 0.85 * LATE < sum(times.values()) < 1.5 * LATE
        assert not any(is_inferred for _, _, is_inferred, _ in both)

    on_schedule(check)
