"""The log of a part's process as it is written: its last lines, then what comes."""

import os
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO

from penstock.core.printable import printable
from penstock.core.settings.masking import without_secrets
from penstock.serving.desk.offers import Asked, Event
from penstock.serving.http.problems import Problem

__all__ = ["Logs"]

_LOOK_SECONDS = 0.4
_FIRST_BYTES = 64 << 10
"""So much of the end of a log is shown at first."""
_CHUNK_BYTES = 256 << 10
"""What was written between two looks and is more than this is passed by."""
_MOST_LINES = 1000
_LINE_CHARACTERS = 2000


class Logs:
    """The logs of processes, by the names of the processes; others are not to be had."""

    def __init__(self, files: Callable[[], Mapping[str, Path]]) -> None:
        self._files = files

    def stream(self, asked: Asked) -> Iterator[Event]:
        """Yield the lines of a log, also when it is put aside and begun anew."""
        name = asked.path["name"]
        path = self._files().get(name)
        if path is None:
            text = f"there is no log of a process {printable(name)!r}"
            raise Problem(HTTPStatus.NOT_FOUND, "log.missing", text)
        yield Event("log", {"process": name, "file": str(path)})
        file: BinaryIO | None = None
        try:
            while not asked.stop.is_set():
                if file is None:
                    file = _opened(path)
                if file is not None and (lines := _lines(file)):
                    yield Event("lines", lines)
                    continue
                if file is not None and _replaced(file, path):
                    file.close()
                    file = None
                asked.stop.wait(_LOOK_SECONDS)
        finally:
            if file is not None:
                file.close()


def _opened(path: Path) -> BinaryIO | None:
    try:
        file = path.open("rb")
    except OSError:
        return None  # its process has not begun it yet
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _FIRST_BYTES))
    if size > _FIRST_BYTES:
        file.readline()  # the rest of a line
    return file


def _lines(file: BinaryIO) -> list[str]:
    """Return the whole lines that have come; a line that is still being written comes later."""
    at = file.tell()
    size = os.fstat(file.fileno()).st_size
    if size - at > _CHUNK_BYTES:
        at = file.seek(size - _CHUNK_BYTES)
    chunk = file.read(_CHUNK_BYTES)
    end = chunk.rfind(b"\n") + 1
    if not end and len(chunk) == _CHUNK_BYTES:
        end = len(chunk)
    file.seek(at + end)
    texts = chunk[:end].decode("utf-8", errors="replace").splitlines()[-_MOST_LINES:]
    return [printable(without_secrets(text), most=_LINE_CHARACTERS) for text in texts]


def _replaced(file: BinaryIO, path: Path) -> bool:
    """Return whether another file has taken the place of the one that is read, or it was cut."""
    try:
        found = path.stat()
    except OSError:
        return False
    mine = os.fstat(file.fileno())
    return (found.st_ino, found.st_dev) != (mine.st_ino, mine.st_dev) or mine.st_size < file.tell()
