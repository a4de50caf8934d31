"""Keys and channels of Redis as sinks: their options."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.connectors.connector import BatchLimits
from penstock.connectors.opening import closed_on_failure, sink_of, what_was_written
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.redis.address import Address, read_address
from penstock.connectors.redis.writer import KeysWriter, RedisSinkTarget
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["RedisSink", "redis_channel", "redis_keys"]

_ROWS, _SIZE, _SPAN = 5_000, 4 << 20, timedelta(milliseconds=100)
_RESERVED = "penstock:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSink:
    """Keys or a channel of Redis; :func:`redis_keys` and :func:`redis_channel` make it."""

    place: str
    kind: Literal["hash", "json", "publish"]
    expire: timedelta | None
    address: Address
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    takes_deletions: Literal[True] = field(default=True, init=False)
    delivery: Literal["exactly_once"] = field(default="exactly_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        if self.kind == "publish":
            return f"channel {self.place} of Redis"
        return f"keys {self.place}* of Redis"

    def open(self, sink: Sink) -> KeysWriter:
        """Connect, and read what was written."""
        with closed_on_failure(KeysWriter(self._target(sink), self.address)) as writer:
            writer.prepare()
        return writer

    def attempt(self, part: Sink | Source) -> str:
        """Connect, and read what was written."""
        return what_was_written(self.open(sink_of(part)))

    def _target(self, sink: Sink) -> RedisSinkTarget:
        schema = sink.reads.record.schema
        if self.kind != "publish" and not schema.key:
            raise ConfigurationError(
                f"sink {sink.name!r}: {schema.name} has no key to write under",
                code="sink.no-key",
                hint=f'declare one: @record(key="...") above class {schema.name}',
            )
        expire = None if self.expire is None else round(self.expire.total_seconds() * 1000)
        return RedisSinkTarget(
            sink=sink.name,
            topic=sink.reads.topic.name,
            fields=tuple(each.name for each in schema.fields),
            kind=self.kind,
            prefix=self.place.encode(),
            expire_milliseconds=expire,
        )


def redis_keys(
    prefix: str,
    *,
    address: str,
    password: str | None = None,
    layout: Literal["hash", "json"] = "hash",
    expire: str | timedelta | None = None,
    every: str | timedelta = _SPAN,
    rows: int = _ROWS,
    size: str | int = _SIZE,
    timeout: str | timedelta = "10s",
) -> RedisSink:
    """Keep the latest record of each key in Redis or Valkey, for fast look-ups.

    A record replaces what is under its key; a deletion from a table, or a result that is taken
    back, deletes the key. Records and the position behind them are written in one transaction,
    which makes it exactly once, as far as the server keeps what it has acknowledged (``appendonly
    yes``). While the server is away, the sink is degraded and tries again for as long as that
    takes. It needs ``penstock[redis]``, and a server that is no cluster.

    Args:
        prefix: What stands in front of each key: ``"orders:"``.
        address: Where the server is, without a password: ``rediss://cache.example:6379/0`` (TLS) or
            ``redis://``. Or a reference to an address.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        layout: ``"hash"``: the fields of a record are fields of a hash, texts as they are, others
            as JSON, nulls left out. ``"json"``: a record is one text.
        expire: How long a key lives after it was written; None: for ever.
        every: How long the first record of a batch waits for others.
        rows: How many records a batch has at most.
        size: How large a batch is at most.
        timeout: How long connecting may take, and each answer.

    Examples:
        >>> newest = redis_keys("device:", address="redis://cache:6379", expire="1h")
        >>> app.sink("newest", newest, reads=hot).delivery
        'exactly_once'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("redis_keys", problems)
    place: Any = prefix
    if not isinstance(place, str) or not place or place.startswith(_RESERVED):
        options.wrong(
            "prefix", f"{place!r} is empty or begins with {_RESERVED!r}", 'redis_keys("orders:")'
        )
        place = "unknown:"
    span = options.maybe_span("expire", expire)
    if span is not None and span < timedelta(milliseconds=1):
        options.wrong("expire", f"{expire!r} is too short", 'expire="1h", for example')
        span = None
    return RedisSink(
        place=place,
        kind=options.word("layout", layout, ("hash", "json"), "hash"),
        expire=span,
        address=read_address(options, address, password, timeout),
        limits=_limits(options, every, rows, size),
        problems=tuple(problems),
    )


def redis_channel(
    channel: str,
    *,
    address: str,
    password: str | None = None,
    every: str | timedelta = _SPAN,
    rows: int = _ROWS,
    size: str | int = _SIZE,
    timeout: str | timedelta = "10s",
) -> RedisSink:
    """Publish the records of a stream on a channel of Redis or Valkey, as JSON.

    A batch is published in one transaction with the position behind it. Those who listen get each
    record once; those who do not listen at that moment never get it. Deletions and results that are
    taken back are not published. It needs ``penstock[redis]``, and a server that is no cluster.

    Args:
        channel: The name of the channel.
        address: Where the server is, without a password: ``rediss://cache.example:6379/0`` (TLS) or
            ``redis://``. Or a reference to an address.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        every: How long the first record of a batch waits for others.
        rows: How many records a batch has at most.
        size: How large a batch is at most.
        timeout: How long connecting may take, and each answer.

    Examples:
        >>> told = redis_channel("alarms", address="redis://cache:6379")
        >>> app.sink("told", told, reads=alarms).summary
        'sink, exactly once, channel alarms of Redis'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("redis_channel", problems)
    place: Any = channel
    if not isinstance(place, str) or not place:
        options.wrong("channel", f"{place!r} is no name", 'redis_channel("alarms")')
        place = "unknown"
    return RedisSink(
        place=place,
        kind="publish",
        expire=None,
        address=read_address(options, address, password, timeout),
        limits=_limits(options, every, rows, size),
        problems=tuple(problems),
    )


def _limits(options: ConnectorOptions, every: Any, rows: Any, size: Any) -> BatchLimits:
    return BatchLimits(
        rows=options.whole("rows", rows, _ROWS, least=1, most=100_000),
        size=options.size("size", size, _SIZE),
        span=options.positive_span("every", every, _SPAN),
    )
