"""Run the command line as ``python -m whywait``."""

import sys

from whywait.cli import main

if __name__ == "__main__":
    sys.exit(main())
