r"""Packets of MQTT 3.1.1 as bytes, and bytes cut into packets; no I/O.

Why not a client library: it acknowledges a message of QoS 2 when it comes, and not when it is on
the log (decision 126).
"""

import struct
from dataclasses import dataclass
from typing import Literal

from penstock.connectors.connector import AWAY
from penstock.errors import TransientError

__all__ = [
    "CONNACK",
    "DISCONNECT",
    "PINGREQ",
    "PUBACK",
    "PUBCOMP",
    "PUBLISH",
    "PUBREC",
    "PUBREL",
    "SUBACK",
    "UNSUBACK",
    "Message",
    "Packet",
    "PacketCutter",
    "acknowledge",
    "connect",
    "number_of",
    "publish",
    "read_message",
    "subscribe",
    "unsubscribe",
]

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 2, 3, 4, 5, 6, 7
SUBACK, UNSUBACK = 9, 11
PINGREQ, DISCONNECT = b"\xc0\x00", b"\xe0\x00"

_SHORT = struct.Struct(">H")
_LONGEST_TEXT = 65_535
_MOST_LENGTH_BYTES = 4
_LONGEST_HEADER = 2 + _LONGEST_TEXT + 2
"""How much of a message stands in front of its payload, at most."""

Quality = Literal[0, 1, 2]


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet: its kind, its flags, and what is in it."""

    kind: int
    flags: int
    body: bytes
    length: int
    """How long the body was; more than it is where it was cut."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it came."""

    topic: str
    payload: bytes
    quality: int
    number: int
    """The packet identifier; 0 for QoS 0."""
    retained: bool = False
    again: bool = False
    """Whether the broker says that it may have come before."""
    length: int = 0
    """How long the payload was; more than it is where it was cut."""


class PacketCutter:
    r"""Takes bytes as they come, and gives the packets that they complete.

    >>> PacketCutter(largest=100).feed(b"\x40\x02\x00\x07\xd0")
    [Packet(kind=4, flags=0, body=b'\x00\x07', length=2)]
    """

    def __init__(self, *, largest: int) -> None:
        self._most = largest + _LONGEST_HEADER
        self._data = bytearray()
        self._head: tuple[int, int] | None = None
        self._body = bytearray()
        self._left = 0

    def feed(self, data: bytes) -> list[Packet]:
        """Return the packets that are whole now; TransientError: this is no MQTT."""
        self._data += data
        found: list[Packet] = []
        while self._head is not None or self._begun():
            taken = self._data[: self._left]
            del self._data[: self._left]
            self._left -= len(taken)
            self._body += taken[: self._most - len(self._body)]
            if self._left or self._head is None:
                break
            first, length = self._head
            found.append(Packet(first >> 4, first & 15, bytes(self._body), length))
            self._head = None
            self._body.clear()
        return found

    def _begun(self) -> bool:
        """Read the beginning of a packet, if it is there."""
        length = 0
        for n, byte in enumerate(self._data[1 : 1 + _MOST_LENGTH_BYTES]):
            length |= (byte & 127) << (7 * n)
            if not byte & 128:
                self._head, self._left = (self._data[0], length), length
                del self._data[: n + 2]
                return True
        if len(self._data) > _MOST_LENGTH_BYTES:
            raise _broken("a packet has no length")
        return False


def connect(
    client: str, *, keep_alive: int, clean: bool, user: str | None, password: str | None
) -> bytes:
    """Return the first packet of a connection."""
    flags = 2 * clean | 128 * (user is not None) | 64 * (password is not None)
    body = _text("MQTT") + bytes([4, flags]) + _SHORT.pack(keep_alive) + _text(client)
    body += b"".join(_text(each) for each in (user, password) if each is not None)
    return _packet(0x10, body)


def subscribe(number: int, topics: list[str], *, quality: int) -> bytes:
    """Return what asks for the messages of topics."""
    wanted = b"".join(_text(each) + bytes([quality]) for each in topics)
    return _packet(0x82, _SHORT.pack(number) + wanted)


def unsubscribe(number: int, topics: list[str]) -> bytes:
    """Return what asks for no more messages of topics."""
    return _packet(0xA2, _SHORT.pack(number) + b"".join(map(_text, topics)))


def publish(topic: str, payload: bytes, *, quality: int, retain: bool, number: int) -> bytes:
    """Return a message."""
    named = _SHORT.pack(number) if quality else b""
    return _packet(0x30 | quality << 1 | retain, _text(topic) + named + payload)


def acknowledge(kind: int, number: int) -> bytes:
    """Return what ends a step of the exchange of a message."""
    return _packet(kind << 4 | 2 * (kind == PUBREL), _SHORT.pack(number))


def number_of(packet: Packet) -> int:
    """Return which message a packet speaks of."""
    if len(packet.body) < _SHORT.size:
        raise _broken("an acknowledgement names no message")
    number: int = _SHORT.unpack_from(packet.body)[0]
    return number


def read_message(packet: Packet) -> Message:
    """Return the message that a packet has."""
    body, quality = packet.body, packet.flags >> 1 & 3
    end = _SHORT.size + _SHORT.unpack_from(body)[0] if len(body) >= _SHORT.size else len(body) + 1
    begin = end + (_SHORT.size if quality else 0)
    if begin > len(body) or quality > 2:  # noqa: PLR2004 - there are three
        raise _broken("a message is cut off")
    topic = body[_SHORT.size : end].decode("utf-8", "backslashreplace")
    number = _SHORT.unpack_from(body, end)[0] if quality else 0
    payload, length = body[begin:], packet.length - begin
    retained, again = bool(packet.flags & 1), bool(packet.flags & 8)
    return Message(topic, payload, quality, number, retained, again, length)


def _packet(first: int, body: bytes) -> bytes:
    length, left = bytearray(), len(body)
    while True:
        left, digit = left >> 7, left & 127
        length.append(digit | 128 * (left > 0))
        if not left:
            return bytes([first]) + bytes(length) + body


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > _LONGEST_TEXT:
        raise ValueError(f"a text of {len(data)} bytes is too long for MQTT")
    return _SHORT.pack(len(data)) + data


def _broken(text: str) -> TransientError:
    return TransientError(f"the broker does not speak MQTT 3.1.1: {text}", code=AWAY)
