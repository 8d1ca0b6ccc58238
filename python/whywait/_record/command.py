"""Which part of a command is the program, after launchers, wrappers, and shells."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# What starts the processes of a parallel program; `whywait record` starts these, and they start the program.
LAUNCHERS = frozenset(
    """mpiexec mpirun mpiexec.hydra mpiexec.mpich mpirun.mpich mpiexec.openmpi mpirun.openmpi mpiexec.gforker
    orterun prterun prun oshrun shmemrun srun aprun jsrun flux mpiexec_abi""".split()
)
# What runs another command as another user, mostly with an environment of its own.
_OTHER_USERS = frozenset("sudo su runuser setpriv doas gosu".split())
# What runs another command in some way; of some, words come before their options.
_WRAPPERS = _OTHER_USERS | frozenset(
    """env timeout taskset numactl nice ionice chrt stdbuf nohup setsid time prlimit setarch linux64 hwloc-bind strace
    ltrace valgrind gdb catchsegv unbuffer unshare nsenter chroot bwrap cgexec systemd-run choom tini dumb-init xargs
    faketime rr hpcrun tau_exec""".split()
)
_WITH_VERB = frozenset("perf conda mamba uv poetry pixi".split())
_SHELLS = frozenset("sh bash dash ksh zsh".split())
# Options whose values may be the names of programs, and how many values they have.
_VALUES = {
    **dict.fromkeys(("-env", "-genv", "-mca", "--mca", "--prtemca", "--pmixmca", "--gmca", "-gmca"), 2),
    **dict.fromkeys(("-x", "-launcher", "-launcher-exec", "-bootstrap", "-bootstrap-exec", "-rmk", "-u", "-C"), 1),
}
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?t?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PRELOAD = re.compile(r"((?:^|[,=])LD_PRELOAD=)(?=[^,])")


def is_python(name: str) -> bool:
    """Whether a file name is that of a Python interpreter."""
    return _PYTHON.fullmatch(name) is not None


def is_launcher(word: str) -> bool:
    """Whether a command starts the processes of a parallel program."""
    return Path(word).name in LAUNCHERS


def program_of(command: Sequence[str]) -> list[str]:
    """Return the part of a command that starts the program: all of it, or what launchers, wrappers, and shells start.

    Which options of a launcher have a value differs between launchers, so the program is the first word that is a file
    to execute. It is empty if there is none.
    """
    words = list(command)
    while words:
        name = Path(words[0]).name
        if name in _SHELLS:
            inner = _of_shell(words)
            if not inner:
                return words
            words = inner
        elif name in LAUNCHERS:
            words = _started(words, is_launching=True)
        elif name in _WRAPPERS or name in _WITH_VERB:
            started = _started(words[name in _WITH_VERB :], is_launching=False)
            if not started:
                return words
            words = started
        else:
            return words
    return []


def launched(command: Sequence[str]) -> list[str]:
    """Return the part of a command that begins with its launcher; empty if it has none."""
    words = list(command)
    while words and not is_launcher(words[0]):
        name = Path(words[0]).name
        if name not in _WRAPPERS | _WITH_VERB:
            return []
        words = _started(words[name in _WITH_VERB :], is_launching=False)
    return words


def _started(words: list[str], *, is_launching: bool) -> list[str]:
    """Return what a launcher or a wrapper starts."""
    number = 1
    while number < len(words):
        word = words[number]
        if word.startswith("-"):
            number += _VALUES.get(word, 0)
        elif (found := shutil.which(word)) and not (is_launching and is_launcher(found)):
            return words[number:]
        number += 1
    return []


def _of_shell(words: list[str]) -> list[str]:
    """Return what a shell runs: a script, or the most telling command of its argument."""
    for number, word in enumerate(words[1:], 1):
        if not word.startswith(("-", "+")):
            return words[number:] if Path(word).is_file() else []
        if re.fullmatch(r"-\w*c", word):
            return _of_text(words[number + 1]) if number + 1 < len(words) else []
    return []


def _of_text(text: str) -> list[str]:
    """Return the first command in a text of the shell that is a launcher, or else that is found."""
    try:
        shell = list(shlex.shlex(text, posix=True, punctuation_chars=True))
    except ValueError:
        return []
    commands: list[list[str]] = [[]]
    for word in shell:
        if set(word) <= set(";&|()<>"):
            commands.append([])
        elif commands[-1] or not (word == "exec" or _ASSIGNMENT.fullmatch(word)):
            commands[-1].append(word)
    found = [command for command in commands if command and shutil.which(command[0])]
    return next((command for command in found if launched(command)), found[0] if found else [])


def preloading(command: Sequence[str], library: Path) -> list[str]:
    """Return a command whose own settings of LD_PRELOAD, before the program, have a library come first."""
    words = list(command)
    program = program_of(words)
    own = len(_before(words, program))
    for number in range(own):
        if words[number] == "LD_PRELOAD" and words[number - 1] in ("-env", "-genv") and number + 1 < own:
            words[number + 1] = f"{library}:{words[number + 1]}"
        else:
            words[number] = _PRELOAD.sub(lambda match: f"{match[1]}{library}:", words[number])
    return words


def _before(words: list[str], program: list[str]) -> list[str]:
    """Return the words before the program: all, if it is in the text of a shell."""
    return words[: len(words) - len(program)] if words[-len(program) :] == program else words


def why_unloaded(command: Sequence[str]) -> str:
    """Return how a command keeps the recorder from its program, by its words and those of a script; empty if not so."""
    words = list(command)
    program = program_of(words)
    before = _before(words, program)
    for number, word in enumerate(before):
        name = Path(word).name
        if name in _OTHER_USERS:
            there = f": {shlex.join([*before, 'whywait', 'record', *program])}" if before != words else ""
            return f"{name} runs it as another user, to whom the recorder is not passed on; record it there{there}"
        if name == "env":
            options = " ".join(before[number + 1 :])
            if re.search(r"(^| )(-|-i|--ignore-environment|-u ?LD_PRELOAD|--unset=LD_PRELOAD)( |$)", options):
                return f"`env {options}` removes LD_PRELOAD, by which the recorder is loaded"
    texts = [word for word in words if "LD_PRELOAD" in word and len(word.split()) > 1]
    if texts:
        return f"LD_PRELOAD, by which the recorder is loaded, was replaced by the command: {texts[0]}"
    script = shutil.which(program[0]) if program else None
    if script is None and program and Path(program[0]).is_file():
        script = program[0]
    if script is not None:
        with Path(script).open("rb") as file:
            start = file.read(1 << 16)
        if not start.startswith(b"\x7fELF") and b"LD_PRELOAD" in start:
            return f"LD_PRELOAD, by which the recorder is loaded, is changed in {program[0]}: record the program there"
    return ""


def why_no_program(command: Sequence[str]) -> str:
    """Return why a launcher's command has no program that can be executed on this machine."""
    launcher, *arguments = launched(command) or list(command)
    words = [word for word in arguments if not word.startswith("-") and not word.isdecimal()]
    if not words:
        return f"{launcher} was given no program"
    word = next((word for word in words if "/" in word or Path(word).is_file()), None)
    if word is None:
        # Some may be values of the launcher's options.
        return f"there is no such program on this machine: {', '.join(words)}"
    if not Path(word).is_file():
        return f"there is no program {word} on this machine"
    return f"{word} is not executable" + (f"; start it with: python {word}" if word.endswith(".py") else "")


def program_name(command: Sequence[str]) -> str:
    """Return the name of the program in a command: of an interpreter, that of the script."""
    program = program_of(command) or list(command)
    name = Path(program[0]).name
    if is_python(name):
        name = _script_name(program[1:]) or name
    return re.sub(r"[^\w.+-]", "_", name) or "program"


def _script_name(arguments: Sequence[str]) -> str:
    """Return the name of the script or module that Python runs with these arguments; see rust/record/src/title.rs."""
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "--":
            return Path(next(words, "") if word == "--" else word).stem
        # Several letters may share a dash; some take the rest of the word, or else the next one.
        match = re.fullmatch(r"-[^-cmWX]*([cmWX])(.*)", word, re.DOTALL)
        if word == "-":
            break
        if word == "--check-hash-based-pycs" or (match and match[1] in "WX" and not match[2]):
            next(words, "")
        elif match and match[1] == "c":
            break
        elif match and match[1] == "m":
            return (match[2] or next(words, "")).rpartition(".")[2]
    return ""
