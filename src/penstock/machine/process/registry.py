"""Which commands run in a project: one small file for each, while its process lives.

A process keeps its file locked, and the kernel drops the lock when it ends, however it ends. So an
unlocked file was left behind by a killed process, and anybody may delete it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import msgspec

from penstock.machine.locks import FileLock

__all__ = ["Registry", "RunEntry"]

_LOCK_LIMIT = timedelta(seconds=5)
_UNFINISHED_SECONDS = 60.0
"""After this long, nobody will still write to an empty file."""
_MOST_BYTES = 64 << 10


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says about itself, and the loopback port of its status page."""

    app: str
    command: str
    pid: int
    port: int
    started_at: datetime


class Registry:
    """The files of one directory, which the first entry creates."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextmanager
    def entered(self, entry: RunEntry) -> Iterator[None]:
        """Be listed while the block runs; OSError if that is impossible."""
        # A name that was never used: whoever finds an old file may take it away at any time.
        path = self._directory / f"{entry.pid}-{uuid4().hex[:8]}.json"
        lock = FileLock(path)
        if not lock.wait(timeout=_LOCK_LIMIT):
            raise OSError(f"{path} is locked by another process")
        with lock:
            try:
                path.write_bytes(msgspec.json.encode(entry))
                yield
            finally:
                path.unlink(missing_ok=True)

    def entries(self) -> list[RunEntry]:
        """Return the running commands, oldest first; remove files that killed processes left."""
        found = []
        for path in sorted(self._directory.glob("*.json")):
            entry = _read(path)
            if not _is_owned(path):
                self._tidy(path, complete=entry is not None)
            elif entry is not None:
                found.append(entry)
        return sorted(found, key=lambda entry: entry.started_at)

    def _tidy(self, path: Path, *, complete: bool) -> None:
        # A complete file was written under the lock, which is gone now. An incomplete one may
        # belong to a process that has not locked it yet.
        with suppress(OSError):
            if complete or time.time() - path.stat().st_mtime > _UNFINISHED_SECONDS:
                path.unlink(missing_ok=True)


def _is_owned(path: Path) -> bool:
    try:
        return FileLock(path).is_taken()
    except OSError:  # another user's file: the page will show whether the process lives
        return True


def _read(path: Path) -> RunEntry | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=RunEntry)
    except (OSError, msgspec.MsgspecError):
        return None
