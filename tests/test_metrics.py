"""The metric tree, the classes of call paths, and derived metrics against a direct evaluation."""

import re

import numpy as np
import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from whywait.analysis.causes import cost_classes
from whywait.model.metrics import Formula, Term, metric_tree
from whywait.model.profile import Cells, Profile, add
from whywait.model.regions import MASKS, Region
from whywait.model.schema import patterns

from tests import fake_native
from tests.fake_native import STORED, dense
from tests.results import SHARED, UNRECORDED
from tests.tracedsl import trace_from_text

TREE = metric_tree()


def test_tree_is_complete_and_in_order():
    seen = set()
    for metric in TREE:
        assert metric.parent is None or metric.parent in seen
        assert metric.description.endswith(".")
        seen.add(metric.name)
    assert [metric.name for metric in TREE.path("mpi_lswo_same")] == [
        "time", "execution", "mpi", "mpi_communication", "mpi_point2point", "mpi_latesender", "mpi_latesender_wo",
        "mpi_lswo_same",
    ]  # fmt: skip


def test_tree_is_scalascas():
    listing = SHARED / "METRIC_TREE.txt"
    if not listing.exists():
        pytest.skip(UNRECORDED)
    part = listing.read_text(encoding="utf-8").split("PART 2")[0]
    rows = re.findall(r'^( *)(\w+) \| "([^"]*)" \| (\w+) \| (\w+) \| ([A-Z/-]+)', part, re.MULTILINE)
    theirs = [(len(indent) // 2, *rest) for indent, *rest in rows]
    kinds = {"pre": "PRE-EXCL", "post": "POST", "hidden": "GHOST"}
    types = {True: "INTEGER", False: "FLOAT"}
    ours = [
        (TREE.depth(m.name), m.name, m.display_name, m.unit, types[m.integer], kinds.get(m.kind, "STORED"))
        for m in TREE
    ]  # fmt: skip
    names = {name for _, name, *_ in theirs}
    assert [row for row in ours if row[1] in names] == [(*row[:-1], row[-1].removesuffix("/REMAP")) for row in theirs]
    added = {row[1] for row in ours} - names - patterns().keys()
    paradigms = "(shmem|armci|pgas|hip|gpu|ccl)(_|$)|rma_atomic|mpi_rma_wait_for_progress_(last_call|away)$"
    paradigms += (
        "|delay_(rma|lock|thread(s|lock)|gpu|ccl|io|unattributed)|interval_delay|wait_unexplained$|io$|mpi_nbc_"
    )
    paradigms += "|delay_(tree|task|join|signal|pthreadbarrier)|omp_task(s|_)|pthread_(barrier$|cond_timeout)"
    classes = "_(propagating|terminal|direct|indirect)_(coll|omp|rma|gpu|ccl|lock|thread(s|lock)|barrier|n21|12n|n2n|io"
    classes += "|tree|task|join|signal|pthreadbarrier)"
    classifications = "waitstates_.*_(coll|omp|rma|threads|gpu|ccl)$"
    queues = (
        "mpi_(eager|rendezvous|protocol|messages?|bytes|unexpected|posted|match|overtaken|oos|requests|collective)_"
    )
    queues += "|mpi_(eager|rendezvous|unexpected|overtaken)$"
    others = "(waiting|counters|other_communication|sampled_time|samples)$"
    assert all(
        re.match(
            f"{paradigms}|mpi_wait{classes}|{classifications}|{queues}|{others}",
            name,
        )
        for name in added
    )


def test_waiting_is_all_wait_states_once_and_no_completion():
    terms = {term.metric for term in TREE["waiting"].formula.terms}
    assert terms == {metric.name for metric in TREE.waiting}
    assert {"mpi_latesender", "omp_ibarrier_wait", "mpi_finalize_wait", "mpi_rma_early_wait"} < terms
    assert not terms & {"mpi_latesender_wo", "mpi_rma_late_complete", "mpi_nxn_completion", "mpi_init_completion"}
    assert {name for name in terms for above in TREE.path(name)[:-1] if above.name in terms} == set()


def test_what_the_native_module_computes_is_in_the_tree():
    from whywait import _native

    stored = [*_native.stored_metrics(), *_native.queue_metrics(), *_native.sampled_metrics()]
    assert [name for name in stored if name not in TREE] == []


def test_formulas_name_metrics_and_masks_that_exist():
    for metric in TREE:
        if metric.formula:
            assert all(term.metric in TREE for term in metric.formula.terms)
            masks = {term.mask for term in metric.formula.terms}
            assert masks <= {None, "execution", "critical_imbalance", *MASKS}
            assert (None not in masks) == (metric.kind == "pre")


def test_formula_is_read_and_written():
    formula = Formula.parse("[mpi] time - idle? + [cuda] more")
    terms = Term(1, "time", mask="mpi"), Term(-1, "idle", optional=True, mask="mpi"), Term(1, "more", mask="cuda")
    assert formula == Formula(terms)
    assert str(formula) == "[mpi] time - idle + [cuda] more"
    assert str(Formula.parse("a + b - c?")) == "a + b - c"


def test_only_what_can_be_computed_is_in_the_tree():
    tree = TREE.computed(STORED)
    assert {"comp", "mpi", "omp_time", "bytes", "comms_rma_puts", "mpi_latesender_wo", "syncs_rma"} <= {
        metric.name for metric in tree
    }
    for absent in ("delay", "critical_path", "mpi_rma_wait_at_fence", "mpi_wait_terminal_ls", "bytes_rma", "imbalance",
                   "omp_idle_threads", "performance_impact", "bytes_received"):  # fmt: skip
        assert absent not in tree
    assert str(tree["mpi"].formula) == "[mpi] time"
    assert str(tree["bytes"].formula) == "bytes_p2p + bytes_coll"
    assert len(TREE.computed({metric.name for metric in TREE if not metric.derived})) == len(TREE) - 1


def test_classes_of_costs_have_names_of_their_own():
    thread_barriers, barriers = {"delay_ompbarrier", "delay_ompbarrier_longterm"}, {"delay_barrier"}
    names = [kind.display_name for kind in cost_classes(TREE.computed(thread_barriers | barriers | {"delay_ompidle"}))]
    assert names == ["MPI Wait at Barrier", "OpenMP Wait at Barrier", "Idleness"]
    assert [kind.display_name for kind in cost_classes(TREE.computed(barriers))] == ["Wait at Barrier"]


def test_locks_of_threads_are_no_one_sided_wait_states():
    formula = TREE["mpi_wait_terminal_lock"].formula
    assert formula
    terms = {term.metric for term in formula.terms}
    locks = {name for name, pattern in patterns().items() if pattern.cost_class == "lock"}
    of_threads = {name for name, pattern in patterns().items() if pattern.cost_class == "threadlock"}
    assert {name for name in locks | of_threads if name in terms} == locks
    assert {name.partition("_")[0] for name in of_threads} == {"omp", "pthread"}


def test_a_difference_needs_all_that_is_subtracted():
    tree = TREE.computed({"time", "mpi_latesender", "mpi_latereceiver", "mpi_wait_propagating_ls"})
    assert "mpi_wait_terminal_ls" in tree
    assert "mpi_wait_terminal_lr" not in tree
    assert str(tree["mpi_wait_terminal"].formula) == "mpi_wait_terminal_ls"


def test_an_orphan_moves_up_to_the_next_metric_above():
    tree = TREE.computed({"mpi_latesender"})
    assert tree["mpi_latesender"].parent is None
    assert [metric.name for metric in tree] == ["mpi_latesender", "waiting"]


@pytest.mark.parametrize(
    ("name", "paradigm", "role", "masks"),
    [
        ("main", "COMPILER", "FUNCTION", {"execution"}),
        ("MPI_Init_thread", "MPI", "FUNCTION", {"execution", "mpi", "mpi_mgmt_startup"}),
        ("MPI_Initialized", "MPI", "FUNCTION", {"execution", "mpi", "mpi_mgmt_startup"}),
        ("MPI_Wtime", "MPI", "FUNCTION", {"execution", "mpi"}),
        ("PARALLEL", "MPI", "FUNCTION", {"execution"}),
        ("MPI_Barrier", "MPI", "BARRIER", {"execution", "mpi", "mpi_sync_collective"}),
        ("MPI_Waitall", "MPI", "FUNCTION", {"execution", "mpi", "mpi_comm_p2p"}),
        ("MPI_Isend", "MPI", "POINT2POINT", {"execution", "mpi", "mpi_comm_p2p"}),
        ("MPI_Isend", "USER", "FUNCTION", {"execution", "mpi", "mpi_comm_p2p"}),
        ("MPI_Isend_c", "MPI", "FUNCTION", {"execution", "mpi", "mpi_comm_p2p"}),
        ("mpi_isend_", "MPI", "FUNCTION", {"execution", "mpi", "mpi_comm_p2p"}),
        ("MPI_WAITALL", "MPI", "FUNCTION", {"execution", "mpi", "mpi_comm_p2p"}),
        ("MPI_Isendrecv", "MPI", "FUNCTION", {"execution", "mpi", "mpi_comm_p2p"}),
        ("MPI_Allreduce_init", "MPI", "FUNCTION", {"execution", "mpi", "mpi_comm_collective"}),
        ("MPI_Session_init", "MPI", "FUNCTION", {"execution", "mpi", "mpi_mgmt_startup"}),
        ("MPI_phase", "USER", "FUNCTION", {"execution"}),
        ("mpi_send_all", "COMPILER", "FUNCTION", {"execution"}),
        ("MPI_Allreduce", "USER", "FUNCTION", {"execution", "mpi", "mpi_comm_collective"}),
        ("MPI_Exscan", "MPI", "COLL_OTHER", {"execution", "mpi", "mpi_comm_collective"}),
        ("MPI_Put", "MPI", "RMA", {"execution", "mpi", "mpi_comm_rma", "mpi_comm_rma_puts"}),
        ("MPI_Rget", "UNKNOWN", "UNKNOWN", {"execution", "mpi", "mpi_comm_rma", "mpi_comm_rma_gets"}),
        ("MPI_Accumulate", "MPI", "ATOMIC", {"execution", "mpi", "mpi_comm_rma", "mpi_comm_rma_atomics"}),
        ("MPI_Win_fence", "MPI", "FUNCTION", {"execution", "mpi", "mpi_sync_rma_active"}),
        ("MPI_Win_flush_local_all", "MPI", "FUNCTION", {"execution", "mpi", "mpi_sync_rma_passive"}),
        ("MPI_Win_allocate", "MPI", "ALLOCATE", {"execution", "mpi", "mpi_mgmt_win"}),
        ("MPI_Win_flush", "UNKNOWN", "UNKNOWN", {"execution", "mpi", "mpi_sync_rma_passive"}),
        ("shmem_init", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_mgmt"}),
        ("shfree", "SHMEM", "DEALLOCATE", {"execution", "shmem", "shmem_mgmt"}),
        ("shmem_barrier_all", "SHMEM", "BARRIER", {"execution", "shmem", "shmem_sync_collective"}),
        ("shmem_sync_all", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_sync_collective"}),
        ("shmem_set_lock", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_sync_rma"}),
        ("shmem_quiet", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_sync_rma"}),
        ("shmem_long_wait_until", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_sync_rma"}),
        ("shmem_broadcast64", "SHMEM", "COLL_ONE2ALL", {"execution", "shmem", "shmem_comm_collective"}),
        ("shmem_long_sum_to_all", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_comm_collective"}),
        ("shmem_long_p", "SHMEM", "RMA", {"execution", "shmem", "shmem_comm_rma"}),
        ("shmem_putmem", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_comm_rma"}),
        ("shmem_long_fadd", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_comm_rma"}),
        ("shmem_ctx_put64_nbi", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_comm_rma"}),
        ("shmem_putmem_signal_nbi", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_comm_rma"}),
        ("shmem_int_alltoall", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_comm_collective"}),
        ("shmem_team_sync", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_sync_collective"}),
        ("shmem_team_split_2d", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_mgmt"}),
        ("shmem_ctx_quiet", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_sync_rma"}),
        ("shmem_ctx_destroy", "SHMEM", "FUNCTION", {"execution", "shmem", "shmem_mgmt"}),
        ("shmem_long_p", "USER", "FUNCTION", {"execution"}),
        ("ARMCI_Malloc", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_mgmt"}),
        ("ARMCI_Barrier", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_sync_collective"}),
        ("ARMCI_AllFence", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_sync_rma"}),
        ("ARMCI_Wait", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_sync_rma"}),
        ("ARMCI_NbGetS", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_comm_rma"}),
        ("ARMCI_Rmw", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_comm_rma"}),
        ("PARMCI_NbPutS", "UNKNOWN", "FUNCTION", {"execution", "armci", "armci_comm_rma"}),
        ("MPI_Comm_split_type", "MPI", "FUNCTION", {"execution", "mpi", "mpi_mgmt_comm"}),
        ("MPI_Cart_create", "MPI", "FUNCTION", {"execution", "mpi", "mpi_mgmt_comm"}),
        ("MPI_Comm_call_errhandler", "MPI", "FUNCTION", {"execution", "mpi"}),
        ("MPI_File_open", "MPI", "FILE_IO_METADATA", {"execution", "mpi", "mpi_mgmt_file", "mpi_file_cops"}),
        ("MPI_File_get_size", "MPI", "FUNCTION", {"execution", "mpi", "mpi_mgmt_file", "mpi_file_iops"}),
        ("MPI_File_iread_at", "MPI", "FILE_IO",
         {"execution", "mpi", "mpi_file_individual", "mpi_file_iops", "mpi_file_irops"}),
        ("MPI_File_write_at_all_begin", "MPI", "FILE_IO",
         {"execution", "mpi", "mpi_file_collective", "mpi_file_cops", "mpi_file_cwops"}),
        ("MPI_File_read_ordered", "MPI", "FILE_IO",
         {"execution", "mpi", "mpi_file_collective", "mpi_file_cops", "mpi_file_crops"}),
        ("!$omp barrier", "OPENMP", "BARRIER", {"execution", "omp_sync_ebarrier"}),
        ("!$omp atomic", "OPENMP", "ATOMIC", {"execution", "omp_sync_critical"}),
        ("!$omp taskwait", "OPENMP", "TASK_WAIT", {"execution", "omp_sync_taskwait"}),
        ("omp_set_nest_lock", "OPENMP", "FUNCTION", {"execution", "omp_sync_lock_api"}),
        ("pthread_cond_timedwait", "PTHREAD", "FUNCTION", {"execution", "pthread_sync_condition"}),
        ("TRACE BUFFER FLUSH", "MEASUREMENT_SYSTEM", "ARTIFICIAL", {"overhead"}),
        ("MEASUREMENT OFF", "MEASUREMENT_SYSTEM", "ARTIFICIAL", {"execution"}),
        ("BUFFER FLUSH", "CUDA", "ARTIFICIAL", {"overhead"}),
        ("cudaMemcpy", "CUDA", "FUNCTION", {"execution", "cuda", "cuda_comm"}),
        ("cudaDeviceSynchronize", "CUDA", "FUNCTION", {"execution", "cuda", "cuda_sync"}),
        ("cudaLaunchKernel", "CUDA", "FUNCTION", {"execution", "cuda", "cuda_kernel_launches"}),
        ("cudaMemsetAsync", "CUDA", "FUNCTION", {"execution", "cuda", "cuda_kernel_launches"}),
        ("cudaStreamCreate", "CUDA", "FUNCTION", {"execution", "cuda", "cuda_setup"}),
        ("cudaStreamWaitEvent", "CUDA", "FUNCTION", {"execution", "cuda", "cuda_sync"}),
        ("clEnqueueWriteBuffer", "OPENCL", "FUNCTION", {"execution", "opencl", "opencl_comm"}),
        ("clCreateContext", "OPENCL", "FUNCTION", {"execution", "opencl", "opencl_setup"}),
        ("clFinish", "OPENCL", "FUNCTION", {"execution", "opencl", "opencl_sync"}),
        ("acc_launch_kernel@main.c:3", "OPENACC", "FUNCTION", {"execution", "openacc", "openacc_kernel_launches"}),
        ("loop", "OPENACC", "KERNEL", {"execution"}),
        ("loop", "OPENMP_TARGET", "KERNEL", {"execution"}),
        ("loop", "KOKKOS", "KERNEL", {"execution"}),
        ("loop", "HIP", "KERNEL", {"execution", "hip", "hip_kernel_executions"}),
    ],
)  # fmt: skip
def test_regions_count_in_the_metrics_of_their_class(name, paradigm, role, masks):
    [region] = Region.all_of([(name, paradigm, role)])
    assert {mask for mask in ["execution", *MASKS] if region.is_in(mask)} == masks


# The calls of MPI 4.1, chapter 12.
ONE_SIDED = {
    "mpi_mgmt_win": """Win_create Win_allocate Win_allocate_shared Win_shared_query Win_create_dynamic Win_attach
        Win_detach Win_free Win_get_group Win_set_info Win_get_info Win_get_attr Win_set_attr Win_delete_attr
        Win_create_keyval Win_free_keyval Win_get_name Win_set_name Win_create_errhandler Win_set_errhandler
        Win_get_errhandler Win_call_errhandler""",
    "mpi_comm_rma": """Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Raccumulate
        Rget_accumulate""",
    "mpi_sync_rma_active": "Win_fence Win_start Win_complete Win_post Win_wait Win_test",
    "mpi_sync_rma_passive": """Win_lock Win_lock_all Win_unlock Win_unlock_all Win_flush Win_flush_all Win_flush_local
        Win_flush_local_all Win_sync""",
}


def test_no_call_of_one_sided_communication_is_left_unclassified():
    parts = {"mpi_comm_rma_puts", "mpi_comm_rma_gets", "mpi_comm_rma_atomics"}
    for mask, names in ONE_SIDED.items():
        for name in names.split():
            for variant in (f"MPI_{name}", f"MPI_{name}_c", f"MPI_{name}".upper(), f"mpi_{name}_".lower()):
                [region] = Region.all_of([(variant, "MPI", "FUNCTION")])
                assert {m for m in MASKS if region.is_in(m)} - parts == {"mpi", mask}, variant


def test_kernels_are_told_by_their_file():
    kernel = Region("axpy", "cuda", "function", "CUDA_KERNEL")
    assert kernel.is_in("cuda_kernel_executions")
    assert kernel.is_in("cuda")


def slow(profile, name):
    """Evaluate a metric cell by cell from its definition."""
    metric = profile.metrics[name]
    if metric.formula is None:
        return dense(profile, name)
    total = np.zeros((len(profile.tree), profile.locations))
    if metric.name in profile.void:
        return total
    for term in metric.formula.terms:
        factor = np.ones(len(profile.tree))
        if term.mask == "critical_imbalance":
            factor = np.array([slow_imbalance(profile, c) for c in range(len(profile.tree))])
        elif term.mask:
            kinds = [profile.tree.kinds[row] for row in profile.tree.region_rows]
            factor = np.array([float(kind.is_in(term.mask)) for kind in kinds])
        total += term.sign * factor[:, None] * slow(profile, term.metric)
    return total


def slow_imbalance(profile, callpath):
    below = [c for c in range(len(profile.tree)) if callpath in above(profile.tree, c)]
    path = slow(profile, "critical_path")[below].sum()
    work = slow(profile, "time")[below].sum() - slow(profile, "mpi_latesender")[below].sum()
    return max(0.0, (path - work / profile.locations) / path) if path > 0 else 0.0


def above(tree, callpath):
    while callpath >= 0:
        yield callpath
        callpath = tree.parents[callpath]


KINDS = [
    fake_native.MAIN, fake_native.SOLVE, fake_native.SEND, fake_native.RECV, fake_native.BARRIER, fake_native.FLUSH,
    fake_native.OMP_BARRIER, ("MPI_Win_fence", "MPI", "FUNCTION"), ("MPI_File_write", "MPI", "FILE_IO"),
    ("cudaMemcpy", "CUDA", "FUNCTION"),
]  # fmt: skip


@st.composite
def analyses(draw, metrics=STORED):
    """Draw any call forest with any values."""
    size = draw(st.integers(0, 8))
    parents = [draw(st.one_of(st.none(), st.integers(0, c - 1))) if c else None for c in range(size)]
    # Ids are not in pre-order: children may come before their parents.
    shuffle = draw(st.permutations(range(size)))
    regions = [draw(st.sampled_from(KINDS)) for _ in range(size)]
    moved_parents, moved_regions = [None] * size, [None] * size
    for old, new in enumerate(shuffle):
        moved_parents[new] = None if parents[old] is None else shuffle[parents[old]]
        moved_regions[new] = regions[old]
    ranks = [(rank, thread) for rank in range(draw(st.integers(1, 3))) for thread in range(draw(st.integers(1, 2)))]
    cells = [(c, location) for c in range(size) for location in range(len(ranks))]
    numbers = st.integers(0, 2**20).map(float)
    chosen = st.dictionaries(st.sampled_from(cells), numbers) if cells else st.just({})
    values = {metric: draw(chosen) for metric in draw(st.lists(st.sampled_from(sorted(metrics)), unique=True))}
    return fake_native.FakeAnalysis(moved_parents, moved_regions, ranks, values)


@given(analyses(), st.sampled_from([STORED, [metric.name for metric in TREE if not metric.derived]]))
def test_derived_metrics_equal_a_direct_evaluation(analysis, stored):
    profile = fake_native.result(analysis, stored=stored).profile
    for metric in profile.metrics:
        if metric.name != "critical_path_imbalance":
            assert np.array_equal(dense(profile, metric.name), slow(profile, metric.name)), metric.name


@given(
    st.lists(st.tuples(st.sampled_from([1, -1]), st.dictionaries(st.integers(0, 9), st.integers(1, 3))), max_size=3),
    st.sampled_from([1, 1000]),
)
def test_cells_are_added_by_key(operands, distance):
    expected = {}
    for sign, cells in operands:
        for key, value in cells.items():
            expected[key * distance] = expected.get(key * distance, 0.0) + sign * value
    columns = [(sign, sorted(cells), [cells[key] for key in sorted(cells)]) for sign, cells in operands]
    found = add(
        [(sign, Cells(np.array(key, np.int64) * distance, np.array(value, float))) for sign, key, value in columns]
    )
    assert found.key.tolist() == sorted(key for key, value in expected.items() if value)
    assert found.value.tolist() == [expected[key] for key in found.key.tolist()]


@given(analyses(metrics=("critical_path", "time", "mpi_latesender")))
def test_critical_path_imbalance_equals_a_direct_evaluation(analysis):
    profile = fake_native.result(analysis, stored=("critical_path", "time", "mpi_latesender")).profile
    assert isinstance(profile, Profile)
    assert np.allclose(dense(profile, "critical_path_imbalance"), slow(profile, "critical_path_imbalance"))


@given(analyses())
def test_inclusive_is_the_sum_over_the_subtree(analysis):
    profile = fake_native.result(analysis).profile
    tree = profile.tree
    exclusive = dense(profile, "time")
    expected = np.zeros_like(exclusive)
    for callpath in range(len(tree)):
        for upper in above(tree, callpath):
            expected[upper] += exclusive[callpath]
    cells = profile.inclusive_cells("time")
    got = np.zeros_like(exclusive)
    got[tree.preorder[cells.key // profile.locations], cells.key % profile.locations] = cells.value
    assert np.array_equal(got, expected)
    assert np.array_equal(profile.inclusive(profile.by_position("time")), expected.sum(axis=1)[tree.preorder])


def test_metrics_of_absent_paradigms_are_void():
    profile = fake_native.result(fake_native.small()).profile
    assert {
        "shmem",
        "armci",
        "omp_ebarrier",
        "pthread_time",
        "cuda_setup",
        "opencl_time",
        "openacc_sync",
    } <= profile.void
    assert not profile.void & {"time", "visits", "mpi", "comms", "mpi_file_ops"}
    threads = fake_native.FakeAnalysis(
        [None, 0], [fake_native.MAIN, fake_native.OMP_BARRIER], [(0, 0)], {"time": {(1, 0): 1.0}}
    )
    profile = fake_native.result(threads).profile
    assert {"mpi", "mpi_latesender", "syncs", "comms", "bytes", "mpi_file_ops"} <= profile.void
    assert profile.total("omp_ibarrier") == 1.0
    assert profile.total("comp") == 0.0


def test_metrics_of_accelerators_are_derived_where_one_waits(tmp_path):
    """Accelerators have no paradigm of their own: their metrics occur with any of them."""
    text = "0: main [0, 7]\n0: hipLaunchKernel [1, 1.1]\n0/0: heavy [1.15, 5.0]\n0: hipDeviceSynchronize [1.2, 5.1]"
    profile = whywait.analyze(trace_from_text(text, tmp_path)).profile
    assert {metric.name for metric in profile.metrics if metric.paradigm == "gpu"}.isdisjoint(profile.void)
    assert profile.total("gpu_host") == pytest.approx(3.9)
    assert profile.total("delay_gpu_host_aggregate") == profile.total("mpi_wait_direct_gpu_host") == pytest.approx(3.8)


@pytest.mark.parametrize("case", fake_native.shared_cases() or [None], ids=lambda case: case and case.name)
def test_time_hierarchy_adds_up_on_recorded_runs(case):
    if case is None:
        pytest.skip(UNRECORDED)
    analysis, scout = fake_native.from_scout(case)
    result = fake_native.result(analysis)
    metrics = result.metrics
    for name in STORED:
        if name in scout["totals"] and name not in {"time", "visits"}:
            assert metrics[name].total == pytest.approx(scout["totals"][name], rel=1e-12)
    time = metrics["time"].total
    assert metrics["execution"].total + metrics["overhead"].total == pytest.approx(time)
    parts = sum(metrics[name].total for name in ("comp", "mpi", "omp_time"))
    assert metrics["execution"].total == pytest.approx(parts)
    for metric in result.profile.metrics:
        children = sum(result.profile.total(child.name) for child in result.profile.metrics.children(metric.name))
        own = result.profile.total(metric.name)
        assert own >= children - 1e-9 * max(1.0, time), metric.name


def test_namesakes_are_told_apart():
    tree = metric_tree()
    assert tree.labels(["mpi_latesender", "mpi_barrier_wait"]) == {
        "mpi_latesender": "Late Sender",
        "mpi_barrier_wait": "Wait at Barrier",
    }
    assert list(tree.labels(["mpi_barrier_wait", "omp_ibarrier_wait"]).values()) == [
        "Wait at Barrier (MPI)",
        "Wait at Barrier (OpenMP)",
    ]
    barriers = tree.labels(["mpi_barrier_wait", "omp_ibarrier_wait", "omp_ebarrier_wait"])
    assert list(barriers.values()) == [
        "Wait at Barrier (MPI)",
        "Wait at Barrier (OpenMP, Implicit)",
        "Wait at Barrier (OpenMP, Explicit)",
    ]
