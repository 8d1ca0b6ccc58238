"""The build backend of the package: maturin's, and the recorder beside the module that maturin builds.

A wheel holds two compiled files: the module of Python, which maturin builds, and the library that `whywait record`
loads into programs. That one is no module and must not be linked with one, so it is a crate of its own, built by the
same Rust.

`python packaging/backend.py` builds the recorder in place, as `maturin develop` builds the module.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import maturin
from maturin import (  # the hooks that need nothing of their own
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "python" / "whywait" / "_record" / "lib"
LIBRARY = "libwhywait_record.so"
MACHINES = ("x86_64", "aarch64")


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the recorder, then the wheel."""
    build_recorder(maturin.get_maturin_pep517_args(config_settings))
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the recorder in place, then the wheel that refers to this directory."""
    build_recorder(maturin.get_maturin_pep517_args(config_settings))
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_recorder(arguments: list[str]) -> None:
    """Build the recorder with the profile that maturin's arguments name, and put it into the package."""
    PLACE.mkdir(exist_ok=True)
    (PLACE / LIBRARY).unlink(missing_ok=True)
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        print(f"{platform.system()} on {platform.machine()}: built without the recorder, which is for Linux")
        return
    profile = arguments[arguments.index("--profile") + 1] if "--profile" in arguments else "release"
    command = ["cargo", "build", "--locked", "--package", "whywait-record", "--profile", profile]
    command.append("--message-format=json-render-diagnostics")
    print(f"Running `{' '.join(command)}`", flush=True)
    done = subprocess.run(command, cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {done.returncode}")
    files = [
        file
        for message in map(json.loads, done.stdout.splitlines())
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "whywait_record"
        for file in message["filenames"]
        if file.endswith(".so")
    ]
    (PLACE / LIBRARY).write_bytes(_shipped(Path(files[-1])))
    (PLACE / LIBRARY).chmod(0o755)


def _shipped(library: Path) -> bytes:
    """Return the recorder as it is shipped: it catches none of the C library until it is made to fit a program."""
    specification = importlib.util.spec_from_file_location("elf", PLACE.parent / "elf.py")
    elf = importlib.util.module_from_spec(specification)
    # Its dataclasses look for their module.
    sys.modules[specification.name] = elf
    specification.loader.exec_module(elf)
    return elf.Elf(library).exporting(lambda name: not elf.is_of_c_library(name))


def _environment() -> dict[str, str]:
    """Return the environment for Rust, which maturin requires to be installed where there is none."""
    if shutil.which("cargo"):
        return dict(os.environ)
    from puccinialin import setup_rust

    return {**os.environ, **setup_rust()}


if __name__ == "__main__":
    build_recorder(sys.argv[1:])
