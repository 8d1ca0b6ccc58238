"""The command line: ``whywait VERB TRACE``."""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
from collections import defaultdict
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from whywait import mpi
from whywait.commands.common import BARE_SAMPLE, SAMPLE, Help

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

# Each verb is a module of whywait.commands with `add(subparsers)` and `run(arguments) -> exit code`; here by question.
_GROUPS = {
    "get a trace": ("record", "demo", "info", "clocks"),
    "analyze it": ("analyze",),
    "understand what is lost": (
        "findings", "account", "summary", "tree", "waits", "explain", "delay", "critical", "efficiency", "iterations",
        "messages", "threads", "counters", "gpu", "io", "hang", "serve",
    ),
    "predict changes": ("advise", "whatif"),
    "compare runs": ("diff", "series"),
    "export": ("export",),
}  # fmt: skip
# Known to those who measure whywait itself, and not listed.
_VERBS = (*(verb for verbs in _GROUPS.values() for verb in verbs), "bench")
# Names of version 0.3: what they are now. They go with the next release.
_OLD_NAMES = {"correct": ("clocks",), "report": ("tree",), "validate": ("info", "--check")}

OK, USAGE, BAD_TRACE, INTERRUPTED = 0, 2, 3, 130

_EPILOG = """\
A TRACE is the anchor file of an OTF2 archive (usually traces.otf2) or the directory that contains
it; or a Paraver trace (.prv), a directory with traces of PyTorch's profiler, or one with SQLite
exports of Nsight Systems.

exit codes: 0 success, 1 a --fail-on limit is exceeded (diff, series, whatif), 2 invalid command
line, 3 a trace is missing or unreadable

examples:
  whywait demo
  whywait analyze scorep_run/traces.otf2 -o results --html
"""


class _Version(argparse.Action):
    """Print the version, which takes the native module."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from whywait import __version__

        sys.stdout.write(f"whywait {__version__}\n")
        parser.exit()


def parser(commands: Sequence[str] = _VERBS) -> argparse.ArgumentParser:
    """Return the parser of the command line, or the part of it that knows these commands."""
    top = _Parser(
        prog="whywait",
        usage="whywait [-h] [--version] COMMAND ...",
        description="Find out why a parallel program waits: wait states, their causes, and the critical path.",
        epilog=_EPILOG,
        formatter_class=Help,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    verbs = top.add_subparsers(prog="whywait", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    for verb in commands:
        import_module(f"whywait.commands.{verb}").add(verbs)
    _list_by_question(top, verbs)
    return top


def _list_by_question(top: argparse.ArgumentParser, verbs: Any) -> None:
    """List the commands in groups of the help, each under its question, instead of in one list."""
    listed = {action.dest: action for action in verbs._choices_actions}  # noqa: SLF001
    verbs._choices_actions.clear()  # noqa: SLF001
    for title, names in _GROUPS.items():
        group = top.add_argument_group(title)
        group._group_actions += [listed[name] for name in names if name in listed]  # noqa: SLF001


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        What follows the name of the program; None for those it was started with.

    Returns
    -------
    int
        The exit code.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names in a trace may have letters that the terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    if not mpi.first():
        # Only the first of several processes prints.
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    given = _with_new_name(list(sys.argv[1:] if arguments is None else arguments))
    # Building the parsers of all commands takes longer than some of them run.
    top = parser(given[:1] if given and given[0] in _VERBS and "_ARGCOMPLETE" not in os.environ else _VERBS)
    if "_ARGCOMPLETE" in os.environ:
        import_module("argcomplete").autocomplete(top)
    if not given:
        top.print_help(sys.stderr)
        top.exit(USAGE)
    options = top.parse_args([*given[1:], "--help"] if given[0] == "help" else given)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed it. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _with_new_name(given: list[str]) -> list[str]:
    """Return the arguments with the new name of a command that was renamed, and tell people so; scripts go on."""
    if not given or (now := _OLD_NAMES.get(given[0])) is None:
        return given
    if sys.stderr.isatty():
        more = " -o DIR" if given[0] == "correct" else ""
        sys.stderr.write(f"whywait {given[0]} is now: whywait {' '.join(now)}{more}\n")
    return [*now, *given[1:]]


def _load(modules: Sequence[str]) -> None:
    """Load NumPy, Arrow, and some modules in a thread, and answer Ctrl-C.

    Until all are loaded, Ctrl-C ends the process (see `whywait.__main__`).
    """
    # No command needs linear algebra, and starting its threads takes longer than the analysis of some traces.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Arrow's default pool clears more memory than tables of this size need.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    answer = signal.getsignal(signal.SIGINT)
    if answer not in {signal.SIG_DFL, signal.SIG_IGN}:
        return
    sys.meta_path.insert(0, _OnlyArrow())
    # No module imports itself through others, so no thread waits for a module whose import waits for that thread.
    loading = Thread(target=_import, args=(modules,))

    def interrupt(number: int, frame: FrameType | None) -> None:
        if loading.is_alive():
            # An exception in the middle of an import could keep the lock that the other thread needs.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        signal.default_int_handler(number, frame)

    loading.start()
    if answer is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)


class _OnlyArrow:
    """A finder of modules that keeps Arrow from importing pandas and dateutil.

    Arrow imports pandas with its first array, which takes longer than the analysis of a short trace, and dateutil with
    each array of Python objects, or looks for it again. No command needs them. Compiled Arrow has no frame, so its
    imports appear to come from its caller; imports by other packages are left alone.
    """

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Leave the search to the next finder."""
        if name not in {"pandas", "dateutil"}:
            return
        frame = sys._getframe(1)  # noqa: SLF001
        while frame.f_back is not None and "importlib" in frame.f_globals["__name__"]:
            frame = frame.f_back
        if frame.f_globals["__name__"].partition(".")[0] in {"pyarrow", "whywait"}:
            raise ModuleNotFoundError(name=name)


