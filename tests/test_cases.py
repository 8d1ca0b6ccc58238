"""Published experiments: their programs by construction, and the results of analyzing them."""

import json
import re
from collections import Counter

import pyarrow as pa
import pytest
import whywait
from whywait import _native
from whywait.bench import published, rerun
from whywait.cli import main
from whywait.commands.bench import CASES

from tests.test_workloads import found_in, truth_of

BT = ("bt-rma-fence", "bt-rma-gats-fence", "bt-rma-gats-single", "bt-rma-gats-multi")


def analyzed(directory, workload, ranks, iterations, *, causes=False, **options):
    _native.generate(workload, directory, ranks=ranks, iterations=iterations, seed=1, **options)
    result = whywait.analyze(directory, causes=causes)
    assert not result.warnings
    return result


def total(result, metric):
    return result.metrics[metric].total if metric in result.metrics else 0


def by(result, metric, *columns):
    """Return the values of a metric, summed up by some columns; a call path is its last function."""
    sums = Counter()
    for row in pa.table(result.severities(metric)).to_pylist():
        row["callpath"] = row["callpath"][-1]
        sums[tuple(row[column] for column in columns)] += row["value"]
    return sums


def costs(result, kind, *columns):
    """Return the delay costs of a kind of wait state, likewise."""
    sums = Counter()
    for row in pa.table(result.delay_costs()).to_pylist():
        if row["class"] == kind:
            row["callpath"] = row["callpath"][-1]
            sums[tuple(row[column] for column in columns)] += row["short_term"] + row["long_term"]
    return sums


def bt_pairs(variant, side, iterations):
    """Return the pairs that synchronize, and the unneeded ones, of side x side processes: thesis, section 5.2."""
    ranks = side * side
    stages = iterations * 3 * 2 * (side - 1)
    faces = iterations + 1
    if variant == "bt-rma-fence":
        fences, groups = stages + faces, 0
    elif variant == "bt-rma-gats-fence":
        fences, groups = faces, stages
    else:
        fences, groups = 0, stages + 6 * faces
    needed_in_fences = {"bt-rma-fence": 2 * stages + 12 * faces, "bt-rma-gats-fence": 12 * faces}.get(variant, 0)
    return ranks * (2 * fences * ranks + 2 * groups), ranks * (2 * fences * ranks - needed_in_fences)


@pytest.mark.parametrize(("side", "iterations"), [(4, 3), (5, 1)])
@pytest.mark.parametrize("variant", BT)
def test_bt_synchronizes_as_many_pairs_as_its_structure_says(variant, side, iterations, tmp_path):
    result = analyzed(tmp_path, variant, side * side, iterations, work=20_000)
    found = [total(result, f"mpi_rma_pairsync_{what}") for what in ("count", "unneeded_count")]
    assert found == list(bt_pairs(variant, side, iterations))


@pytest.mark.parametrize(
    ("variant", "side", "pairs", "unneeded"),
    [
        ("bt-rma-gats-single", 16, 12_340_224, 0),
        ("bt-rma-gats-single", 32, 98_709_504, 0),
        ("bt-rma-gats-fence", 32, 624_095_232, 525_385_728),
        ("bt-rma-fence", 32, 98_436_120_576, 98_337_411_072),
    ],
)
def test_the_formula_gives_the_published_counts(variant, side, pairs, unneeded):
    assert bt_pairs(variant, side, 251) == (pairs, unneeded)


def test_fences_once_counted_twice_as_many_pairs():
    """Tables of 256 processes come from a version that counted 2 P pairs of a fence."""
    pairs, unneeded = bt_pairs("bt-rma-gats-fence", 16, 251)
    fences = 252 * 2 * 256 * 256
    assert (pairs + fences, unneeded + fences) == (77_626_368, 65_286_144)
    pairs, unneeded = bt_pairs("bt-rma-fence", 16, 251)
    fences = (251 * 90 + 252) * 2 * 256 * 256
    assert f"{pairs + fences:.3e} {unneeded + fences:.3e}" == "5.988e+09 5.976e+09"


def test_an_early_exposure_leaves_less_to_wait_for(tmp_path):
    """That is what distinguishes `gats-multi`: Late Post decreases (table A.5)."""
    single, multi = (analyzed(tmp_path / name, name, 16, 20, imbalance=1.0) for name in BT[2:])
    assert 0 < total(multi, "mpi_rma_comm_late_post") < total(single, "mpi_rma_comm_late_post") / 2


