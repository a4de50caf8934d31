"""Bound the log files that programs write to while they run.

A program holds its log open, so the file cannot be renamed: its content is copied to the first of
the older files, and the file is emptied. The writer must append. What is written between the copy
and the emptying is lost.
"""

import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

__all__ = ["LogWatch", "bound_log"]

_LOOK_SECONDS = 2.0


def bound_log(log: Path, *, max_bytes: int, kept: int) -> bool:
    """Move the content of a log of ``max_bytes`` or more to an older file; return whether it did.

    ``kept`` older files stay beside the log, ``.1`` the newest. Each holds the last ``max_bytes``
    of what was moved. A log on a disk that fails keeps growing: whoever writes next reports it.
    """
    try:
        return _put_aside(log, max_bytes, kept)
    except OSError:
        return False


def _put_aside(log: Path, max_bytes: int, kept: int) -> bool:
    size = log.stat().st_size
    if size < max_bytes:
        return False
    for number in range(kept, 1, -1):
        older = log.with_name(f"{log.name}.{number - 1}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number}"))
    if kept:
        with log.open("rb") as full, _private(log.with_name(f"{log.name}.1")) as aside:
            if size > max_bytes:
                full.seek(size - max_bytes)
                full.readline()  # the rest of a line that is cut
            shutil.copyfileobj(full, aside)
    os.truncate(log, 0)
    return True


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


class LogWatch:
    """Check logs in a thread while the block runs."""

    def __init__(self, logs: Sequence[Path], *, max_bytes: int, kept: int) -> None:
        self._logs = tuple(logs)
        self._max_bytes = max_bytes
        self._kept = kept
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-watch", daemon=True)

    def start(self) -> Self:
        """Start checking."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop checking."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            for log in self._logs:
                bound_log(log, max_bytes=self._max_bytes, kept=self._kept)
