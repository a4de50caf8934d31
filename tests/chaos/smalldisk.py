"""A disk that is soon full."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["fill", "small_disk"]


@contextmanager
def small_disk(size: str) -> Iterator[Path]:
    """Give the directory of a disk of this size, which is gone after the block. For root only."""
    directory = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True, capture_output=True)
        directory.rmdir()


def fill(ballast: Path, *, by: int) -> None:
    """Write a file, so many bytes at a time, until its disk has no room for more."""
    try:
        with ballast.open("ab", buffering=0) as file:
            while file.write(b"\0" * by):
                pass
    except OSError:  # full
        return