def _import(modules: Sequence[str]) -> None:
    """Import modules; a missing one is reported by the command that needs it."""
    # Modules that use threads cannot be imported while the program ends, as after an error.
    with suppress(ImportError, RuntimeError):
        _import_compute()
        for module in modules:
            import_module(module)


def _import_compute() -> None:
    """Import the functions of Arrow without the documentation that it composes for each of them.

    That takes longer than the rest of the import. If Arrow changes, the next import of the module is the usual one.
    """
    parser = ModuleType("pyarrow.vendored.docscrape")
    parser.NumpyDocString = lambda _: defaultdict(list)  # type: ignore[attr-defined]
    sys.modules[parser.__name__] = parser
    with suppress(Exception):
        import_module("pyarrow.compute")
    del sys.modules[parser.__name__]


def _run(options: argparse.Namespace) -> int:
    from whywait import Error, UsageError

    try:
        if not getattr(options, "together", False):
            mpi.serve()
        if getattr(options, "analyzes", True):
            _load(getattr(options, "modules", ()))
        code: int = options.run(options)
        sys.stdout.flush()
    except UsageError as error:
        from whywait.api.load import MissingTraceError

        return _fail(error, BAD_TRACE if isinstance(error, MissingTraceError) else USAGE)
    except Error as error:
        return _fail(error, BAD_TRACE)
    except BrokenPipeError:
        raise
    except OSError as error:
        text = f"{error.filename}: {os.strerror(error.errno)}" if error.filename and error.errno else error
        return _fail(text, BAD_TRACE if str(error.filename) in _operands(options) else USAGE)
    return code


def _operands(options: argparse.Namespace) -> set[str]:
    """Return the traces and results that a command reads."""
    named = (getattr(options, name, None) for name in ("trace", "result", "a", "b"))
    return {*filter(None, named), *getattr(options, "runs", ())}


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the closest command, choice, or option.

    If it has both operands and commands, the first argument is a command if one has that name, otherwise an operand.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse with the command that is named, or else with the operands."""
        args = args and [_with_value(word, args[number + 1 :]) for number, word in enumerate(args)]
        actions = self._actions
        commands = [action for action in actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
        operands = [action for action in actions if not action.option_strings and action not in commands]
        if args and commands and operands:
            left_out = operands if args[0] in commands[0].choices else commands
            self._actions = [action for action in actions if action not in left_out]
        try:
            known, unknown = super().parse_known_args(args, namespace)
        finally:
            self._actions = actions
        if unknown and (directory := self._directory(known, unknown)):
            known.trace, unknown = directory, []
        if unknown:
            options = [option for action in actions for option in action.option_strings]
            hint = next(filter(None, (_close(word, options) for word in unknown if word.startswith("-"))), "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return known, unknown

    def _directory(self, known: argparse.Namespace, more: list[str]) -> str | None:
        """Return the directory of a run of which all files are named, one by one; none if these are no such files."""
        files = {Path(word) for word in (getattr(known, "trace", None), *more) if word}
        places = {file.parent for file in files}
        if len(files) < 2 or len(places) > 1 or not all(file.is_file() for file in files):
            return None
        (place,) = places
        own = {file.suffix for file in files}
        if left_out := sorted({file for file in place.iterdir() if file.suffix in own} - files):
            self.error(
                f"all files of a directory are one run, and {left_out[0]} is not named: name just {place}, or move it"
            )
        return str(place)

    def error(self, message: str) -> NoReturn:
        if match := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            known = re.findall(r"[\w-]+", match[2])
            other = _OTHER_WORDS.get(match[1])
            hint = f": did you mean {other}?" if other in known else _close(match[1], known)
            hint = hint or f" (choose from {', '.join(known)})"
            message = message.replace(match[0], f"there is no {match[1]!r}{hint}")
        super().error(message)


# Other words for commands, which are not close to their names.
_OTHER_WORDS = {
    "causes": "delay",
    "compare": "diff",
    "matrix": "messages",
    "open": "serve",
    "pop": "efficiency",
    "predict": "whatif",
    "scaling": "series",
    "simulate": "whatif",
    "view": "serve",
}


def _with_value(word: str, rest: Sequence[str]) -> str:
    """Give an option with an optional value its default, if an operand follows."""
    if word == SAMPLE:
        return BARE_SAMPLE
    if word != "--counters" or (rest and not rest[0].startswith("-") and not os.path.exists(rest[0])):  # noqa: PTH110
        return word
    return f"{word}=all"


def _close(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    # The dashes of options make none of them similar.
    names = {name.lstrip("-"): name for name in known}
    close = get_close_matches(word.partition("=")[0].lstrip("-"), names, 1, 0.6)
    return f": did you mean {names[close[0]]}?" if close else ""


def _fail(error: object, code: int) -> int:
    where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    sys.stderr.write(f"whywait: {' '.join(str(error).split())}{where}\n")
    return code
