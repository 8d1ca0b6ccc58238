"""Run the command line: the program ``whywait``, and ``python -m whywait``."""

import gc
import signal

# Until the command line can answer Ctrl-C, it just ends the process: no traceback of half an import.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line with the arguments of the program, and return the exit code."""
    # Looking for cycles among all that is imported would take as long as a short trace.
    gc.set_threshold(100_000)
    from whywait import cli

    try:
        return cli.main()
    finally:
        # The system takes back all memory at once, faster than Python frees a result piece by piece.
        gc.freeze()
        # Nor is Ctrl-C answered by an interpreter that is going away.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    raise SystemExit(main())
