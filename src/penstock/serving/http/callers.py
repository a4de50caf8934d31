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
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from penstock.errors import ConfigurationError
from penstock.serving.http.caller import ANYBODY, Caller
from penstock.serving.http.keys import TokenKeys
from penstock.serving.http.watched import Watched

__all__ = ["ANYBODY", "Caller", "Callers", "read_callers"]

_DIGEST_CHARACTERS = 64
_DOTS = 2
"""A JSON Web Token has so many, and no other token has any reason to."""


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
    """The callers of a file, and of tokens that ``keys`` have signed.

    A change of the file is seen within seconds, and a bad one changes nothing. Without both every
    caller is anybody.
    """

    def __init__(self, file: str, keys: TokenKeys | None = None) -> None:
        self._keys = keys
        self._known: Watched[dict[bytes, Caller]] | None = None
        if file:
            read, wrong = partial(read_callers, file=file), partial(_wrong, file)
            self._known = Watched(Path(file), read, wrong=wrong)

    @property
    def open(self) -> bool:
        """Whether no token is asked for."""
        return self._known is None and self._keys is None

    @property
    def trouble(self) -> str:
        """Return why a file, as it is now, is not used; empty: all are."""
        found = [each.trouble for each in (self._known, self._keys) if each is not None]
        return "; ".join(filter(None, found))

    def find(self, authorization: str | None) -> Caller | None:
        """Return who sent an Authorization header; None: nobody who is known."""
        if self.open:
            return ANYBODY
        kind, _, token = (authorization or "").partition(" ")
        token = token.strip()
        found = self._listed(token)
        if kind.lower() != "bearer":
            return None
        if found is None and self._keys is not None and token.count(".") == _DOTS:
            return self._keys.find(token)
        return found

    def _listed(self, token: str) -> Caller | None:
        """Return who of the file has a token."""
        if self._known is None:
            return None
        self._known.look()
        given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        # All are compared, so that the time says nothing of which one it nearly was.
        for digest, caller in self._known.value.items():
            if hmac.compare_digest(digest, given):
                found = caller
        ends_at = None if found is None else found.expires_at
        return None if ends_at is not None and ends_at <= time.time() else found
