"""Remember which files were verified, so that only changed files are read again.

A file counts as the verified one while its inode, size and times are the same. The time of its last
change of any kind (ctime) is set by the kernel alone.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from penstock.machine.files import write_atomically

__all__ = ["Verified"]


class Verified:
    """A list in a file; where it cannot be read or written, every file is read each time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = _read(path)
        self._changed = False

    def holds(self, file: Path, wanted: str, *, matches: Callable[[Path], bool]) -> bool:
        """Return whether a file is what it should be; ``wanted`` is the hash it must have."""
        try:
            found = file.stat()
        except FileNotFoundError:
            return False
        mark = [wanted, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        if self._known.get(str(file)) == mark:
            return True
        if not matches(file):
            return False
        self._known[str(file)] = mark
        self._changed = True
        return True

    def save(self) -> None:
        """Store the list, if it has changed."""
        if self._changed:
            with suppress(OSError):  # a cache that cannot be written is read in full each time
                write_atomically(self._path, json.dumps(self._known))
            self._changed = False


def _read(path: Path) -> dict[str, list[object]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
