"""The dataset on disk: its contents, compatible versions, and how it is recognized."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import whywait
from whywait import load
from whywait.cli import main
from whywait.store.dataset import FORMAT_VERSION, MANIFEST, type_name

from tests import fake_native

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stencil")
    whywait.analyze(DATA / "stencil", wrong_order_window=7).write(directory)
    return directory


@pytest.fixture
def copy(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "results"))


def manifest(directory, **changes):
    """Read the manifest, after changes to it."""
    path = directory / MANIFEST
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(content))
    return content


def test_the_manifest_says_what_there_is(written):
    content = json.loads((written / MANIFEST).read_text())
    assert (content["format"], content["format_version"]) == ("whywait-result", FORMAT_VERSION)
    assert content["whywait"] == whywait.__version__
    assert Path(content["trace"]["path"]) == DATA / "stencil" / "traces.otf2"
    assert (written / content["trace"]["relative_path"]).samefile(DATA / "stencil" / "traces.otf2")
    options = {"wrong_order_window": 7, "causes": True, "cost_model": "thesis", "idle_threads": False}
    assert content["options"] == options == load(written).options
    facts = whywait.analyze(DATA / "stencil").facts
    assert content["time"] == {"origin": facts["origin"], "resolution": facts["resolution"]}
    assert {file.stem for file in written.glob("*.parquet")} == set(content["tables"])
    assert content["tables"]["callpaths"]["columns"]["path"] == "string"
    for known in content["tables"].values():
        file = pq.ParquetFile(written / known["file"])
        assert file.metadata.num_rows == known["rows"]
        assert {field.name: type_name(field.type) for field in file.schema_arrow} == known["columns"]


def test_a_result_is_read_without_its_cube_file_and_summary(copy):
    for name in ("report.cubex", "report.stat", "summary.json", "derived.parquet"):
        (copy / name).unlink()
    back, result = load(copy), whywait.analyze(DATA / "stencil", wrong_order_window=7)
    assert back.severities() == result.severities()
    assert back.derived_severities() == result.derived_severities()
    assert back.wait_states() == result.wait_states()
    assert back.critical_path() == result.critical_path()
    assert back.callpaths() == result.callpaths()
    assert back.inconsistencies() == result.inconsistencies()
    assert back.locations.to_pylist() == result.locations.to_pylist()
    back.write_cube(copy / "again.cubex")
    result.write_cube(copy / "report.cubex")
    assert (copy / "again.cubex").read_bytes() == (copy / "report.cubex").read_bytes()


def joined(directory, name):
    """Return a table of the dataset with names and ranks, as a reader gets them from other tables."""
    table, callpaths, locations = (
        pq.read_table(directory / f"{file}.parquet") for file in (name, "callpaths", "locations")
    )
    found = {column: table[column].to_pylist() for column in table.column_names}
    for column in table.column_names:
        numbers = found[column]
        if column.endswith("callpath_id"):
            paths = dict(zip(callpaths["callpath"].to_pylist(), callpaths["path"].to_pylist(), strict=True))
            texts = [paths.get(number) for number in numbers]
            found[column.removesuffix("_id")] = [text and text.split("/") for text in texts]
            if name == "wait_states" and column == "callpath_id":
                found["path"] = texts
        elif column.endswith("location"):
            for place in ("rank", "thread"):
                of = dict(zip(locations["location"].to_pylist(), locations[place].to_pylist(), strict=True))
                found[column.removesuffix("location") + place] = [of.get(number) for number in numbers]
    return found


@pytest.mark.parametrize("trace", ["stencil", "rma_gats_rdma", "mixed"])
def test_joins_and_exported_tables_have_the_names_of_the_methods(trace, tmp_path, capsys):
    result = whywait.analyze(DATA / trace)
    result.write(tmp_path / "results", transfers=True)
    assert main(["export", "tables", str(tmp_path / "results")]) == 0
    methods = {"derived": "derived_severities"}
    names = ("severities", "derived", "wait_states", "critical_path", "transfers")
    assert capsys.readouterr().out.split()[3:] == [f"{name}.parquet" for name in names]
    for name in names:
        table = getattr(result, methods.get(name, name))()
        assert name == "transfers" or table.num_rows
        exported = pq.read_table(tmp_path / "results" / "tables" / f"{name}.parquet")
        assert exported.schema.equals(table.schema)
        assert exported.to_pylist() == table.to_pylist()
        found = joined(tmp_path / "results", name)
        for column in table.column_names:
            assert found[column] == table[column].to_pylist(), (name, column)
        kept = pq.read_schema(tmp_path / "results" / f"{name}.parquet").names
        assert not {"callpath", "rank", "cause_rank", "path"} & set(kept)


def test_exported_tables_take_what_there_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whywait.analyze(DATA / "stencil", causes=False).write("results")
    assert main(["export", "tables", "results", "-o", "some"]) == 0
    assert {file.stem for file in Path("some").iterdir()} == {"severities", "derived", "wait_states"}
    assert main(["export", "tables", str(DATA / "stencil")]) == 0
    assert Path("tables/critical_path.parquet").is_file()
    assert main(["export", "tables", str(DATA / "profile")]) == 0


def test_exported_tables_do_not_replace_those_of_a_result(copy, capsys):
    before = (copy / "wait_states.parquet").read_bytes()
    assert main(["export", "tables", str(copy), "-o", str(copy)]) == 2
    assert "holds a result, whose tables would be overwritten" in capsys.readouterr().err
    assert (copy / "wait_states.parquet").read_bytes() == before


def test_row_groups_are_small_enough_to_read_one_by_one(tmp_path, monkeypatch):
    result = whywait.analyze(DATA / "stencil")
    whole = result.wait_states()
    monkeypatch.setattr("whywait.model.tables._PIECE", 10)
    result.write(tmp_path)
    file = pq.ParquetFile(tmp_path / "wait_states.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert len(groups) > 1
    assert max(groups) <= 10
    assert load(tmp_path).wait_states().to_pylist() == whole.to_pylist()


def test_transfers_and_inconsistencies_are_kept(tmp_path):
    result = fake_native.result(fake_native.small())
    result.write(tmp_path / "with", transfers=True)
    assert load(tmp_path / "with").transfers() == result.transfers()
    assert load(tmp_path / "with").inconsistencies() == result.inconsistencies()
    result.write(tmp_path / "without")
    with pytest.raises(whywait.UsageError, match="has no transfers: write them with `whywait analyze --transfers`"):
        load(tmp_path / "without").transfers()
    # Tables left by an earlier result do not belong to this one.
    result.write(tmp_path / "with")
    with pytest.raises(whywait.UsageError, match="has no transfers"):
        load(tmp_path / "with").transfers()


def test_factors_of_the_longest_waits_and_what_they_go_back_to(written, monkeypatch, tmp_path):
    result, back = whywait.analyze(DATA / "stencil", wrong_order_window=7), load(written)
    every = result.tables.factors(None)
    # There are few enough for all of them to be among the longest.
    assert [table.to_pylist() for table in back.tables.factors(None)] == [table.to_pylist() for table in every]
    rows = every[0]["wait"].to_pylist()[3:90:7]
    mine, its = (one.tables.factors(rows) for one in (result, back))
    assert [table.to_pylist() for table in mine] == [table.to_pylist() for table in its]
    assert [table.num_rows for table in back.tables.factors([])] == [0, 0]
    with pytest.raises(whywait.UsageError, match="there is no wait state"):
        back.tables.factors([back.tables.wait_states.num_rows])
    monkeypatch.setattr("whywait.analysis.stored_factors._LONGEST", 2)
    monkeypatch.setattr("whywait.analysis.stored_factors._DEPTH", 2)
    result.write(tmp_path / "few")
    few = load(tmp_path / "few").tables
    known = set(few.factors(None)[1]["wait"].to_pylist())
    waits = few.wait_states.to_pylist()
    for kind in {wait["kind"] for wait in waits}:
        own = [row for row, wait in enumerate(waits) if wait["kind"] == kind]
        longest = sorted(own, key=lambda row: -waits[row]["waiting"])[:2]
        assert set(longest) <= known
        earlier = {row["earlier"] for row in few.factors(longest)[1].to_pylist()} - {None}
        assert earlier <= known
    (other, *_) = set(rows) - known
    # What was not written comes from the trace, as long as that is there.
    assert few.factors([other])[1].to_pylist() == result.tables.factors([other])[1].to_pylist()
    few.analyze = None
    with pytest.raises(whywait.UsageError, match="the longest waits: analyze the trace with `--factors all`"):
        few.factors([other])
    result.write(tmp_path / "all", factors="all")
    assert load(tmp_path / "all").tables.factors(None)[1].to_pylist() == every[1].to_pylist()
    # A copy has what it is a copy of.
    load(tmp_path / "few").write(tmp_path / "copy")
    assert load(tmp_path / "copy").tables.factors(None)[0].to_pylist() == few.factors(None)[0].to_pylist()


def test_without_causes_there_are_no_factors(tmp_path):
    whywait.analyze(DATA / "p2p", causes=False).write(tmp_path)
    assert not (tmp_path / "factors.parquet").exists()
    with pytest.raises(whywait.UsageError, match="has no factors of its waits"):
        load(tmp_path).tables.factors([0])


def test_metrics_say_what_is_stored_and_what_follows(written):
    rows = {row["metric"]: row for row in pq.read_table(written / "metrics.parquet").to_pylist()}
    assert rows["mpi_latesender"]["stored"]
    assert rows["mpi_latesender"]["formula"] is None
    assert rows["mpi"]["formula"] is not None
    assert not rows["mpi"]["stored"]
    stored = set(pq.read_table(written / "severities.parquet")["metric"].to_pylist())
    assert stored <= {name for name, row in rows.items() if row["stored"]}


def test_idle_threads_are_not_counted_twice(tmp_path):
    result = whywait.analyze(DATA / "mixed", idle_threads=True)
    result.write(tmp_path)
    assert load(tmp_path).metrics["time"].total == result.metrics["time"].total
    assert load(tmp_path).options["idle_threads"]


def test_a_newer_format_is_refused(copy):
    manifest(copy, format_version=FORMAT_VERSION + 1, whywait="9.1")
    with pytest.raises(
        whywait.UsageError, match=rf"written by whywait 9\.1 in format {FORMAT_VERSION + 1}, .*reads format 2: install"
    ):
        load(copy)


def test_an_older_format_is_refused(copy, capsys):
    manifest(copy, format_version=1, whywait="0.1.9")
    text = r"written by whywait 0\.1\.9 in format 1, .*reads format 2: analyze the trace again"
    with pytest.raises(whywait.UsageError, match=text):
        load(copy)
    assert main(["tree", str(copy)]) == 2
    assert re.search(text, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ("no json", "manifest.json is damaged"),
        ("[]", "manifest.json is damaged: it does not contain an object"),
        ("{}", "is not the manifest of a result"),
        ('{"format": "whywait-result", "format_version": 2}', "is damaged: it lacks facts, mark"),
    ],
)
def test_a_damaged_manifest(copy, damage, text, capsys):
    (copy / MANIFEST).write_text(damage)
    with pytest.raises(whywait.UsageError, match=text):
        load(copy)
    assert main(["tree", str(copy)]) == 2
    assert text in capsys.readouterr().err


def test_tables_of_another_result_are_refused(copy, tmp_path):
    whywait.analyze(DATA / "stencil").write(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "wait_states.parquet", copy)
    with pytest.raises(whywait.UsageError, match=r"wait_states\.parquet does not belong to the same result"):
        load(copy).wait_states()
    (copy / "wait_states.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(whywait.UsageError, match=r"wait_states\.parquet is damaged"):
        load(copy).wait_states()
    (copy / "wait_states.parquet").unlink()
    with pytest.raises(whywait.UsageError, match=r"wait_states\.parquet is missing"):
        load(copy).wait_states()


def test_a_result_without_its_manifest_is_incomplete(copy):
    (copy / MANIFEST).unlink()
    with pytest.raises(
        whywait.UsageError, match=r"does not contain a complete result of `whywait analyze`: manifest\.json is missing"
    ):
        load(copy)


def test_the_trace_is_found_where_it_was_or_next_to_the_result(tmp_path):
    trace = tmp_path / "run"
    shutil.copytree(DATA / "p2p", trace)
    result = whywait.analyze(trace)
    result.write(trace / "results")
    events = result.run.events(0)
    assert load(trace / "results").run.events(0) == events
    # Both have moved.
    trace.rename(tmp_path / "moved")
    assert load(tmp_path / "moved" / "results").run.events(0) == events
    # The result alone has moved.
    shutil.move(tmp_path / "moved" / "results", tmp_path / "results")
    gone = r"this needs the trace that .* is a result of: .* is not there, nor is it next to"
    with pytest.raises(whywait.UsageError, match=gone):
        load(tmp_path / "results").run.events(0)
    assert load(tmp_path / "results").run.name == result.run.name
    # Another trace stands where it was.
    shutil.copytree(DATA / "stencil", trace)
    with pytest.raises(whywait.UsageError, match=r"run/traces\.otf2 is not the trace that .* is a result of"):
        load(tmp_path / "results").run.events(0)


def test_a_trace_is_found_after_the_directory_of_both_has_moved(tmp_path):
    shutil.copytree(DATA / "p2p", tmp_path / "all" / "runs" / "one")
    result = whywait.analyze(tmp_path / "all" / "runs" / "one")
    result.write(tmp_path / "all" / "results" / "one")
    events = result.run.events(0)
    (tmp_path / "all").rename(tmp_path / "moved")
    assert load(tmp_path / "moved" / "results" / "one").run.events(0) == events


def test_verbs_that_need_events_take_them_from_the_trace(copy, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", "perfetto", str(copy), "-o", "one.pftrace"]) == 0
    assert main(["export", "perfetto", str(DATA / "stencil"), "-o", "two.pftrace"]) == 0
    assert Path("one.pftrace").read_bytes() == Path("two.pftrace").read_bytes()
    capsys.readouterr()
    window = ["--json", "--window", "10%:90%"]
    outputs = []
    for run in (copy, DATA / "stencil"):
        assert main(["efficiency", str(run), *window]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0] == outputs[1]
    # Without the trace they say so.
    trace = json.loads((copy / MANIFEST).read_text())["trace"] | {"path": "/gone/traces.otf2", "relative_path": "gone"}
    manifest(copy, trace=trace)
    assert main(["efficiency", str(copy), *window]) == 3
    assert "is a result of: /gone/traces.otf2 is not there" in capsys.readouterr().err


def test_a_page_of_a_written_result_has_a_timeline_or_says_so(copy, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["export", "html", str(copy), "-o", str(page)]) == 0
    assert 'id="data-timeline"' in page.read_text()
    assert "Without" not in capsys.readouterr().out
    trace = json.loads((copy / MANIFEST).read_text())["trace"] | {"path": "/gone/traces.otf2", "relative_path": "gone"}
    manifest(copy, trace=trace)
    assert main(["export", "html", str(copy), "-o", str(page)]) == 0
    assert 'id="data-timeline"' not in page.read_text()
    printed = capsys.readouterr().out
    assert "Without a timeline: this needs the trace" in printed
    assert "/gone/traces.otf2 is not there" in printed


def test_verbs_on_traces_take_a_written_result_as_well(copy, capsys):
    assert main(["info", str(copy), "--json"]) == 0
    of_result = json.loads(capsys.readouterr().out)
    assert main(["info", str(DATA / "stencil"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == of_result["events"]
    assert main(["whatif", str(copy), "--network", "ideal", "--only-time"]) == 0
    assert "->" in capsys.readouterr().out


NEEDS_EVENTS = ("info", "gpu", "counters", "advise", "whatif --scale work=0.5", "report --window 0:0.1")
NEEDS_RESULT = ("tree", "summary --markdown", "waits", "explain", "delay", "critical", "iterations", "messages")


@pytest.fixture(scope="module")
def orphan(tmp_path_factory):
    """A result whose trace was deleted."""
    directory = tmp_path_factory.mktemp("orphan")
    shutil.copytree(DATA / "stencil", directory / "trace")
    whywait.analyze(directory / "trace").write(directory / "results", html=True)
    shutil.rmtree(directory / "trace")
    return str(directory / "results")


@pytest.mark.parametrize("verb", NEEDS_RESULT)
def test_what_a_result_has_needs_no_trace(orphan, verb, capsys):
    name, *options = verb.split()
    assert main([name, orphan, *options]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("verb", NEEDS_EVENTS)
def test_what_needs_events_says_so(orphan, verb, capsys):
    name, *options = verb.split()
    assert main([name, orphan, *options]) == 3
    assert "this needs the trace that" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["info", "gpu", "counters", "advise --top 1 --rounds 0"])
def test_a_result_stands_for_its_trace(written, verb, capsys):
    name, *options = verb.split()
    assert main([name, str(written), *options]) == 0
    assert capsys.readouterr().out


def test_a_directory_without_a_trace_is_explained(written, tmp_path, capsys, monkeypatch):
    assert main(["analyze", str(written)]) == 3
    assert "it holds a result of whywait analyze, not a trace" in capsys.readouterr().err
    shutil.copytree(DATA / "p2p", tmp_path / "run/inside")
    assert main(["analyze", str(tmp_path / "run")]) == 3
    assert f"did you mean {tmp_path}/run/inside?" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path / "run")
    assert main(["analyze", "."]) == 3
    assert "did you mean inside?" in capsys.readouterr().err
