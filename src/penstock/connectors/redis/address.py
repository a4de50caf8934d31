"""A connection to Redis or Valkey: where it is, its limits, and who must act when it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.connectors.connector import AWAY
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, is_reference, open_secret, reference
from penstock.core.settings.masking import without_secrets
from penstock.errors import ConfigurationError, PenstockError, TransientError

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

__all__ = ["Address", "client", "explained", "read_address"]

_TIMEOUT = timedelta(seconds=10)
_MISTAKES = ("WRONGTYPE", "NOPERM", "WRONGPASS", "NOAUTH", "ERR", "DENIED", "CROSSSLOT", "MOVED")
"""How answers begin that a person must act on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server is, and how long it may take."""

    given: str | Reference
    password: Reference | None = None
    timeout: timedelta = _TIMEOUT
    """How long connecting may take, and each answer."""

    def connect(self, name: str) -> "Redis":
        """Return a connection that the server has answered on."""
        redis = client()
        with explained():
            from redis.retry import Retry

            made: Redis = self._made(redis.Redis, name, Retry)
            try:
                made.ping()
            except BaseException:
                made.close()
                raise
        return made

    async def connect_async(self, name: str) -> "AsyncRedis":
        """Return a connection for an event loop; its first command opens it."""
        client()
        from redis import asyncio
        from redis.asyncio.retry import Retry

        with explained():
            made: AsyncRedis = self._made(asyncio.Redis, name, Retry, single_connection_client=True)
        return made

    def _made(self, kind: Any, name: str, retry: Any, **more: Any) -> Any:
        from redis.backoff import NoBackoff

        url = self.given.read() if isinstance(self.given, Reference) else self.given
        seconds = self.timeout.total_seconds()
        if self.password is not None:
            more["password"] = self.password.read()
        try:
            return kind.from_url(
                url,
                socket_timeout=seconds,
                socket_connect_timeout=seconds,
                client_name="".join(each if each.isalnum() else "-" for each in name),
                retry=retry(NoBackoff(), 0),  # whoever asks tries again as a whole
                **more,
            )
        except ValueError as error:
            raise _wrong_address(str(error)) from error


def read_address(
    options: ConnectorOptions, address: Any, password: Any, timeout: str | timedelta
) -> Address:
    """Return where a server is; what is wrong with it is kept."""
    span = options.positive_span("timeout", timeout, _TIMEOUT)
    word = reference(options, "password", password)
    hint = 'address="rediss://cache.example:6379/0", password="env:CACHE_PASSWORD"'
    if isinstance(address, str) and is_reference(address):
        kind, _, place = address.partition(":")
        return Address(given=Reference(kind, place), password=word, timeout=span)
    if not isinstance(address, str) or not address.startswith(("redis://", "rediss://", "unix://")):
        options.wrong("address", "it is no address of Redis", hint)
    elif open_secret(address):
        options.wrong("address", "it has a password inside", hint)
    else:
        return Address(given=address, password=word, timeout=span)
    return Address(given="", password=word, timeout=span)


def client() -> Any:
    """Return the client library; ConfigurationError where it is not installed."""
    try:
        import redis
    except ImportError as error:
        raise ConfigurationError(
            "Redis needs a client library that is not installed",
            code="connector.missing",
            detail=str(error),
            hint="pip install 'penstock[redis]'",
        ) from error
    return redis


@contextmanager
def explained() -> Iterator[None]:
    """Turn errors of the client library into ours: the server is away, or a person must act."""
    redis = client()
    try:
        yield
    except redis.RedisError as error:
        raise _explain(error, redis) from error


def _explain(error: Exception, redis: Any) -> PenstockError:
    words = without_secrets(" ".join(str(error).split()))
    refused = isinstance(error, redis.AuthenticationError | redis.exceptions.NoPermissionError)
    answered = isinstance(error, redis.ResponseError) and words.startswith(_MISTAKES)
    if refused or answered:
        return ConfigurationError(
            f"Redis: {words}",
            code="connector.refused",
            hint="penstock check --online tries the connection",
        )
    return TransientError(f"Redis: {words or type(error).__name__}", code=AWAY)


def _wrong_address(words: str) -> ConfigurationError:
    return ConfigurationError(
        f"no address of Redis: {without_secrets(words)}",
        code="connector.refused",
        hint="redis://HOST:PORT/NUMBER",
    )
