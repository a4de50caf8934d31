"""Directories that only their owner may enter: records, state, logs and locks of a project."""

import os
import stat
from pathlib import Path

__all__ = ["OWNER_ONLY", "make_private", "open_private"]

OWNER_ONLY = 0o077
"""The umask for files that only their owner may read."""

_DIRECTORY, _FILE = 0o700, 0o600
_OURS = frozenset(
    {
        *(
            "broker",
            "checkpoints",
            "dev",
            "lake",
            "logs",
            "runs",
            "serving.secret",
            "spark",
            "state",
        ),
        ".gitignore",
    }
)
_OURS_BEGIN = ("rebuild-", "node-", "broker.json", "start.lock", ".")


def make_private(directory: Path) -> str:
    """Make a directory, or close one that others may enter; return a message, or an empty text.

    If the directory also holds files that are not ours, only our own directories in it are closed.
    OSError where it cannot be made.
    """
    directory.mkdir(mode=_DIRECTORY, parents=True, exist_ok=True)
    if _is_private(directory):
        return ""
    entries = list(directory.iterdir())
    strange = [
        path.name
        for path in entries
        if path.name not in _OURS and not path.name.startswith(_OURS_BEGIN)
    ]
    closing = [path for path in entries if path.is_dir()] if strange else [directory]
    closing = [path for path in closing if path == directory or path.name in _OURS]
    try:
        for path in closing:
            if not _is_private(path):
                path.chmod(_DIRECTORY)
    except PermissionError:
        return f"{directory} belongs to another user, who may read everything in it"
    if strange:
        return ""
    return f"{directory} could be read by other users; it is now closed to them"


def open_private(path: Path) -> int:
    """Open a file for writing and reading, created for its owner alone; return its descriptor."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE)


def _is_private(path: Path) -> bool:
    return not stat.S_IMODE(path.stat().st_mode) & OWNER_ONLY