def test_barriers_after_each_dimension_take_part_of_the_waiting(tmp_path):
    """The workaround for one machine (thesis, section 5.2); it changes no counts of pairs."""
    plain, barred = (
        analyzed(tmp_path / str(barriers), "bt-rma-gats-single", 16, 4, barriers=barriers) for barriers in (False, True)
    )
    visits = [by(result, "visits", "callpath")["MPI_Barrier",] for result in (plain, barred)]
    assert visits == [16, 16 * (1 + 3 * 4)]
    assert total(plain, "mpi_rma_pairsync_count") == total(barred, "mpi_rma_pairsync_count")
    assert total(barred, "mpi_barrier_wait") > 10 * total(plain, "mpi_barrier_wait")
    assert found_in(tmp_path / "True") == pytest.approx(truth_of(tmp_path / "True"), abs=1)
    with pytest.raises(whywait.UsageError, match="bt-rma"):
        analyzed(tmp_path / "other", "cgpop-original", 16, 4, barriers=True)


@pytest.fixture(scope="module")
def cgpop(tmp_path_factory):
    """Return the analyses of CGPOP with the barrier and without, with the work that `whywait bench paper` gives it."""
    options = {"work": 2_140_000, "imbalance": 0.828, "causes": True}
    variants = ("cgpop-original", "cgpop-modified")
    return [analyzed(tmp_path_factory.mktemp("cgpop"), name, 60, 500, **options) for name in variants]


def test_cgpop_waits_as_long_as_published(cgpop):
    """Thesis, table A.8: seconds over all processes."""
    original, modified = cgpop
    assert total(original, "time") == pytest.approx(125.21, rel=0.01)
    assert total(modified, "time") == pytest.approx(108.26, rel=0.01)
    assert total(original, "mpi") == pytest.approx(59.78, rel=0.01)
    assert total(original, "mpi_barrier_wait") == pytest.approx(51.95, rel=0.01)
    assert total(modified, "mpi_barrier_wait") == 0
    assert total(original, "mpi_barrier_completion") == pytest.approx(0.87, rel=0.02)
    assert total(original, "mpi_rma_sync_late_post") == pytest.approx(1.56, rel=0.1)
    assert total(modified, "mpi_rma_sync_late_post") == pytest.approx(26.21, rel=0.02)


def test_two_processes_cause_the_waiting_at_the_barrier_of_cgpop(cgpop):
    """In `matrix_mod_matvec` and the function that calls it (thesis, section 5.3)."""
    of = costs(cgpop[0], "barrier", "callpath", "rank")
    assert {key for key, _ in of.most_common(4)} == {
        (function, rank) for function in ("matrix_mod_matvec", "pcg_chrongear_linear") for rank in (15, 45)
    }
    assert sum(cost for _, cost in of.most_common(4)) > 0.95 * sum(of.values())
    waiting = by(cgpop[0], "mpi_barrier_wait", "rank")
    assert max(waiting.values()) < 2 / 60 * sum(waiting.values())


def test_an_uneven_end_of_the_barrier_causes_late_posts(cgpop):
    """With the barrier it is its completion, without it the work before (thesis, section 5.3)."""
    with_barrier, without = (costs(result, "rma_late_post", "callpath") for result in cgpop)
    assert with_barrier["MPI_Barrier",] > 0.9 * sum(with_barrier.values())
    assert without["matrix_mod_matvec",] + without["pcg_chrongear_linear",] > 0.9 * sum(without.values())


def test_the_lock_passes_from_process_to_process(tmp_path):
    """Thesis, section 5.6, figure 5.9: waits of 2.0 and 2.1 s, and a balanced `bar` would leave 0.17 s of 2 s."""
    result = analyzed(tmp_path, "lock-chain", 12, 1, causes=True)
    contention = by(result, "mpi_rma_sync_lock_competition", "rank")
    progress = by(result, "mpi_rma_sync_wait_for_progress", "rank")
    assert f"{contention[1,]:.1f}" == "2.0"
    assert list(progress) == [(2,)]
    assert {f"{contention[rank,] + progress[rank,]:.1f}" for rank in range(2, 12)} == {"2.1"}
    path = by(result, "critical_path", "callpath", "rank")
    assert {rank for function, rank in path if function == "MPI_Win_unlock"} == {0, *range(2, 12)}
    assert f"{path['bar', 0]:.2f} {path['bar', 0] / 12:.2f}" == "2.00 0.17"
    imbalance = by(result, "critical_path_imbalance", "callpath")
    assert f"{sum(imbalance.values()):.2f} {imbalance['bar',]:.2f}" == "1.93 1.83"


