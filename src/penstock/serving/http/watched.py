"""A file whose changes are seen within seconds; a bad change changes nothing."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from penstock.errors import ConfigurationError

__all__ = ["Watched"]

T = TypeVar("T")

_LOOK_SECONDS = 2.0
"""How long a change may go unnoticed."""
_MOST_BYTES = 4 << 20


class Watched(Generic[T]):
    """What a file says, as ``read`` makes it of its text.

    The file must be good at the beginning: else ConfigurationError, which ``wrong`` makes of a
    reason. Later, a bad one leaves the ``value`` as it is, and ``trouble`` says why.
    """

    def __init__(
        self, file: Path, read: Callable[[str], T], *, wrong: Callable[[str], ConfigurationError]
    ) -> None:
        self._file = file
        self._read = read
        self._wrong = wrong
        self._looked_at = time.monotonic()
        self._stamp: tuple[float, int] | None = None
        self.trouble = ""
        """Why the file, as it is now, is not used; empty: it is."""
        self.value = self._load()

    def look(self) -> bool:
        """Look at the file if that was a while ago; return whether the value is another one."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return False
        self._looked_at = now
        try:
            changed = self._stamped() != self._stamp
            if changed:
                self.value = self._load()
            self.trouble = ""
        except ConfigurationError as error:
            self.trouble = f"{error.message}: {error.detail}"
            return False
        return changed

    def _load(self) -> T:
        try:
            stamp = self._stamped()
            with self._file.open("rb") as opened:
                text = opened.read(_MOST_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(str(error)) from error
        value = self._read(text)
        self._stamp = stamp
        return value

    def _stamped(self) -> tuple[float, int]:
        try:
            found = self._file.stat()
        except OSError as error:
            raise self._wrong(str(error)) from error
        return found.st_mtime, found.st_ino
