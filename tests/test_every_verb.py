"""Every verb answers on every trace: no traceback, and nothing on standard error but what is known."""

import dataclasses
import re
from pathlib import Path

import pyarrow as pa
import pytest
import whywait
from whywait import cli
from whywait.analysis import findings as findings_module
from whywait.analysis.findings import rules
from whywait.analysis.focus import focused
from whywait.analysis.proposals.prices import priced_findings
from whywait.analysis.proposals.trials import Trials
from whywait.analysis.ranking import Choice, Kinds, choose
from whywait.model.metrics import metric_tree

from tests.results import SHARED, UNRECORDED

DATA = Path(__file__).parent / "data"
# Of a program before and after a change, one run will do.
SHIPPED = sorted(anchor.parent for anchor in DATA.rglob("*.otf2") if anchor.parent.name != "after")
SHIPPED += sorted({file.parent for file in DATA.rglob("*.pt.trace.json.gz")})
# What a verb is called with: R is the result, T the trace, O a file that is written.
VERBS = [
    line.split()
    for line in """
        findings R
        account R
        account R --by callpath --focus all
        account R --by location
        account R --by iteration
        summary R --markdown
        tree R
        waits R
        waits R --groups
        waits R --statistics
        explain R
        explain T 1
        delay R
        critical R
        efficiency R --json
        iterations R
        messages R
        threads R
        counters R
        gpu R
        io R
        info T
        info --check T
        clocks T
        diff R R
        advise T --top 3
        whatif T --trim all
        export perfetto T -o O
    """.strip().splitlines()
]
# A run has not everything that can be asked for.
REFUSALS = re.compile(
    r"whywait: (no main loop found: .*|the run has no main loop: .*|there is no finding 1: .*)\n", re.DOTALL
)
# What voids an answer is said with it.
WARNINGS = re.compile(r"(whywait: \w+: .* of the time lies in calls of .*\n)?")


def call(arguments, capsys):
    """Run a command as a user would; it prints an answer, or one of the known refusals."""
    code = cli.main(arguments)
    out, err = capsys.readouterr()
    known = {0: WARNINGS, 2: REFUSALS}
    assert known[code].fullmatch(err), (arguments, code, err)
    assert bool(out) == (code == 0), arguments
    assert "could not be made" not in out, (arguments, out)


@pytest.fixture(params=SHIPPED, ids=lambda trace: str(trace.relative_to(DATA)))
def trace(request, monkeypatch):
    """A trace that is analyzed once for all verbs that want the usual analysis."""
    analyze, path = whywait.analyze, str(request.param)
    usual = {}

    def shared(run, *, progress=None, **options):
        if options or str(run) != path:
            return analyze(run, progress=progress, **options)
        if not usual:
            usual["result"] = analyze(run)
        return usual["result"]

    monkeypatch.setattr(whywait, "analyze", shared)
    return path


def test_every_verb_answers_on_every_trace(trace, tmp_path, capsys):
    result = str(tmp_path / "result")
    call(["analyze", trace, "-o", result, "--html"], capsys)
    named = {"R": result, "T": trace, "O": str(tmp_path / "written")}
    for verb in VERBS:
        call([named.get(word, word) for word in verb], capsys)


@pytest.mark.skipif(not SHARED.is_dir(), reason=UNRECORDED)
def test_recorded_traces_have_results_and_findings(tmp_path, capsys):
    found = {anchor.parent for kind in ("cases", "real", "field") for anchor in (SHARED / kind).rglob("*.otf2")}
    assert found
    for number, trace in enumerate(sorted(found)):
        if whywait.open(trace).info()["events"] < 200_000:
            call(["analyze", str(trace), "-o", str(tmp_path / str(number))], capsys)
    for number, trace in enumerate(sorted((SHARED / "kineto").glob("*/traces"))):
        call(["analyze", str(trace), "-o", str(tmp_path / f"kineto{number}")], capsys)
    for number, trace in enumerate(sorted((SHARED / "paraver/real").glob("*.prv.gz"))):
        call(["analyze", str(trace), "-o", str(tmp_path / f"paraver{number}")], capsys)


def test_waits_of_each_metric_can_be_chosen():
    part = focused(whywait.analyze(DATA / "rma_progress_known"))
    kinds = set(part.tables.wait_states["kind"].to_pylist())
    assert "mpi_rma_sync_wait_for_progress_last_call" in kinds
    for metric in part.profile.metrics:
        if part.profile.metrics.wait_state(metric.name) is not None:
            chosen = set(choose(part, Choice(metric.name))["kind"].to_pylist())
            assert all(metric in metric_tree().path(kind) or kind == metric.name for kind in chosen)


def test_kinds_of_a_newer_version_are_left_out():
    result = whywait.analyze(DATA / "flood")
    table = result.tables.wait_states
    unknown = pa.array(["of_a_newer_version"] * table.num_rows).dictionary_encode()
    newer = table.set_column(table.column_names.index("kind"), "kind", unknown).cast(table.schema)
    kinds = Kinds(pa.concat_tables([table, newer]))
    assert kinds.occurring == set(table["kind"].to_pylist())
    assert kinds.rows(kinds.of_metric(result.profile.metrics, "mpi_point2point")).size <= table.num_rows


def fail(*_):
    raise KeyError("of a rule")


def test_a_rule_that_fails_leaves_the_others(monkeypatch, tmp_path, capsys):
    usual = {one.rule for one in priced_findings(whywait.analyze(DATA / "stencil"))}
    assert {"imbalance", "serial_tail"} <= usual
    for name in ("detect", "changes", "remark"):
        broken = {**rules(), "imbalance": dataclasses.replace(rules()["imbalance"], **{name: fail})}
        monkeypatch.setattr(findings_module, "rules", lambda broken=broken: broken)
        assert cli.main(["analyze", str(DATA / "stencil"), "-o", str(tmp_path / name)]) == 0
        out, err = capsys.readouterr()
        what = "a price" if name == "changes" else "a finding"
        text = f"{what} could not be made: imbalance (KeyError: 'of a rule')"
        assert text in " ".join(out.split())
        assert err == ""
        stored = whywait.load(tmp_path / name)
        assert text in stored.notes
        found = {row["rule"] for row in stored.tables.read("findings").to_pylist()}
        # What the rule would have explained is explained by another, if one can.
        assert found >= usual - {"imbalance"} if name == "detect" else found == usual
        assert sum(warning["text"] == text for warning in stored.warnings) == 1


def test_a_simulation_that_fails_leaves_the_others(monkeypatch, capsys, tmp_path):
    of = Trials.of

    def broken(self, batch):
        if any(change.option.startswith("--balance 'relax") for change in batch):
            raise ZeroDivisionError("in a simulation")
        return of(self, batch)

    monkeypatch.setattr(Trials, "of", broken)
    assert cli.main(["analyze", str(DATA / "stencil"), "-o", str(tmp_path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "a price could not be made: --balance 'relax/work' (ZeroDivisionError: in a simulation)" in out
    prices = whywait.load(tmp_path).tables.prices.to_pylist()
    saved = {price["option"]: price["saved"] for price in prices if price["option"]}
    assert saved.pop("--balance 'relax/work'") is None
    assert len(saved) >= 2
    assert None not in saved.values()


def test_what_users_must_know_is_no_failure():
    result = whywait.analyze(DATA / "flood")
    with pytest.raises(whywait.UsageError), result.surviving("a finding", "any"):
        raise whywait.UsageError("there is no such call path")
    assert not result.failures
