"""Rows in Redis or Valkey for services that ask for them by key."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from penstock.connectors.lookup.definition import Lookup, made_lookup, read_limits
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.redis.address import Address, client, explained, read_address
from penstock.core.records.codec import key_encoder
from penstock.core.records.record import RecordType, record_type
from penstock.core.records.rowkey import row_of
from penstock.core.records.schema import Scalar, Schema
from penstock.errors import DataError, Problem

if TYPE_CHECKING:
    from redis.asyncio import Redis

__all__ = ["KeyRows", "redis_lookup"]

T = TypeVar("T")

_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisLookupTarget:
    """Under which keys rows are, and how."""

    prefix: bytes
    schema: Schema
    layout: Literal["hash", "json"]
    address: Address

    async def connect(self) -> "KeyRows":
        """Connect; the server has answered then."""
        connection = await self.address.connect_async("penstock look-up")
        try:
            with explained():
                await connection.ping()
        except BaseException:
            await connection.aclose()
            raise
        return KeyRows(self, connection)


class KeyRows:
    """One connection that rows are asked for over."""

    def __init__(self, target: RedisLookupTarget, connection: "Redis") -> None:
        self._target, self._connection = target, connection
        self._encode = key_encoder(target.schema) or (lambda _: b"")
        fields = target.schema.fields
        self._raw = {each.name for each in fields if each.type == Scalar("bytes")}

    async def fetch(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return the rows of keys: JSON, or the fields of a hash by their names."""
        names = [self._name(key) for key in keys]
        asked = [name for name in names if isinstance(name, bytes)]
        if not asked:
            return names
        hashes = self._target.layout == "hash"
        with explained():
            pipe = self._connection.pipeline(transaction=False)
            for name in asked:
                pipe.hgetall(name) if hashes else pipe.get(name)
            found = iter(await pipe.execute(raise_on_error=False))
        return [self._row(next(found)) if isinstance(name, bytes) else name for name in names]

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.aclose()

    def _name(self, key: Any) -> bytes | DataError:
        try:
            return self._target.prefix + self._encode(row_of(self._target.schema, key))
        except (TypeError, ValueError, OverflowError) as error:
            return DataError(str(error), code="lookup.key")

    def _row(self, found: Any) -> Any:
        if isinstance(found, client().RedisError):
            with explained():
                if isinstance(found, client().ResponseError) and str(found).startswith("WRONGTYPE"):
                    return DataError(f"Redis: {found}", code="data.wrong-type")
                raise found
        if not found and found != b"":
            return None
        if isinstance(found, bytes):
            return found if len(found) <= _LARGEST else _too_large(len(found))
        if (size := sum(map(len, found.values()))) > _LARGEST:
            return _too_large(size)
        named = {name.decode(errors="replace"): value for name, value in found.items()}
        try:
            return {
                name: value if name in self._raw else value.decode()
                for name, value in named.items()
            }
        except UnicodeDecodeError as error:
            return DataError(f"a field is no UTF-8: {error}", code="data.not-utf8")


def redis_lookup(
    prefix: str,
    *,
    record: type[T],
    address: str,
    password: str | None = None,
    layout: Literal["hash", "json"] = "hash",
    cache: int = 10_000,
    fresh: str | timedelta = "1m",
    absent: str | timedelta = "1s",
    stale: str | timedelta = "0s",
    timeout: str | timedelta = "2s",
    at_once: int = 100,
) -> Lookup[T]:
    """Look up rows in Redis or Valkey by key, from async services.

    It reads what ``redis_keys`` writes: a hash or a JSON text under the prefix and the key of the
    record type. Keys that calls ask for at the same time go in one pipeline. Rows are kept, up to a
    number and an age. While the server is away, calls get a TransientError (``connector.away``), or
    a stale row where that is allowed. It needs ``penstock[redis]``.

    Args:
        prefix: What stands in front of each key: ``"orders:"``.
        record: The type of the rows; it must have a key.
        address: Where the server is, without a password: ``rediss://cache.example:6379/0`` (TLS) or
            ``redis://``. Or a reference to an address.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        layout: ``"hash"``: the fields of a record are fields of a hash. ``"json"``: a record is one
            text.
        cache: How many rows are kept at most, for each partition of the service.
        fresh: How old a row that is kept may be; ``"0s"`` asks each time.
        absent: How long it is remembered that there is no row.
        stale: How old a row may be while the server does not answer.
        timeout: How long an answer may take, connecting included.
        at_once: How many keys go in one pipeline at most.

    Examples:
        >>> newest = redis_lookup("device:", record=Reading, address="redis://cache:6379")
        >>> newest.describe()
        'Reading from keys device:* of Redis'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("redis_lookup", problems)
    ages = fresh, absent, stale
    limits = read_limits(options, cache=cache, ages=ages, timeout=timeout, at_once=at_once)
    where = read_address(options, address, password, "10s")
    target = _target(options, record_type(record), prefix, layout, where)
    return made_lookup(
        options,
        problems,
        name=f"keys {prefix}* of Redis",
        record=record,
        keys=max(1, len(target.schema.key)),
        connect=target.connect,
        limits=limits,
    )


def _target(
    options: ConnectorOptions,
    record: RecordType[Any] | None,
    prefix: Any,
    layout: Any,
    address: Address,
) -> RedisLookupTarget:
    if record is not None and not record.schema.key:
        options.wrong("record", f"{record.name} has no key", '@record(key="id") above its class')
    place = options.text("prefix", prefix, "", 'redis_lookup("orders:")')
    return RedisLookupTarget(
        prefix=place.encode("utf-8", "replace"),
        schema=record.schema if record else Schema(name="unknown", fields=()),
        layout=options.word("layout", layout, ("hash", "json"), "hash"),
        address=address,
    )


def _too_large(size: int) -> DataError:
    return DataError(f"the row has {size} bytes, {_LARGEST} are allowed", code="data.too-large")