def test_a_delay_makes_a_post_late_two_processes_away(tmp_path):
    """EuroMPI'13, figure 3: process 2 waits 0.3 s, for which `foo` on process 0 pays."""
    result = analyzed(tmp_path, "late-post", 3, 1, causes=True, work=110_000_000, imbalance=0.3 / 0.11)
    assert by(result, "mpi_rma_sync_late_post", "rank")[2,] == pytest.approx(0.3, rel=1e-3)
    of = costs(result, "rma_late_post", "callpath", "rank")
    assert of["foo", 0] == pytest.approx(sum(of.values()), rel=1e-3)


def test_a_put_between_post_start_complete_and_wait(tmp_path):
    result = analyzed(tmp_path, "put-gats", 4, 1)
    visits = by(result, "visits", "callpath", "rank")
    assert all(visits["MPI_Put", rank] == 1 and visits["MPI_Win_start", rank] == 1 for rank in (1, 3))
    assert all(visits["MPI_Win_post", rank] == 1 and visits["MPI_Win_wait", rank] == 1 for rank in (0, 2))


@pytest.mark.parametrize(("ranks", "gets"), [(4, 16), (8, 28), (16, 32), (32, 56), (64, 64), (128, 112)])
def test_a_product_takes_as_many_gets_as_published(ranks, gets, tmp_path):
    """Thesis, table A.9, and its continuation to fewer processes."""
    result = analyzed(tmp_path, "srumma-nb", ranks, 1, work=20_000)
    visits = by(result, "visits", "callpath", "rank")
    assert all(visits["ARMCI_NbGet", rank] == gets for rank in range(ranks))


def test_fences_of_all_cause_the_waiting_at_the_barrier_behind_a_product(tmp_path):
    """Thesis, section 5.4: the work is the same for all."""
    of = costs(analyzed(tmp_path, "srumma-nb", 1024, 1, causes=True, imbalance=0.0), "barrier", "callpath")
    assert of["ARMCI_AllFence",] > 0.5 * sum(of.values())


def test_calls_of_a_simulation_have_one_call_path(tmp_path):
    """Thesis, section 5.5: only ARMCI is recorded; waits for progress are few and lie anywhere."""
    result = analyzed(tmp_path, "nwchem", 64, 5)
    paths = [path["callpath"] for path in pa.table(result.callpaths()).to_pylist()]
    assert {tuple(path[:-1]) for path in paths if path[-1].startswith("ARMCI_")} == {("workload", "main")}
    waiting = by(result, "armci_rma_comm_wait_for_progress", "rank")
    assert len(waiting) > 32
    assert max(waiting.values()) < 0.1 * sum(waiting.values())


def test_the_names_of_cases_are_those_of_the_command_line():
    assert [case.name for case in published.CASES] == list(CASES)


def test_a_case_that_is_none_has_suggestions():
    with pytest.raises(whywait.UsageError, match=r"lulesh: no such case \(sor, "):
        published.named("lulesh")


def test_published_figures_are_there_for_every_variant():
    for case in published.CASES:
        assert all(len(row.published) == len(case.variants) for row in case.rows), case.name


def test_phases_of_the_thesis_add_up_to_its_totals():
    """Tables A.1 to A.4, rounded to hundredths of a second."""
    totals = {"p2p": (4.80, 14.67), "gats": (3.92, 12.08), "fence": (2.88, 12.88), "locks": (44.59, 55.92)}
    rows = {row.name: row.published for row in published.named("sor").rows}
    for name, ends in totals.items():
        assert (rows[name][0] / 2, rows[name][-1] / 2) == pytest.approx(ends, abs=0.035)
        assert rows[f"{name}, phase 1"][0] + rows[f"{name}, phases 2 and 3"][0] + rows[f"{name}, phases 4 and 5"][
            0
        ] == pytest.approx(rows[name][0])


def test_the_rate_of_gets_is_the_published_one():
    """Thesis, section 5.4: 58.7 million gets in phase 1, 11 million a second."""
    rate = next(row.published[-1] for row in published.named("srumma").rows if row.name == "Gets analyzed in a second")
    assert rate == pytest.approx(11.1e6, rel=0.01)


@pytest.mark.parametrize("name", ["bt-rma", "bt-rma-1024", "bt-rma-juqueen"])
def test_times_of_the_tables_add_up(name):
    """Thesis, tables A.5 to A.7: execution and MPI are all of the time."""
    total, execution, mpi, *_ = (row.published for row in published.named(name).rows)
    assert [a + b for a, b in zip(execution, mpi, strict=True)] == pytest.approx(total, abs=0.02)


