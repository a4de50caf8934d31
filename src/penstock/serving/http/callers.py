"""Who calls: tokens from a file, compared in constant time, and the roles that they have.

The file holds digests, never tokens::

    [callers.meter-7]
    sha256 = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
    roles = ["meter"]
    expires = 2027-01-01T00:00:00Z  # never, if it is left out
    claims = { sub = "meter-7" }    # what rules over rows may use

`printf %s TOKEN | sha256sum` makes one. A token must be long and random: `openssl rand -hex 32`.
"""

import hashlib
import hmac
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.errors import ConfigurationError

__all__ = ["ANYBODY", "Caller", "Callers", "read_callers"]

_DIGEST_CHARACTERS = 64
_LOOK_SECONDS = 2.0
"""How long a change of the file may go unnoticed."""
_MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may call; ``roles`` None: no tokens are asked for, and everything is allowed."""

    name: str
    roles: frozenset[str] | None = None
    claims: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What is known of them beside their roles; rules over rows use it."""
    expires_at: float | None = None
    """The second since 1970 from which on the token is not valid; None: it does not run out."""


ANYBODY = Caller("anybody")
"""Who calls where no tokens are asked for."""


def read_callers(text: str, *, file: str) -> dict[bytes, Caller]:
    """Return the callers by the digests of their tokens; ConfigurationError ``serving.tokens``."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(file, str(error)) from error
    unknown = set(document) - {"callers"}
    if unknown or not isinstance(document.get("callers", {}), Mapping):
        raise _wrong(file, "it may have tables [callers.NAME] only")
    found: dict[bytes, Caller] = {}
    for name, entry in document.get("callers", {}).items():
        digest, caller = _entry(name, entry, file)
        if digest in found:
            raise _wrong(file, f"{name} and {found[digest].name} have the same token")
        found[digest] = caller
    return found


def _entry(name: str, entry: Any, file: str) -> tuple[bytes, Caller]:
    if not isinstance(entry, Mapping) or set(entry) - {"sha256", "roles", "claims", "expires"}:
        raise _wrong(file, f"callers.{name} may have sha256, roles, claims and expires")
    text, roles = entry.get("sha256"), entry.get("roles", [])
    try:
        digest = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        digest = b""
    if len(digest) * 2 != _DIGEST_CHARACTERS:
        raise _wrong(file, f"callers.{name}.sha256 is not {_DIGEST_CHARACTERS} hexadecimal digits")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise _wrong(file, f"callers.{name}.roles is not a list of texts")
    claims = entry.get("claims", {})
    if not isinstance(claims, Mapping):
        raise _wrong(file, f"callers.{name}.claims is not a table")
    expires = _expiry(entry.get("expires"), f"callers.{name}.expires", file)
    return digest, Caller(name, frozenset(roles), dict(claims), expires)


def _expiry(given: Any, name: str, file: str) -> float | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        raise _wrong(file, f"{name} is not an instant, such as 2027-01-01T00:00:00Z")
    aware = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
    return aware.timestamp()


def _wrong(file: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the tokens in {file} cannot be used",
        code="serving.tokens",
        detail=why,
        hint="printf %s TOKEN | sha256sum gives the digest; the file never holds a token",
    )


class Callers:
    """The callers of a file; a change of it is seen within seconds, and a bad one changes nothing.

    Without a file every caller is anybody.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file) if file else None
        self._looked_at = 0.0
        self._stamp: tuple[float, int] | None = None
        self._known: dict[bytes, Caller] = {}
        self.trouble = ""
        """Why the file, as it is now, is not used; empty: it is."""
        if self._file is not None:
            self._load(self._file)

    @property
    def open(self) -> bool:
        """Whether no token is asked for."""
        return self._file is None

    def find(self, authorization: str | None) -> Caller | None:
        """Return who sent an Authorization header; None: nobody who is known."""
        if self._file is None:
            return ANYBODY
        self._look(self._file)
        kind, _, token = (authorization or "").partition(" ")
        given = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        found = None
        # All are compared, so that the time says nothing of which one it nearly was.
        for digest, caller in self._known.items():
            if hmac.compare_digest(digest, given):
                found = caller
        if found is None or kind.lower() != "bearer":
            return None
        expired = found.expires_at is not None and found.expires_at <= time.time()
        return None if expired else found

    def _look(self, file: Path) -> None:
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            if _stamp(file) != self._stamp:
                self._load(file)
            self.trouble = ""
        except ConfigurationError as error:
            self.trouble = f"{error.message}: {error.detail}"

    def _load(self, file: Path) -> None:
        try:
            stamp = _stamp(file)
            with file.open("rb") as opened:
                text = opened.read(_MOST_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise _wrong(str(file), str(error)) from error
        self._known = read_callers(text, file=str(file))
        self._stamp = stamp


def _stamp(file: Path) -> tuple[float, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise _wrong(str(file), str(error)) from error
    return found.st_mtime, found.st_ino
