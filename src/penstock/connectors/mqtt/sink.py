"""Records as messages of MQTT: each is sent until the broker has acknowledged it."""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, Literal

from penstock.connectors.connector import AWAY, BatchLimits, Row, RowsRefusedError
from penstock.connectors.mqtt.packets import (
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    Packet,
    acknowledge,
    number_of,
    publish,
)
from penstock.connectors.mqtt.wire import Address, Wire, read_address
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink, Source
from penstock.core.records.schema import Choice, Scalar, Schema
from penstock.errors import ConfigurationError, Problem, TransientError

__all__ = ["MqttTopic", "TopicWriter", "mqtt_topic"]

_WINDOW = 100
"""How many messages are under way at a time."""
_LONGEST_TOPIC = 1_000
_FIELD = re.compile(r"\{(\w+)\}")
_ANSWER = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTopic:
    """A topic of MQTT that records are sent to; :func:`mqtt_topic` makes it."""

    topic: str
    quality: int
    retain: bool
    address: Address
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    takes_deletions: Literal[True] = field(default=True, init=False)
    delivery: Literal["at_least_once"] = field(default="at_least_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"topic {self.topic} of MQTT"

    def open(self, sink: Sink) -> "TopicWriter":
        """Connect."""
        name = _topic_of(self.topic, sink)
        wire = self.address.open(_client(), clean=True, largest=_ANSWER)
        return TopicWriter(self, name, wire)

    def attempt(self, part: Sink | Source) -> str:
        """Connect, and send nothing."""
        self.address.open(_client(), clean=True, largest=_ANSWER).close()
        return f"it answers {part.name}"


class TopicWriter:
    """One connection that sends for one sink."""

    def __init__(
        self,
        spec: MqttTopic,
        name: Callable[[Row], str],
        wire: Wire,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._spec, self._name, self._wire, self._clock = spec, name, wire, clock
        self._seconds = spec.address.timeout.total_seconds()
        self._number = 0
        self._under_way: dict[int, int] = {}
        """Which answer each message waits for, by its number."""

    def positions(self) -> dict[int, int]:
        """Return nothing: a broker keeps no positions."""
        return {}

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Send rows, and wait until the broker has acknowledged all of them."""
        del partition, position
        topics, refused = self._topics(rows)
        if refused:
            raise RowsRefusedError(refused)
        for row, topic in zip(rows, topics, strict=True):
            if row.change == "add":
                self._send(topic, row.value)
            elif self._spec.retain:
                self._send(topic, b"")  # what the broker keeps of this topic is forgotten
        while self._under_way:
            self._hear()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _topics(self, rows: Sequence[Row]) -> tuple[list[str], dict[int, str]]:
        topics, refused = [], {}
        for n, row in enumerate(rows):
            try:
                topics.append(self._name(row))
            except ValueError as error:
                refused[n] = str(error)
        return topics, refused

    def _send(self, topic: str, payload: bytes) -> None:
        while len(self._under_way) >= _WINDOW:
            self._hear()
        quality, retain = self._spec.quality, self._spec.retain
        self._number = self._number % 65_535 + 1
        self._under_way[self._number] = PUBACK if quality == 1 else PUBREC
        self._wire.send(
            publish(topic, payload, quality=quality, retain=retain, number=self._number)
        )

    def _hear(self) -> None:
        """Take answers; TransientError where none comes in time."""
        until = self._clock() + self._seconds
        while True:
            packets = self._wire.receive(min(until - self._clock(), 1.0))
            if sum(self._took(each) for each in packets):  # all of them, not up to the first
                return
            if self._clock() >= until:
                text = f"MQTT: no acknowledgement within {self._seconds:g}s"
                raise TransientError(text, code=AWAY)

    def _took(self, packet: Packet) -> bool:
        """Take an answer; return whether a message got on by it."""
        if packet.kind not in (PUBACK, PUBREC, PUBCOMP):
            return False
        number = number_of(packet)
        if self._under_way.get(number) != packet.kind:
            return False
        if packet.kind == PUBREC:
            self._under_way[number] = PUBCOMP
            self._wire.send(acknowledge(PUBREL, number))
        else:
            del self._under_way[number]
        return True


def mqtt_topic(
    topic: str,
    *,
    address: str,
    user: str | None = None,
    password: str | None = None,
    authority: str | None = None,
    qos: Literal[1, 2] = 1,
    retain: bool = False,
    every: str | timedelta = "100ms",
    rows: int = 1_000,
    size: str | int = "1MiB",
    timeout: str | timedelta = "10s",
) -> MqttTopic:
    """Send the records of a stream or table to a topic of MQTT as JSON, at least once.

    Each batch is sent until the broker has acknowledged all of it; after a crash or a lost
    connection a batch may be sent again. It speaks MQTT 3.1.1, over TCP or TLS.

    Args:
        topic: The topic; ``"plant/{device}/alarm"`` has the value of a field in it. A record whose
            value would change the levels of the topic becomes a dead letter.
        address: Where the broker is, without a password: ``mqtts://broker.example:8883`` (TLS) or
            ``mqtt://``. Or a reference to an address.
        user: Who connects.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        authority: With TLS: the file of the authority that signed the broker's certificate, in
            PEM; None: those that the system knows.
        qos: The QoS of the messages.
        retain: Whether the broker keeps the last message of each topic for those who come later. A
            deletion from a table, or a result that is taken back, removes it.
        every: How long the first record of a batch waits for others.
        rows: How many records a batch has at most.
        size: How large a batch is at most.
        timeout: How long connecting may take, and each answer.

    Examples:
        >>> told = mqtt_topic("plant/{device}/alarm", address="mqtt://broker")
        >>> app.sink("told", told, reads=alarms).summary
        'sink, at least once, topic plant/{device}/alarm of MQTT'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("mqtt_topic", problems)
    place: Any = topic
    if not isinstance(place, str) or not _fits(_FIELD.sub("x", place), levels=True):
        options.wrong("topic", f"{place!r} is no topic", 'mqtt_topic("plant/{device}/alarm")')
        place = "unknown"
    where = {"user": user, "password": password, "authority": authority, "timeout": timeout}
    return MqttTopic(
        topic=place,
        quality=options.whole("qos", qos, 1, least=1, most=2),
        retain=options.flag("retain", retain),
        address=read_address(options, address, **where),
        limits=BatchLimits(
            rows=options.whole("rows", rows, 1_000, least=1, most=10_000),
            size=options.size("size", size, 1 << 20),
            span=options.positive_span("every", every, timedelta(milliseconds=100)),
        ),
        problems=tuple(problems),
    )


def _topic_of(topic: str, sink: Sink) -> Callable[[Row], str]:
    """Return the function from a row to its topic; ValueError where a value does not fit."""
    schema: Schema = sink.reads.record.schema
    names = _FIELD.findall(topic)
    for name in names:
        found = schema.field(name)
        fits = found is not None and isinstance(found.type, Scalar | Choice) and not found.nullable
        if not fits or (sink.reads.kind == "table" and name not in schema.key):
            raise ConfigurationError(
                f"sink {sink.name!r}: {name!r} of topic {topic} is no such field of {schema.name}",
                code="sink.no-field",
                hint="a text, number or choice that is never null; of a table, a field of its key",
            )

    def name_of(row: Row) -> str:
        values = {name: str(getattr(row.record, name)) for name in names}
        for name, value in values.items():
            if value[:1] == "$" or not _fits(value, levels=False):
                raise ValueError(f"{name} is {value[:80]!r}, which is no level of a topic")
        made = _FIELD.sub(lambda found: values[found[1]], topic)
        if len(made) > _LONGEST_TOPIC:
            raise ValueError(f"the topic has {len(made)} characters, {_LONGEST_TOPIC} are allowed")
        return made

    return name_of


def _fits(text: str, *, levels: bool) -> bool:
    """Return whether a text is a topic, or one level of one."""
    sized = 0 < len(text) <= _LONGEST_TOPIC
    return sized and text.isprintable() and not set("+#{}" if levels else "+#/") & set(text)


def _client() -> str:
    return f"penstock-{secrets.token_hex(6)}"
