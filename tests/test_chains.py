"""Costs of waits between devices, and of waits of hosts that lead to these and back: long programs, and edges."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from tests.results import outcome
from tests.test_factors import check
from tests.tracedsl import trace_from_text


def costs(cells, *callpath_ends):
    """Return the costs of call paths, or of all, by metric."""
    of_all = defaultdict(float)
    for metric, of_metric in cells.items():
        if metric.startswith("delay_"):
            for (callpath, *_), cost in of_metric.items():
                if not callpath_ends or callpath[-1] in callpath_ends:
                    of_all[metric] += cost
    return {metric: cost for metric, cost in of_all.items() if cost > 1e-9}


def found(text, directory, **options):
    return outcome(trace_from_text(text, directory), **options)


def waiting(waits):
    return sum(wait.waiting for wait in waits if wait.kind.startswith(("mpi_latesender", "ccl_")))


class Ahead:
    """Hosts launch operations and never wait for them: what each did since the begin delays an operation."""

    def __init__(self, operations, ranks=3, works=5):
        choice = random.Random(operations)  # noqa: S311
        time = [choice.randrange(0, 4000) for _ in range(ranks)]
        done = [defaultdict(int, main=begin) for begin in time]
        device = [0] * ranks
        self.lines, self.costs, self.waiting = [], defaultdict(float), 0
        for number in range(1, operations + 1):
            begins = []
            for rank in range(ranks):
                for _ in range(works):
                    work, length = f"work{choice.randrange(works)}", choice.randrange(10, 100)
                    self.add(f"{rank}: {work}", time[rank], time[rank] + length)
                    done[rank][work] += length
                    time[rank] += length
                self.add(f"{rank}: hipLaunchKernel(correlation={number})", time[rank], time[rank] + 2)
                time[rank] += 2
                done[rank]["hipLaunchKernel"] += 2
                begins.append(time[rank])
                assert device[rank] < time[rank]
            last = max(range(ranks), key=begins.__getitem__)
            for rank in range(ranks):
                self.add(f"{rank}/1: ncclAllReduce(correlation={number})", begins[rank], begins[last] + 1)
                device[rank] = begins[last] + 1
                self.divide(rank, last, begins[last] - begins[rank], done)
            # The next operation of a rank is launched when this one is over.
            for rank in range(ranks):
                done[rank]["main"] += max(device[rank] - time[rank], 0)
                time[rank] = max(time[rank], device[rank])
        self.text = "\n".join([f"ranks {ranks}", f"*: main [0, {max(time) / 1000}]", *self.lines, ""])

    def add(self, what, begin, end):
        self.lines.append(f"{what} [{begin / 1000}, {end / 1000}]")

    def divide(self, rank, last, length, done):
        """Divide a wait among that of which its cause did more."""
        excess = {work: done[last][work] - done[rank][work] for work in done[last]}
        excess = {work: ticks for work, ticks in excess.items() if ticks > 0}
        for work, ticks in excess.items():
            self.costs[work] += length * ticks / sum(excess.values()) if length else 0
        self.waiting += length


@pytest.mark.parametrize("operations", [3, 40, 150])
def test_what_a_host_did_since_the_begin_delays_an_operation_if_it_never_waits(operations, tmp_path):
    program = Ahead(operations)
    result = found(program.text, tmp_path)
    assert waiting(result.waits) == pytest.approx(program.waiting / 1000)
    of_work = {work: sum(costs(result.cells, work).values()) for work in program.costs}
    assert of_work == pytest.approx({work: cost / 1000 for work, cost in program.costs.items()})


def test_the_factors_of_long_links_are_their_costs(tmp_path):
    check(trace_from_text(Ahead(40).text, tmp_path), "thesis")


def ring(laps):
    """Pass a token from 0 to 1 by MPI, to 2 between devices, and back by MPI; the first one begins late."""
    lines, at = ["0: load [0, 5]"], [5.0, 0.0, 0.0]
    for number in range(1, laps + 1):
        first = at[0] + 1
        second, third = first + 1.000_02, first + 2.000_03
        lines += [
            f"0: MPI_Send(1) [{first:.6f}, {first + 0.000_01:.6f}]",
            f"1: MPI_Recv(0) [{at[1]:.6f}, {first + 0.000_02:.6f}]",
            f"1: hipLaunchKernel(correlation={number}) [{second:.6f}, {second + 0.000_001:.6f}]",
            f"1/0: ncclSend(2, correlation={number}) [{second + 0.000_001:.6f}, {second + 0.000_01:.6f}]",
            f"1: hipDeviceSynchronize [{second + 0.000_002:.6f}, {second + 0.000_01:.6f}]",
            f"2: hipLaunchKernel(correlation={number}) [{at[2]:.6f}, {at[2] + 0.000_001:.6f}]",
            f"2/0: ncclRecv(1, correlation={number}) [{at[2] + 0.000_001:.6f}, {second + 0.000_01:.6f}]",
            f"2: hipDeviceSynchronize [{at[2] + 0.000_002:.6f}, {second + 0.000_01:.6f}]",
            f"2: MPI_Send(0) [{third:.6f}, {third + 0.000_01:.6f}]",
            f"0: MPI_Recv(2) [{first + 0.000_01:.6f}, {third + 0.000_02:.6f}]",
        ]
        at = [third + 0.000_02, second + 0.000_01, third + 0.000_01]
    return "\n".join(["ranks 3", f"*: main [0, {at[0] + 1:.6f}]", *lines, ""])


def test_costs_go_from_hosts_to_devices_and_back_as_often_as_waits_do(tmp_path):
    shares = []
    for laps in (60, 130):
        result = found(ring(laps), tmp_path / str(laps))
        assert not result.warnings
        all_waiting = waiting(result.waits)
        assert sum(costs(result.cells).values()) == pytest.approx(all_waiting, rel=1e-6)
        shares.append(sum(costs(result.cells, "load").values()) / all_waiting)
    # Each lap is late because the first one began late.
    assert shares[1] == pytest.approx(shares[0], rel=0.01)


LOCK = """
ranks 2
threads 2
*: main [0, 40]
0: hipLaunchKernel(correlation=1) [0, 0.1]
0/0: stencil(correlation=1) [0.1, 12]
0: fork [0.2, 20]
0: !$omp parallel @a.c:1 [0.2, 20]
0.1: !$omp parallel @a.c:1 [0.2, 20]
0: !$omp critical @a.c:2(order=1) [1, 13]
0: hipDeviceSynchronize [1.5, 12]
0.1: !$omp critical @a.c:2(order=2) [2, 14]
0.1: MPI_Send(1) [15, 15.1]
1: MPI_Recv(0) [0, 15.2]
*: hipLaunchKernel(correlation=2) [30, 30.1]
0/1: KERNEL(correlation=2) [31, 32]
1/1: KERNEL(correlation=2) [31, 32]
"""


def test_the_device_that_the_owner_of_a_lock_waits_for_pays_for_those_who_want_it(tmp_path):
    plain, communicating = (
        costs(found(LOCK.replace("KERNEL", kernel), tmp_path / kernel).cells, "stencil")
        for kernel in ("other", "ncclAllReduce")
    )
    names = ["delay_latesender_longterm", "delay_threadlock_longterm"]
    assert [communicating.get(name) for name in names] == pytest.approx([plain[name] for name in names])
    assert min(plain[name] for name in names) > 9


PAST = """
ranks 3
threads 2
comm half = 0 1
*: main [0, 40]
0: hipLaunchKernel(correlation=1) [0, 0.1]
0: hipLaunchKernel(correlation=2) [0.1, 0.2]
0/0: stencil(correlation=1) [0.1, 6]
0/0: ncclAllReduce(correlation=2,comm=half) [6, 12]
0: hipDeviceSynchronize [0.2, 12]
0: fork [12, 20]
0: !$omp parallel @a.c:1 [12, 20]
0.1: !$omp parallel @a.c:1 [12, 20]
SENDER: MPI_Send(2) [13, 13.1]
1: load [0, 10]
1: hipLaunchKernel(correlation=2) [10, 10.1]
1/0: ncclAllReduce(correlation=2,comm=half) [10.1, 12]
2: MPI_Recv(0) [0, 13.2]
"""


@pytest.mark.parametrize("sender", ["0", "0.1"])
def test_a_wait_before_a_team_begins_is_one_of_each_of_its_threads(sender, tmp_path):
    cells = found(PAST.replace("SENDER", sender), tmp_path).cells
    assert costs(cells, "load")["delay_latesender_longterm"] == pytest.approx(4.1 * 13 / 13, rel=0.05)


# Rank 1 waits for rank 0, and then rank 2 for rank 1: by FIRST and SECOND.
TURNS = """
ranks 3
comm first = 0 1
comm second = 1 2
*: main [0, 40]
*: hipLaunchKernel(correlation=1) [0, 0.1]
0,1: hipLaunchKernel(correlation=2) [0.2, 0.3]
1,2: hipLaunchKernel(correlation=3) [0.3, 0.4]
0/0: gemm(correlation=1) [0.1, LATE]
1/0: gemm(correlation=1) [0.1, 2]
2/0: gemm(correlation=1) [0.1, 2]
1/1: ncclAllReduce(comm=first,correlation=2) [2, 10]
0/1: ncclAllReduce(comm=first,correlation=2) [LATE, 10.5]
2/1: ncclAllReduce(comm=second,correlation=3) [2, 12]
1/1: ncclAllReduce(comm=second,correlation=3) [10, 12]
"""


@pytest.mark.parametrize("late", ["9.999", "10"])
def test_the_wait_that_another_one_leads_to_is_booked_first(late, tmp_path):
    of_all = costs(found(TURNS.replace("LATE", late), tmp_path).cells)
    assert of_all["delay_ccl"] + of_all["delay_ccl_longterm"] == pytest.approx(16, abs=0.01)


SEPARATE = """
ranks 4
comm half = 0 1
*: main [0, 40]
0,1: hipLaunchKernel(correlation=2) [1, 1.1]
0/0: ncclAllReduce(correlation=2, comm=half) [1.1, 3]
1/0: ncclAllReduce(correlation=2, comm=half) [2, 3]
2: hipLaunchKernel(correlation=1) [0, 0.1]
2/0: stencil(correlation=1) [0.1, 9]
2: hipDeviceSynchronize [0.1, 9]
2: MPI_Send(3) [10, 10.1]
3: hipLaunchKernel(correlation=1) [0, 0.1]
3/0: stencil(correlation=1) [0.1, 4]
3: hipDeviceSynchronize [0.1, 4]
3: MPI_Recv(2) [4, 10.2]
"""


def test_how_ranks_are_divided_changes_nothing(tmp_path):
    one, each = (found(SEPARATE, tmp_path / str(events), shard_events=events) for events in (1 << 18, 1))
    assert one.cells == each.cells


# Three streams, on which work follows that of the one before; the second kernel takes no time.
AT_ONCE = """
ranks 2
*: main [0, 40]
*: hipLaunchKernel(correlation=1,stream=0) [0, 0.1]
*: hipLaunchKernel(correlation=2,stream=1) [0.1, 0.2]
*: hipLaunchKernel(correlation=3,stream=2) [0.2, 0.3]
0/0: stencil(correlation=1) [0.1, 20]
0/1: clear(correlation=2) [20, 20]
0/2: gemm(correlation=3) [20, 21]
1/0: stencil(correlation=1) [0.1, 1]
1/1: clear(correlation=2) [1, 1]
1/2: gemm(correlation=3) [1, 2]
"""
AWAITED = """
*: hipDeviceSynchronize [0.3, 21]
0: MPI_Send(1) [21, 21.1]
1: MPI_Recv(0) [2, 21.2]
"""
COMMUNICATING = """
*: hipLaunchKernel(correlation=4,stream=2) [0.3, 0.4]
0/2: ncclAllReduce(correlation=4) [21, 22]
1/2: ncclAllReduce(correlation=4) [2, 22]
"""


@pytest.mark.parametrize("rest", [AWAITED.replace("*: hip", "0: hip"), COMMUNICATING], ids=["host", "devices"])
def test_work_that_takes_no_time_leads_on_to_what_delayed_it(rest, tmp_path):
    at_once = AT_ONCE + rest.lstrip()
    shortly = at_once.replace("[20, 20]", "[20, 20.000001]").replace("[1, 1]", "[1, 1.000001]")
    shortly = shortly.replace("[20, 21]", "[20.000001, 21]").replace("[1, 2]", "[1.000001, 2]")
    without, with_length = (
        costs(found(text, tmp_path / name).cells, "stencil") for name, text in (("without", at_once), ("with", shortly))
    )
    assert without == pytest.approx(with_length, rel=1e-4)
    assert max(without.values()) > 18
    assert not costs(found(at_once, tmp_path / "again").cells, "clear")


STREAMS = """
ranks 2
*: main [0, 40]
0: hipLaunchKernel(correlation=1,stream=0) [0, 0.1]
0/0: stencil(correlation=1) [0.1, 1]
0: hipDeviceSynchronize [0.1, 1]
0: hipLaunchKernel(correlation=2,stream=1) [1, 1.1]
0/1: stencil(correlation=2) [1.1, 20]
0: hipDeviceSynchronize [1.1, 20]
0: MPI_Send(1) [20, 20.1]
1: MPI_Recv(0) [0, 20.2]
"""


def test_the_stream_pays_that_worked_most_in_a_call_path(tmp_path):
    cells = found(STREAMS, tmp_path).cells
    of_stencil = {
        metric: {place: value for place, value in cells[metric].items() if place[0][-1] == "stencil"}
        for metric in ("delay_latesender", "time")
    }
    assert set(of_stencil["delay_latesender"]) == {max(of_stencil["time"], key=of_stencil["time"].__getitem__)}
