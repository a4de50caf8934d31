"""Topics of MQTT as a source: a session that the broker keeps, acknowledged from the log."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.connectors.connector import WHOLE, Item, Position
from penstock.connectors.mqtt.inbox import Inbox
from penstock.connectors.mqtt.packets import (
    PUBLISH,
    PUBREL,
    SUBACK,
    Message,
    Packet,
    acknowledge,
    number_of,
    read_message,
    subscribe,
    unsubscribe,
)
from penstock.connectors.mqtt.wire import Address, Wire, read_address
from penstock.connectors.options import ConnectorOptions
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, DataError, Problem

__all__ = ["MqttTopics", "mqtt_topics"]

_AT_ONCE = 1_000
_LARGEST = 1 << 20
_MOST_TOPICS = 100
_LONGEST_TOPIC = 1_000
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_ASKING, _LEAVING = 1, 2
"""The numbers of the two requests that a connection begins with."""
_REFUSED = 0x80


class MqttItem(Item, frozen=True):
    """A message of a topic."""

    wrong: DataError | None = None

    def fault(self) -> DataError | None:
        """Return why it cannot become a record."""
        return self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttTopics:
    """Topics of MQTT; :func:`mqtt_topics` makes it."""

    topics: tuple[str, ...]
    client: str
    quality: int
    whole: bool
    largest: int
    address: Address
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    interactive: Literal[False] = field(default=False, init=False)

    def describe(self) -> str:
        """Return what it reads, for people."""
        return f"topic{'s'[: len(self.topics) > 1]} {', '.join(self.topics)} of MQTT"

    @contextmanager
    def attach(self) -> Iterator["Topics"]:
        """Return what is read, until something fails."""
        yield Topics(self)

    def open(self, split: str, position: Position | None) -> "TopicsReading":
        """Read without being attached; see :meth:`attach`."""
        return TopicsReading(self, split, position)

    def attempt(self, part: Source | Sink) -> str:
        """Connect as somebody else, who leaves the session alone."""
        wire = self.address.open(f"{self.client}-check", clean=True, largest=self.largest)
        wire.close()
        return f"it answers {part.name}"


class Topics:
    """Topics that are read over one connection."""

    grows = True

    def __init__(self, spec: MqttTopics) -> None:
        self._spec = spec
        self._reading: TopicsReading | None = None

    def splits(self) -> Sequence[str]:
        """Return the only split: the broker has one queue for a client."""
        return (WHOLE,)

    def open(self, split: str, position: Position | None) -> "TopicsReading":
        """Go on with the session."""
        self._reading = TopicsReading(self._spec, split, position)
        return self._reading

    def complaint(self) -> str:
        """Return what was lost, if anything."""
        return self._reading.complaint if self._reading else ""

    def facts(self) -> Mapping[str, str]:
        """Return nothing: the counts say it."""
        return {}


class TopicsReading:
    """One connection, from what the broker was told of on."""

    ended = False

    def __init__(self, spec: MqttTopics, split: str, position: Position | None) -> None:
        held, known = _read_position(split, position)
        self._spec = spec
        self._agreed = dict.fromkeys(spec.topics, spec.quality)
        self._wire: Wire = spec.address.open(spec.client, clean=False, largest=spec.largest)
        self.complaint = ""
        self._lost = position is not None and not self._wire.knows_session
        if self._lost:
            self.complaint = (
                "the broker had forgotten the session: messages that were sent while"
                " nobody listened are lost"
            )
        if not self._wire.knows_session:
            held, known = [], {}
        self._inbox = Inbox(held)
        self._count = self._base = 0
        self._asked = False
        self.granted = False
        """Whether the broker has answered: what it owes of former connections has come then."""
        self._resumes, self._new = known == self._agreed, known != self._agreed
        self._gone = [each for each in known if each not in self._agreed]

    def read(self) -> list[MqttItem]:
        """Return the next messages; what was returned before is on the log now."""
        owed = self._inbox.settle()
        self._wire.send(b"".join(acknowledge(kind, number) for kind, number in owed))
        self._base = self._count
        if self._lost and self._new:
            return []  # until it is kept that the old numbers say nothing any more
        if not self._asked:
            self._ask()
        items: list[MqttItem] = []
        while len(items) < _AT_ONCE and (packets := self._wire.receive()):
            items += [item for packet in packets if (item := self._take(packet)) is not None]
        return items

    def position_after(self, item: Item) -> Position:
        """Return which messages the broker may send again although they are on the log."""
        return self._position(item.at - self._base + 1)

    def moved(self) -> Position | None:
        """Return a position that has to be kept although no message came; None: none has."""
        if not self._inbox.moved and not self._new:
            return None
        return self._position(0)

    def close(self) -> None:
        """Leave; the broker keeps the session."""
        self._wire.close()

    def _position(self, count: int) -> Position:
        self._new = False
        return {"held": list(self._inbox.held_after(count)), "topics": self._agreed}

    def _ask(self) -> None:
        """Ask for the topics, once for each connection: it does no harm to ask again."""
        self._asked = True
        if self._gone:
            self._wire.send(unsubscribe(_LEAVING, self._gone))
        self._wire.send(subscribe(_ASKING, list(self._agreed), quality=self._spec.quality))

    def _take(self, packet: Packet) -> MqttItem | None:
        if packet.kind == PUBLISH:
            message = read_message(packet)
            if message.retained and self._resumes:
                # It came when the topic was asked for first; changes since then are no such ones.
                self._inbox.leave_out(message)
                return None
            return self._item(message) if self._inbox.take(message) else None
        if packet.kind == PUBREL:
            self._inbox.release(number_of(packet))
        elif packet.kind == SUBACK:
            self._look_at(packet.body[2:])
        return None

    def _item(self, message: Message) -> MqttItem:
        self._count += 1
        at = self._count - 1
        if message.length > len(message.payload) or message.length > self._spec.largest:
            kept = message.payload[: self._spec.largest]
            text = f"the message has {message.length} bytes, {self._spec.largest} are allowed"
            return MqttItem(kept, at, DataError(text, code="data.message-too-long"))
        if not self._spec.whole:
            return MqttItem(message.payload, at)
        try:
            payload = message.payload.decode()
        except UnicodeDecodeError as error:
            text = f"the message of {message.topic} is not UTF-8: {error}"
            return MqttItem(message.payload, at, DataError(text, code="data.not-utf8"))
        content = {"topic": message.topic, "payload": payload, "retained": message.retained}
        return MqttItem(content, at)

    def _look_at(self, granted: bytes) -> None:
        self.granted = True
        if any(each == _REFUSED for each in granted):
            raise ConfigurationError(
                f"the broker refuses {', '.join(self._spec.topics)}",
                code="connector.refused",
                hint="the user may not read these topics, or one is no filter",
            )
        if any(each < self._spec.quality for each in granted):
            self.complaint = f"the broker grants QoS {min(granted)} at most"


def mqtt_topics(
    topics: str | tuple[str, ...],
    *,
    client: str,
    address: str,
    user: str | None = None,
    password: str | None = None,
    authority: str | None = None,
    qos: Literal[0, 1, 2] = 2,
    whole: bool = False,
    max_message: str | int = _LARGEST,
    timeout: str | timedelta = "10s",
) -> MqttTopics:
    """Read the messages of topics of MQTT, exactly once where they are sent with QoS 2.

    The broker keeps a session for the client, with the messages that come while nobody listens. A
    message is acknowledged when its record is on the log. Messages of QoS 1 are there at least
    once, those of QoS 0 once or never. It speaks MQTT 3.1.1, over TCP or TLS.

    Args:
        topics: A filter of topics, ``"plant/+/temperature"`` or ``"plant/#"``, or several in a
            tuple. They should not overlap: some brokers send a message once for each.
        client: The name of the client, under which the broker keeps the session. Nobody else may
            use it.
        address: Where the broker is, without a password: ``mqtts://broker.example:8883`` (TLS) or
            ``mqtt://``. Or a reference to an address.
        user: Who connects.
        password: Where the password is: ``env:NAME`` or ``file:PATH``.
        authority: With TLS: the file of the authority that signed the broker's certificate, in
            PEM; None: those that the system knows.
        qos: The QoS that is asked for; a message comes with this one or that of its sender,
            whichever is less.
        whole: Whether an item is a dict of topic, payload and retained, rather than the payload.
        max_message: How long a message may be; of a longer one the first bytes are kept.
        timeout: How long connecting may take, and each answer.

    Examples:
        >>> heat = mqtt_topics("plant/+/heat", client="penstock-heat", address="mqtt://broker")
        >>> app.source("heat", heat, into=readings).summary
        'source, topic plant/+/heat of MQTT'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("mqtt_topics", problems)
    name: Any = client
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        options.wrong("client", f"{name!r} is no name", 'client="penstock-plant"')
        name = "unknown"
    where = {"user": user, "password": password, "authority": authority, "timeout": timeout}
    return MqttTopics(
        topics=_filters(options, topics),
        client=name,
        quality=options.whole("qos", qos, 2, least=0, most=2),
        whole=options.flag("whole", whole),
        largest=options.size("max_message", max_message, _LARGEST),
        address=read_address(options, address, **where),
        problems=tuple(problems),
    )


def _filters(options: ConnectorOptions, given: Any) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else given
    many = isinstance(found, tuple | list) and 0 < len(found) <= _MOST_TOPICS
    if many and all(isinstance(each, str) and _is_filter(each) for each in found):
        return tuple(dict.fromkeys(found))
    options.wrong("topics", f"{given!r} is no filter of topics", 'mqtt_topics("plant/+/heat")')
    return ("unknown",)


def _is_filter(text: str) -> bool:
    """Return whether a text is a filter: + is a whole level, # a whole level and the last one."""
    levels = text.split("/")
    plain = all(each in ("+", "#") or not set("+#") & set(each) for each in levels)
    sized = 0 < len(text) <= _LONGEST_TOPIC
    return sized and text.isprintable() and plain and "#" not in levels[:-1]


def _read_position(split: str, position: Position | None) -> tuple[list[int], dict[str, int]]:
    match position:
        case None if split == WHOLE:
            return [], {}
        case {"held": list(held), "topics": dict(topics)} if split == WHOLE:
            return held, topics
    raise ConfigurationError(
        f"{position!r} is no position of topics of MQTT",
        code="source.position",
        hint="another connector wrote it: give the source another name",
    )
