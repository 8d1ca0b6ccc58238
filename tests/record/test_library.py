"""The recorder as it is shipped: what it needs and exports, and how it is built from sources and on other systems."""

import platform
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
from whywait._record.elf import is_of_c_library
from whywait._record.fitted import LIBRARY

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def backend(monkeypatch):
    """The build backend."""
    pytest.importorskip("maturin")
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import backend

    return backend


def output(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def table(name):
    return tomllib.loads((ROOT / "rust/record" / name).read_text())["function"]


def other_libraries():
    """Return the functions of OpenSHMEM and ARMCI, of which an entry stands for many."""
    names = set()
    for table in ("shmem.toml", "armci.toml"):
        file = tomllib.loads((ROOT / "rust/record" / table).read_text())
        for entry in file["function"]:
            for word in file["lists"][entry["of"]].split() if "of" in entry else [""]:
                name = entry["name"].replace("{}", word)
                names |= {name, name.replace("shmem_", "shmem_ctx_", 1)} if "context" in entry else {name}
    return names


def test_it_needs_the_c_library_only():
    """Whatever else it needed would be loaded into each program."""
    needed = re.findall(r"NEEDED.*\[(.+)\]", output("readelf", "-dW", LIBRARY))
    assert set(needed) <= {"libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed
    undefined = output("nm", "-D", "--undefined-only", LIBRARY)
    assert not re.search(r"\b(P?MPI_|Py|_Py|unw_)", undefined)


def test_it_exports_the_functions_of_its_tables_only():
    exported = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", LIBRARY).splitlines()}
    of_mpi = {name for name in exported if name.startswith(("MPI_", "PMPI_"))}
    expected = {
        f"{prefix}{function['name']}{suffix}"
        for function in table("mpi.toml")
        if "caught" not in function
        for prefix in ("", "P")
        for suffix in ("", "_c")[: 1 + ("large" in function)]
    }
    assert of_mpi == expected
    others = {function["name"] for function in table("threads.toml") if "caught" not in function}
    files = {name for function in table("posix.toml") for name in [function["name"], *function.get("also", "").split()]}
    assert exported - of_mpi == others | files | other_libraries() | {"ompt_start_tool", "whywait_catch"}
    assert {name for name in exported if is_of_c_library(name)} == others | files


def test_it_is_small():
    assert LIBRARY.stat().st_size < 2 << 20


def test_a_source_distribution_has_what_the_recorder_is_built_of(backend, tmp_path):
    archive = tmp_path / backend.build_sdist(str(tmp_path))
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    sources = {
        str(path.relative_to(ROOT))
        for crate in ("record", "recording")
        for pattern in ("*.toml", "*.rs", "src/*.rs")
        for path in (ROOT / "rust" / crate).glob(pattern)
    }
    assert sources | {"packaging/backend.py", "Cargo.toml", "Cargo.lock", "pyproject.toml"} <= names
    assert not any(name.endswith(".so") for name in names), "whoever builds it builds the recorder"


@pytest.mark.parametrize(("system", "machine"), [("Darwin", "arm64"), ("Windows", "AMD64"), ("Linux", "riscv64")])
def test_elsewhere_the_package_is_built_without_it(backend, system, machine, tmp_path, monkeypatch, capsys):
    (tmp_path / backend.LIBRARY).touch()
    monkeypatch.setattr(backend, "PLACE", tmp_path)
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    backend.build_recorder([])
    assert capsys.readouterr().out == f"{system} on {machine}: built without the recorder, which is for Linux\n"
    assert not any(tmp_path.iterdir()), "a library of another build must not get into the wheel"
