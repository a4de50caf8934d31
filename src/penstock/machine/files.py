"""Files that are written completely or not at all."""

import os
import tempfile
from pathlib import Path

__all__ = ["last_lines", "write_atomically"]

_TAIL_BYTES = 64 << 10


def write_atomically(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Write a text file so that readers, and a power cut, see the old content or the new.

    Directories are made as needed. A file that has this content and mode already is left alone.
    """
    try:
        if path.read_text(encoding="utf-8") == text and path.stat().st_mode & 0o777 == mode:
            return
    except (OSError, UnicodeDecodeError):
        pass  # not there or not ours to read: it is written below, and errors show there
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def last_lines(path: Path, *, count: int) -> list[str]:
    """Return the last lines of a log file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-count:]
