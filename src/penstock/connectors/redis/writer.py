"""Writes batches to Redis, each in one MULTI with the position behind it.

The position is watched: a transaction that another run came before is not executed. Nothing in it
can fail on the way, because every command takes a key of any type.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.connectors.connector import Row
from penstock.connectors.redis.address import Address, client, explained
from penstock.errors import TransientError

__all__ = ["KeysWriter", "RedisSinkTarget"]

_POSITIONS = "penstock:positions:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSinkTarget:
    """What one sink writes, and where."""

    sink: str
    topic: str
    fields: tuple[str, ...]
    kind: Literal["hash", "json", "publish"]
    prefix: bytes
    """In front of every key; the channel, where records are published."""
    expire_milliseconds: int | None

    @property
    def positions(self) -> str:
        """The key that has the positions."""
        place = self.prefix.decode("utf-8", "backslashreplace")
        return f"{_POSITIONS}{self.sink}:{self.topic}:{self.kind}:{place}"


class KeysWriter:
    """One connection that writes for one sink."""

    def __init__(self, target: RedisSinkTarget, address: Address) -> None:
        self._target = target
        self._client = address.connect(f"penstock sink {target.sink}")
        self._put = {"hash": self._hash, "json": self._json, "publish": self._publish}[target.kind]
        self._written: dict[int, int] = {}

    def prepare(self) -> None:
        """Read what was written."""
        with explained():
            found: Any = self._client.hgetall(self._target.positions)
        self._written = {int(partition): int(position) for partition, position in found.items()}

    def positions(self) -> dict[int, int]:
        """Return for each partition the offset behind what was written."""
        return dict(self._written)

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Write rows and position: all of it or nothing."""
        redis = client()
        key, known = self._target.positions, self._written.get(partition)
        last = rows if self._target.kind == "publish" else {row.key: row for row in rows}.values()
        with explained(), self._client.pipeline(transaction=True) as pipe:
            pipe.watch(key)  # type: ignore[no-untyped-call]
            found: Any = pipe.hget(key, str(partition))
            if (None if found is None else int(found)) != known:
                raise self._taken()
            pipe.multi()
            for row in last:
                self._put(pipe, row)
            pipe.hset(key, str(partition), str(position))
            try:
                pipe.execute()
            except redis.WatchError as error:
                raise self._taken() from error
        self._written[partition] = position

    def close(self) -> None:
        """Close the connection."""
        with suppress(Exception):  # what was not executed is not there; nothing is left to do
            self._client.close()

    def _taken(self) -> TransientError:
        return TransientError(
            f"another run of {self._target.sink} has written in the meantime",
            code="sink.taken",
            hint="it goes on from what the other run wrote",
        )

    def _hash(self, pipe: Any, row: Row) -> None:
        name = self._target.prefix + (row.key or b"")
        pipe.delete(name)
        if row.change != "add":
            return
        values: dict[str, Any] = {}
        for each in self._target.fields:
            value = getattr(row.record, each)
            if value is not None:
                plain = isinstance(value, str | bytes)
                values[each] = value if plain else msgspec.json.encode(value).strip(b'"')
        if values:
            pipe.hset(name, mapping=values)
            if self._target.expire_milliseconds is not None:
                pipe.pexpire(name, self._target.expire_milliseconds)

    def _json(self, pipe: Any, row: Row) -> None:
        name = self._target.prefix + (row.key or b"")
        if row.change == "add":
            pipe.set(name, row.value, px=self._target.expire_milliseconds)
        else:
            pipe.delete(name)

    def _publish(self, pipe: Any, row: Row) -> None:
        if row.change == "add":
            pipe.publish(self._target.prefix, row.value)
