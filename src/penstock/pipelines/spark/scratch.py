"""A scratch directory that is removed with its process, or at the next start after a kill."""

import shutil
import tempfile
from pathlib import Path

from penstock.machine.locks import FileLock

__all__ = ["Scratch"]

_LOCK = "owner.lock"


class Scratch:
    """A directory of this process's own; those of dead processes beside it are removed."""

    def __init__(self, parent: Path, *, name: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        # Under the lock of the whole place: between making a directory and locking it, nobody else
        # may take it for a dead one.
        with FileLock(parent / _LOCK) as sweeping:
            if sweeping.acquire():
                _sweep(parent)
            self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
            self._owner = FileLock(self.path / _LOCK)
            self._owner.acquire()

    def remove(self) -> None:
        """Remove the directory with all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._owner.release()


def _sweep(parent: Path) -> None:
    for directory in parent.iterdir():
        if directory.is_dir() and not FileLock(directory / _LOCK).is_taken():
            shutil.rmtree(directory, ignore_errors=True)
