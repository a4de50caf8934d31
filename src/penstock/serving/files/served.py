"""The files of a directory: found by safe names, read whole, kept while they are the same."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["INDEX", "MOST_FILES", "MOST_FILE_BYTES", "Files", "ServedFile", "TooLarge", "type_of"]

INDEX = "index.html"
"""What is served for the directory itself."""
MOST_FILE_BYTES = 8 << 20
"""The largest file that is served."""
MOST_FILES = 10_000
"""So many files of a directory are looked through, at most."""
_KEPT_BYTES = 32 << 20
"""How much of a directory is kept in memory, at most."""
_LONGEST_NAME = 1024
_UNSAFE = frozenset('\\:*?"<>|') | {chr(code) for code in (*range(32), 127)}

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".gif": "image/gif",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
_UNKNOWN_TYPE = "application/octet-stream"


class TooLarge(Exception):  # noqa: N818 - it says what the file is
    """A file has more bytes than may be served."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as it is sent."""

    body: bytes
    media_type: str
    etag: str
    """Differs where the body does."""


def type_of(name: str) -> str:
    """Return the media type of a file by the end of its name."""
    return _TYPES.get(Path(name).suffix.lower(), _UNKNOWN_TYPE)


class Files:
    """The files below one directory, by their names as in an address: ``style/main.css``.

    A name that leads elsewhere finds nothing: one with ``..``, with an empty part, with a part that
    begins with a dot, or by way of a link out of the directory. A directory is never listed; its
    ``index.html`` is what it shows. A file that changes is read again.
    """

    def __init__(self, directory: Path) -> None:
        self._root = directory.resolve()
        self._kept: OrderedDict[Path, tuple[tuple[int, ...], ServedFile]] = OrderedDict()
        self._bytes = 0

    def names(self) -> Iterator[str]:
        """Yield the names of what is there, sorted; at most `MOST_FILES`."""
        found = sorted(
            path.relative_to(self._root).as_posix()
            for path, _ in zip(self._root.rglob("*"), range(MOST_FILES), strict=False)
            if path.is_file()
        )
        return (name for name in found if self._located(name) is not None)

    async def read(self, name: str) -> ServedFile | None:
        """Return a file; None: there is none. TooLarge or OSError: it cannot be read."""
        path = self._located(name)
        if path is None:
            return None
        stamp = _stamp(path)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == stamp:
            self._kept.move_to_end(path)
            return kept[1]
        body = await asyncio.to_thread(_content, path)
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        served = ServedFile(body, type_of(path.name), etag)
        self._keep(path, stamp, served)
        return served

    def _keep(self, path: Path, stamp: tuple[int, ...], served: ServedFile) -> None:
        former = self._kept.pop(path, None)
        self._bytes += len(served.body) - (len(former[1].body) if former else 0)
        self._kept[path] = (stamp, served)
        while self._bytes > _KEPT_BYTES:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._bytes -= len(oldest.body)

    def _located(self, name: str) -> Path | None:
        """Return where a file is, if its name is safe and it is one of this directory."""
        if name == "" or name.endswith("/"):
            name += INDEX
        parts = name.split("/")
        if len(name) > _LONGEST_NAME or _UNSAFE & set(name):
            return None
        if any(not part or part.startswith(".") for part in parts):
            return None
        try:
            path = self._root.joinpath(*parts).resolve()
            return path if path.is_relative_to(self._root) and path.is_file() else None
        except (OSError, ValueError):  # a name that the file system does not take
            return None


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        body = file.read(MOST_FILE_BYTES + 1)
    if len(body) > MOST_FILE_BYTES:
        raise TooLarge(path.name)
    return body
