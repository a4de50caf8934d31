"""JSON Web Tokens (RFC 7519): signed by somebody whose public keys are in a file of this machine.

The key decides the algorithm, never the token: each key of the file has one, and it is one of
those with a public and a private half. So neither ``none`` nor a public key as a secret is a way
in. What a token needs: a subject, an end, and the audience that the gateway is.
"""

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from penstock.core.printable import printable
from penstock.errors import ConfigurationError
from penstock.serving.http.caller import Caller
from penstock.serving.http.watched import Watched

__all__ = ["ALGORITHMS", "TokenKeys", "TokenRules"]

AUDIT = logging.getLogger("penstock.serving.audit")

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""What a key may be for."""
_KEPT = 10_000
"""So many tokens are not verified again while they are good."""
_MOST_CHARACTERS = 8192
"""A token has no more."""
_SUBJECT_CHARACTERS = 255
_RSA_BITS = 2048
_NEEDS = ["exp", "sub", "aud"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What tokens must say, and what they may."""

    audience: str
    issuer: str = ""
    """Empty: whoever has one of the keys."""
    roles: str = "roles"
    """The claim with the roles; a dot leads into an object."""
    leeway: timedelta = timedelta(seconds=30)
    """How far the clocks may be apart."""


class _NotGoodError(Exception):
    """Why a token is not good."""


class TokenKeys:
    """The keys of a file, and the callers whose tokens they have signed.

    ConfigurationError ``serving.jwks`` or ``serving.jwt``: the file, or the rules, cannot be used.
    """

    def __init__(self, file: Path, rules: TokenRules) -> None:
        try:
            import jwt  # an extra of the package
        except ImportError as error:
            raise ConfigurationError(
                "serving.jwks_file needs a package that is not installed",
                code="serving.jwt",
                hint="run: pip install 'penstock[jwt]'",
            ) from error
        if not rules.audience:
            raise ConfigurationError(
                "serving.jwks_file needs serving.jwt_audience",
                code="serving.jwt",
                detail="without it a token for any other application would be good here",
                hint='serving.jwt_audience = "https://gateway.example"',
            )
        self._jwt = jwt
        self._rules = rules
        self._file = str(file)
        self._known: OrderedDict[bytes, Caller] = OrderedDict()
        self._keys = Watched(file, self._read, wrong=self._wrong)

    @property
    def trouble(self) -> str:
        """Return why the file, as it is now, is not used; empty: it is."""
        return self._keys.trouble

    def find(self, token: str) -> Caller | None:
        """Return whose token it is; None: it is not good, and the audit log says why."""
        if self._keys.look():
            self._known.clear()
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        caller = self._known.get(digest)
        if caller is None:
            try:
                caller = self._verified(token)
            except (_NotGoodError, self._jwt.PyJWTError, ValueError, RecursionError) as error:
                why = f"{type(error).__name__}: {error}"
                AUDIT.warning("a token is not good: %s", printable(why, most=200))
                return None
            self._known[digest] = caller
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        if caller.expires_at is not None and caller.expires_at <= time.time():
            del self._known[digest]
            AUDIT.warning("a token is not good: it has expired")
            return None
        return caller

    def _verified(self, token: str) -> Caller:
        jwt, rules = self._jwt, self._rules
        if len(token) > _MOST_CHARACTERS:
            raise _NotGoodError("it is too long")
        head = jwt.get_unverified_header(token)
        key = self._key(head)
        if key is None:
            raise _NotGoodError("no key of the file has signed it, as its head has it")
        if "crit" in head:
            raise _NotGoodError("it needs what nobody understands here")
        claims = jwt.decode(
            token,
            key=key.key,
            algorithms=[key.algorithm_name],
            audience=rules.audience,
            issuer=rules.issuer or None,
            leeway=rules.leeway,
            options={"require": [*_NEEDS, "iss"] if rules.issuer else _NEEDS},
        )
        subject = claims["sub"]
        if not subject or len(subject) > _SUBJECT_CHARACTERS:
            raise _NotGoodError(f"its subject is not of 1 to {_SUBJECT_CHARACTERS} characters")
        return Caller(
            # Whoever is named so in the file of callers is somebody else.
            f"jwt:{subject}",
            frozenset(_roles(claims, rules.roles)),
            claims,
            float(claims["exp"]) + rules.leeway.total_seconds(),
        )

    def _key(self, head: Mapping[str, Any]) -> Any:
        """Return the key that a token names, if it is for the algorithm that the token names."""
        keys, name = self._keys.value, head.get("kid")
        if name is None and len(keys) == 1:
            (key,) = keys.values()
        else:
            key = keys.get(name) if isinstance(name, str) else None
        return key if key is not None and head.get("alg") == key.algorithm_name else None

    def _read(self, text: str) -> Mapping[str | None, Any]:
        """Return the keys of a set by their names."""
        try:
            document = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._wrong(f"it is not JSON: {error}") from error
        entries = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            raise self._wrong('it is no set of keys: {"keys": [...]}')
        found: dict[str | None, Any] = {}
        for number, entry in enumerate(entries, 1):
            key = self._entry(entry, f"key {number}")
            if key is None:
                continue
            name = entry.get("kid")
            if name in found:
                raise self._wrong(f"two keys are named {name!r}")
            found[name] = key
        if not found:
            raise self._wrong("it has no key for signatures that is understood here")
        if None in found and len(found) > 1:
            raise self._wrong("a key without a kid must be the only one")
        return found

    def _entry(self, entry: Any, which: str) -> Any:
        """Return a key; None: it is not for signatures, or of a kind that is not known here."""
        if not isinstance(entry, dict):
            raise self._wrong(f"{which} is no object")
        if entry.get("kty") == "oct" or "d" in entry or "k" in entry:
            raise self._wrong(f"{which} is a secret: the file has public keys only")
        uses = entry.get("key_ops", ["verify"])
        if entry.get("use", "sig") != "sig" or not isinstance(uses, list) or "verify" not in uses:
            return None
        try:
            key = self._jwt.PyJWK(entry)
        except (self._jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None
        if key.algorithm_name not in ALGORITHMS:
            return None
        if entry.get("kty") == "RSA" and key.key.key_size < _RSA_BITS:
            raise self._wrong(f"{which} has fewer than {_RSA_BITS} bits")
        return key

    def _wrong(self, why: str) -> ConfigurationError:
        return ConfigurationError(
            f"the keys in {self._file} cannot be used",
            code="serving.jwks",
            detail=why,
            hint="a JSON Web Key Set (RFC 7517) with public keys, as the issuer publishes it",
        )


def _roles(claims: Mapping[str, Any], path: str) -> Sequence[str]:
    """Return the roles that a claim has: a list, or words with spaces between them."""
    found: Any = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return found.split()
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
