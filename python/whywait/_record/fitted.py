"""The recorder's library made to fit a program: it exports what it must catch there, and nothing else."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whywait._record import libmpi
from whywait._record.elf import Elf, is_of_c_library
from whywait.model.user_cache import user_cache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

# In a folder of its own: beside modules, Python would take it for one.
LIBRARY = Path(__file__).parent / "lib" / "libwhywait_record.so"
# What runtimes of OpenMP look for; it has an effect only if threads are recorded.
_OMPT = "ompt_start_tool"
# What libraries inside of a program look for.
_CATCH = "whywait_catch"
# Of so many MPIs and programs. Each takes a little more than a megabyte.
_KEPT = 20
# What separates paths in LD_PRELOAD, and what the dynamic linker replaces in them.
_SPECIAL = frozenset(" :$")


@dataclass(frozen=True)
class _Caught:
    """Functions of the C library that are caught: those of threads whose names begin so, and those of files or not."""

    threads: str | None = None
    files: bool = False


class PlaceError(OSError):
    """There is no directory for the library from which a program can load it."""


def recorder(
    program: Sequence[str],
    libraries: Sequence[Path] = (),
    *,
    threads: bool = False,
    samples: bool = False,
    files: bool = False,
    spare: Path | None = None,
) -> Path:
    """Return the recorder for a program: without the functions that it must not catch.

    Those are the functions that the program's MPI does not have, as programs such as mpi4py take the existence of a
    function as proof that MPI has it, and those of threads and files unless they are to be recorded. Where the MPI
    cannot be known, all functions of MPI stay. Those of OpenSHMEM and ARMCI stay only if the program is linked to a
    library that has them: others use such names, too.

    Parameters
    ----------
    program
        The command that starts the program, without a launcher.
    libraries
        MPI libraries that it uses; none to find them.
    threads
        Whether functions of POSIX threads are to be caught.
    samples
        Whether threads are to be sampled: then the function that makes them is caught.
    files
        Whether functions of the C library for files are to be caught.
    spare
        Where the library goes if the user has no cache that can be used; None for a directory for temporary files.

    Raises
    ------
    PlaceError
        If there is no such place, and the library as it is shipped does not do.
    """
    libraries = list(libraries) or libmpi.libraries_of(list(program))
    caught = _Caught("pthread_" if threads else "pthread_create" if samples else None, files=files)
    key = hashlib.sha256(repr(caught).encode())
    for path in (LIBRARY, *libraries):
        status = path.stat()
        key.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    for place in _places(spare):
        fitted = place / key.hexdigest()[:16] / LIBRARY.name
        if fitted.is_file() or _is_written(fitted, libraries, caught):
            _keep_last_used(place, fitted)
            return fitted
    # It has all functions of MPI, and none of the C library.
    if caught != _Caught() or not _can_be_named(LIBRARY):
        raise PlaceError("no directory for the recorder: set XDG_CACHE_HOME to one that programs can be executed from")
    return LIBRARY


def _is_written(fitted: Path, libraries: Sequence[Path], caught: _Caught) -> bool:
    """Make the library that fits, and return whether there was a place for it."""
    present = libmpi.exports(list(libraries))
    try:
        fitted.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may do this at once.
        with tempfile.NamedTemporaryFile(dir=fitted.parent, delete=False) as file:
            file.write(Elf(LIBRARY).exporting(lambda name: _is_caught(name, present, caught)))
        Path(file.name).chmod(0o755)
        Path(file.name).replace(fitted)
    except OSError:
        return False
    return True


def _keep_last_used(place: Path, fitted: Path) -> None:
    """Remove all but the libraries used last, this one among them."""
    with suppress(OSError):
        os.utime(fitted)
        used = sorted(place.glob(f"*/{LIBRARY.name}"), key=lambda library: library.stat().st_mtime, reverse=True)
        for library in used[_KEPT:]:
            shutil.rmtree(library.parent, ignore_errors=True)


def _is_caught(name: str, present: Collection[str], caught: _Caught) -> bool:
    """Whether the recorder must keep a function, if the program's libraries have these."""
    if name.startswith("pthread_"):
        return caught.threads is not None and name.startswith(caught.threads)
    if is_of_c_library(name):
        return caught.files
    if name.startswith(("MPI_", "PMPI_")):
        return name in present or "MPI_Init" not in present
    return name in present or name in (_OMPT, _CATCH)


def _places(spare: Path | None) -> Iterator[Path]:
    """Yield directories for fitted libraries, the best one first."""
    cache = _cache()
    if cache is not None and _can_be_loaded_from(cache):
        yield cache
    temporary = _temporary() if spare is None else spare
    if temporary is not None and _can_be_loaded_from(temporary):
        yield temporary


def _cache() -> Path | None:
    """Return the directory of the user's cache; None if there is none, as for some services and in containers."""
    try:
        return user_cache() / "record"
    except RuntimeError:
        return None


def _temporary() -> Path | None:
    """Return a directory of this user's alone among those for temporary files; None if there is none."""
    try:
        path = Path(tempfile.gettempdir()) / f"whywait-{os.getuid()}"
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError:
        return None
    # Whoever could write there could have programs load anything.
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return path if is_own else None


def _can_be_named(path: Path) -> bool:
    """Whether a path can stand in LD_PRELOAD."""
    return not _SPECIAL & set(str(path))


def _can_be_loaded_from(place: Path) -> bool:
    """Whether programs can load a library from a directory, which need not exist yet."""
    try:
        existing = next(path for path in (place, *place.parents) if path.exists())
        return _can_be_named(place) and not os.statvfs(existing).f_flag & os.ST_NOEXEC
    except (OSError, StopIteration):
        return False