def test_counts_of_pairs_come_out_exactly():
    """Thesis, table A.5: on 256 processes, from one of 251 iterations."""
    report = rerun.run(published.named("bt-rma").scaled(iterations=1))
    rows = {row["name"]: row for row in report["rows"]}
    pairs, unneeded = rows["Pairwise synchronizations"], rows["Unneeded synchronizations"]
    assert pairs["here"] == pairs["structure"] == [5_987_893_248, 77_626_368, 12_340_224, 12_340_224]
    assert unneeded["here"] == unneeded["structure"] == [5_975_553_024, 65_286_144, 0, 0]
    for row in (pairs, unneeded):
        assert [f"{count:.3e}" for count in row["here"]] == [f"{count:.3e}" for count in row["published"]]


@pytest.mark.parametrize("name", [case.name for case in published.CASES])
def test_every_case_runs_on_few_processes(name):
    limit = None if name in {"lock", "late-post"} else 9
    case = published.named(name).scaled(limit, None if name in {"lock", "late-post"} else 2)
    report = rerun.run(case)
    assert report["variants"]
    for row in report["rows"]:
        assert len(row["here"]) == len(row["published"]) == len(report["variants"])
        if re.search(r"phase [2-5]$", row["name"]):
            assert set(row["here"]) == {None}, "two phases of the publication are one pass here"
            continue
        assert all(figure is not None for figure in row["here"]), row
        # What functions of xns save may be negative: waiting moves from one to the other.
        assert re.search(r"deviation$|, saved", row["name"]) or min(row["here"]) >= 0, row
        if limit:
            assert set(row["published"]) == {None}, "published for other numbers of processes"
        for here, structure in zip(row["here"], row["structure"], strict=True):
            assert structure in (None, here), row
    head, rows = rerun.table(report)
    assert all(len(row) == len(head) for row in rows)


def test_scales_that_are_too_large_are_left_out():
    case = published.named("srumma").scaled(512)
    assert [variant.processes for variant in case.variants] == [128, 256, 512]
    assert all(len(row.published) == 3 for row in case.rows)
    assert all(case.is_published(place) for place in range(3))


def test_what_is_too_large_to_run_unasked_is_named(capsys):
    assert main(["bench", "paper", "srumma", "--processes", "128"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Left out: 256, 512, 1,024, 2,048, 4,096, 8,192, 16,384, 32,768; --processes 32768 includes them." in text
    assert {case.name: case.usual for case in published.CASES if case.usual} == {"sor": 8192, "srumma": 8192}


def test_the_command_line_prints_the_table_beside_the_published_one(capsys):
    assert main(["bench", "paper", "lock"]) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines() if "published" in line or line.startswith("  " * 10)]
    assert ["of", "bar", "published", "1.83", "s"] in lines
    assert "thesis, section 5.6" in text
    assert main(["bench", "paper", "lock", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    imbalance = report["rows"][-1]
    assert (imbalance["name"], imbalance["published"]) == ("of bar", [1.83])
    assert imbalance["here"] == [pytest.approx(1.83, abs=0.005)]


def test_windows_of_threads_have_as_many_messages_as_published():
    """Eberius, table 3.4, with the warm-up; a round has all threads, so up to one of each is missing."""
    case = published.named("multirate")
    rows = {row.name: row for row in case.rows}
    for variant, received, late in zip(
        case.variants[:3], rows["Receives"].published, rows["Possibly out of sequence"].published, strict=False
    ):
        assert rows["Receives"].structure(variant) == received
        assert 0 <= late - rows["Possibly out of sequence"].structure(variant) < variant.threads
    assert [rows["Possibly out of sequence"].structure(variant) for variant in case.variants[3:]] == [0, 0]


@pytest.mark.parametrize("name", ["comd-gpu", "comd-gpu-large"])
def test_efficiencies_adjust_the_imbalance_of_devices_to_that_of_atoms(name):
    """Eberius, equation 4.5; loads are whole nanoseconds."""
    rows = {row["name"]: row for row in rerun.run(published.named(name))["rows"]}
    atoms = rows["Atoms"]
    assert atoms["here"] == pytest.approx(atoms["published"], abs=1e-9)
    assert rows["GPU, adjusted"]["here"] == pytest.approx(atoms["here"], abs=1e-3)
    # A wave of one more of some ten or twenty makes the difference.
    off = [abs(found - asked) for found, asked in zip(rows["GPU"]["here"], atoms["here"], strict=True)]
    assert 0.1 < max(off) < 100 / (80_000 / 10_240) * 2


def test_sums_of_fewer_iterations_compare_with_nothing():
    case = published.named("cgpop")
    assert case.scaled().is_published(0)
    assert not case.scaled(iterations=5).is_published(0)
    assert published.named("sor").scaled(512, 5).is_published(0), "published by iteration"
