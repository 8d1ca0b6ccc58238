"""The user's cache directory, for what may be removed at any time."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Return ``$XDG_CACHE_HOME/whywait``, by default ``~/.cache/whywait``; it need not exist.

    Raises
    ------
    RuntimeError
        If the user has no home directory.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whywait"
