"""A connection to PostgreSQL: where it is, its limits, and who must act when it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock.connectors.connector import AWAY
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, is_reference, open_secret, reference
from penstock.core.settings.masking import without_secrets
from penstock.errors import ConfigurationError, PenstockError, TransientError

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection, Error

__all__ = ["Address", "client", "explain", "explained", "read_address"]

_CONNECT_SECONDS = 10
_SILENCE_MILLISECONDS = 30_000
"""How long a server may not acknowledge what was sent, before the connection counts as broken."""
_MISTAKES = ("08P01", "0A", "21", "22", "28", "3D", "3F", "42")
"""Classes of SQLSTATE that a person must act on: rights, names, types; of a connection."""
_WRONG_LOGIN = ("authentication failed", "does not exist", "no pg_hba.conf entry", "no password")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is, and how long it may take."""

    given: str | Reference
    password: Reference | None = None
    timeout: timedelta = timedelta(seconds=60)
    """How long one statement may take."""

    def connect(self, name: str, **given: Any) -> "Connection[Any]":
        """Return a connection, of which the server knows the name; each statement commits."""
        psycopg = client()
        conninfo, settings = self._settings(name)
        with explained():
            made: Connection[Any] = psycopg.connect(
                conninfo, autocommit=True, **{**settings, **given}
            )
        return made

    async def connect_async(self, name: str) -> "AsyncConnection[Any]":
        """Return a connection as :meth:`connect` does, for an event loop."""
        psycopg = client()
        conninfo, settings = self._settings(name)
        with explained():
            made: AsyncConnection[Any] = await psycopg.AsyncConnection.connect(
                conninfo, autocommit=True, **settings
            )
        return made

    def _settings(self, name: str) -> tuple[str, dict[str, Any]]:
        milliseconds = round(self.timeout.total_seconds() * 1000)
        settings: dict[str, Any] = {
            "application_name": name[:63],
            "connect_timeout": _CONNECT_SECONDS,
            "tcp_user_timeout": _SILENCE_MILLISECONDS,
            "options": f"-c statement_timeout={milliseconds} -c datestyle=ISO -c timezone=UTC",
        }
        if self.password is not None:
            settings["password"] = self.password.read()
        return (self.given.read() if isinstance(self.given, Reference) else self.given), settings


def read_address(
    options: ConnectorOptions, address: Any, password: Any, timeout: str | timedelta
) -> Address:
    """Return where a database is; what is wrong with it is kept."""
    span = options.positive_span("timeout", timeout, timedelta(seconds=60))
    word = reference(options, "password", password)
    hint = 'address="postgresql://app@db.example/shop", password="env:SHOP_PASSWORD"'
    if not isinstance(address, str) or not address:
        options.wrong("address", "it is not a text", hint)
        return Address(given="", password=word, timeout=span)
    if is_reference(address):
        kind, _, place = address.partition(":")
        return Address(given=Reference(kind, place), password=word, timeout=span)
    if open_secret(address):
        options.wrong("address", "it has a password inside", hint)
        return Address(given="", password=word, timeout=span)
    return Address(given=address, password=word, timeout=span)


def client() -> ModuleType:
    """Return the client library; ConfigurationError where it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigurationError(
            "PostgreSQL needs a client library that is not installed",
            code="connector.missing",
            detail=str(error),
            hint="pip install 'penstock[postgres]'",
        ) from error
    return psycopg


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors of the client library into ours: the server is away, or a person must act."""
    psycopg = client()
    try:
        yield
    except psycopg.Error as error:
        raise explain(error) from error


def explain(error: "Error") -> PenstockError:
    """Return what an error of the server means; its own words are the message."""
    state = error.sqlstate or ""
    words = without_secrets(" ".join(str(error).split()))
    login = not state and any(each in words for each in _WRONG_LOGIN)
    if login or state.startswith(_MISTAKES):
        code = "connector.refused"
        hint = "penstock check --online tries the connection and says what it may do"
        return ConfigurationError(f"PostgreSQL: {words}", code=code, hint=hint)
    return TransientError(f"PostgreSQL: {words or type(error).__name__}", code=AWAY)
