"""GASPI and UPC: the program agrees with the oracle on every program one can think of."""

import tempfile
from pathlib import Path

from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.test_one_sided import assert_agreement
from tests.tracedsl import trace_from_text

ROUNDS = st.sampled_from(("barrier", "split", "asked", "broadcast", "scatter", "gather", "notify", "queue", "memput"))
GAPS = st.integers(0, 4)


@st.composite
def programs(draw):
    """A program of two or three ranks: rounds of collective operations, notifications and transfers."""
    ranks = draw(st.integers(2, 3))
    lines, now, requests = [f"ranks {ranks}", "win w on world"], [1] * ranks, 0

    def call(rank, what, length):
        begin = now[rank] + draw(GAPS)
        now[rank] = begin + length + 1
        lines.append(f"{rank}: {what} [{begin}, {begin + length}]")

    def together(name, arguments, meets):
        begins = [now[rank] + draw(GAPS) for rank in range(ranks)]
        for rank, begin in enumerate(begins):
            end = max(begins) + 1 if meets else begin + draw(st.integers(1, 6))
            lines.append(f"{rank}: {name}({arguments}) [{begin}, {end}]")
            now[rank] = end + 1

    for kind in draw(st.lists(ROUNDS, min_size=1, max_size=6)):
        others = st.integers(0, ranks - 1)
        if kind == "barrier":
            together("gaspi_barrier", "w", True)
        elif kind in ("broadcast", "scatter", "gather"):
            root = draw(st.sampled_from(("", *(f", root={rank}" for rank in range(ranks)))))
            together(f"upc_all_{kind}", f"w{root}", draw(st.booleans()))
        elif kind == "split":
            for rank in range(ranks):
                call(rank, "upc_notify(w)", 1)
            together("upc_wait", "w", True)
        elif kind == "asked":
            for rank in range(ranks):
                call(rank, "gaspi_allreduce(w, begins)", draw(st.integers(1, 3)))
                for _ in range(draw(st.integers(0, 2))):
                    call(rank, "gaspi_allreduce(asked)", draw(st.integers(1, 3)))
            together("gaspi_allreduce", "w, ends", True)
        elif kind == "notify":
            named = draw(st.sampled_from(("", ", id=1", ", id=2")))
            sender, receiver = draw(others), draw(others)
            call(sender, f"gaspi_notify({receiver}, win=w{named})", 1)
            known = draw(st.sampled_from(("", f"{sender}, ")))
            name = "gaspi_passive_receive" if known else "gaspi_notify_waitsome"
            call(receiver, f"{name}({known}win=w{'' if known else named})", draw(st.integers(1, 6)))
        else:
            origin, target = draw(others), draw(others)
            if kind == "memput":
                call(origin, f"upc_memput({target}, win=w)", draw(st.integers(1, 6)))
            else:
                requests += 1
                call(origin, f"gaspi_read({target}, win=w, req={requests})", 1)
                call(origin, f"gaspi_wait({requests})", draw(st.integers(1, 6)))
    return "\n".join(lines)


@settings(max_examples=40)
@given(trace=programs())
def test_program_agrees_with_oracle(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        assert_agreement(trace_from_text(trace, Path(directory)))
