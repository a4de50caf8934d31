"""Locks between processes. The kernel releases them when their holder dies."""

import fcntl
import os
import time
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self
from weakref import WeakSet

from penstock.machine.private import open_private

__all__ = ["FileLock"]

_POLL_SECONDS = 0.05


class FileLock:
    """An advisory lock (``flock``) on a file, shared or exclusive; the file itself stays.

    It belongs to this process alone: programs started from it do not inherit it, nor do
    processes forked from it. It is not for sharing between threads.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock if that is possible at once; return whether it was."""
        if self._descriptor is not None:
            raise RuntimeError(f"{self.path} is locked already by this object")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_private(self.path)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _held.add(self)
        return True

    def wait(self, *, timeout: timedelta, shared: bool = False) -> bool:
        """Take the lock, waiting up to a time for its holders; return whether it was taken."""
        deadline = time.monotonic() + timeout.total_seconds()
        while not self.acquire(shared=shared):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def release(self) -> None:
        """Release the lock; nothing happens if it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held.discard(self)

    def is_taken(self) -> bool:
        """Whether somebody holds the lock exclusively; asking takes it for a moment, shared."""
        if self.held:
            return True
        probe = FileLock(self.path)
        if not self.path.exists():
            return False
        taken = not probe.acquire(shared=True)
        probe.release()
        return taken

    def __enter__(self) -> Self:
        """Return the lock, which must have been taken."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release the lock."""
        self.release()


_held: WeakSet[FileLock] = WeakSet()


def _forget_in_forked_child() -> None:
    # A forked child shares the open file, and with it the lock; closing its copy leaves the
    # parent's lock alone.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_forget_in_forked_child)
