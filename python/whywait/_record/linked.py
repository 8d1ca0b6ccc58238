"""Libraries to link to a program that has a communication library inside, so that its calls can be recorded."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from whywait._record import fitted
from whywait._record.elf import Elf, ElfError
from whywait.model.user_cache import user_cache

#: Libraries that can be inside of a program: how the names of their functions begin, for programs and for tools.
LIBRARIES = {"armci": {"ARMCI_": "PARMCI_", "armci_": "parmci_"}}

_SOURCE = Path(__file__).parent / "caught.c"
# A function of ARMCI that is in any program with Global Arrays, and what the library to link asks for.
_OF_ARMCI, _ASKS = "PARMCI_Put", b"whywait_catch"


class LinkError(Exception):
    """The library to link cannot be made."""


def flags(library: str) -> str:
    """Return what to link to a program, before a communication library, so that calls of that are recorded.

    Raises
    ------
    LinkError
        If there is no recorder, no compiler, or no place for it.
    """
    if not fitted.LIBRARY.is_file():
        raise LinkError(f"{fitted.LIBRARY} is missing: this installation was built without the recorder")
    compiler = shlex.split(os.environ.get("CC", "cc"))
    key = hashlib.sha256("\0".join([library, *compiler, _SOURCE.read_text()]).encode())
    key.update(fitted.LIBRARY.read_bytes())
    try:
        archive = user_cache() / "record" / key.hexdigest()[:16] / f"libwhywait_{library}.a"
        if not archive.is_file():
            archive.parent.mkdir(parents=True, exist_ok=True)
            _make(archive, LIBRARIES[library], compiler)
    except (OSError, RuntimeError) as error:
        raise LinkError(f"{library} needs a compiler, ar, and a cache directory: {error}") from error
    return f"{shlex.quote(str(archive))} -ldl"


def _make(archive: Path, prefixes: dict[str, str], compiler: list[str]) -> None:
    """Compile a member for each function: only those that the program calls become part of it."""
    functions = sorted(name for name in Elf(fitted.LIBRARY).exports() if name.startswith(tuple(prefixes)))
    with tempfile.TemporaryDirectory(dir=archive.parent) as directory:

        def compiled(function: str) -> str:
            real = next(real + function.removeprefix(own) for own, real in prefixes.items() if function.startswith(own))
            names = [f"-DFUNCTION={function}", f"-DREAL={real}"]
            member = f"{directory}/{function}.o"
            _run([*compiler, "-O1", "-fPIC", *names, "-c", str(_SOURCE), "-o", member])
            return member

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            members = list(pool.map(compiled, functions))
        made = f"{directory}/{archive.name}"
        _run(["ar", "rcs", made, *members])
        # Several processes may do this at once.
        Path(made).replace(archive)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise LinkError(f"{shlex.join(command[:1])} failed: {done.stderr.strip()}")


def hides_armci(program: Path) -> bool:
    """Whether a program has ARMCI inside, by its symbols, and was not linked so that its calls are recorded."""
    try:
        elf = Elf(program)
        return elf.has_symbol(_OF_ARMCI) and not elf.contains(_ASKS)
    except (ElfError, OSError):
        return False
