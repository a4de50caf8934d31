"""Bytes of a connection cut into messages, as RFC 6587 says: by counted octets, or by lines.

Which of the two a sender uses shows at the beginning of each message: a number, or anything else.
Memory is bounded whatever is sent: of a message that is too long the beginning is kept.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any

from penstock.connectors.connector import Item
from penstock.connectors.syslog.message import read_message
from penstock.errors import DataError

__all__ = ["FrameCutter", "Message", "Reader"]

_COUNT = re.compile(rb"([1-9][0-9]{0,8}) ")
_BEGUN_COUNT = re.compile(rb"[1-9][0-9]{0,8}\Z")
_ENDS = b"\n\r\0"


class Message(Item, frozen=True, gc=False):
    """A message as a dict of what it says; or, where it is none, its bytes."""

    wrong: DataError | None = None

    def fault(self) -> DataError | None:
        """Return why it cannot become a record."""
        return self.wrong


class Reader:
    """Makes items of messages; it knows what they do not say: when and from where they came."""

    def __init__(self, *, largest: int, zone: tzinfo, now: Callable[[], datetime]) -> None:
        self.largest = largest
        self._zone, self._now = zone, now

    def item(self, data: bytes, *, at: int, sender: str, length: int | None = None) -> Message:
        """Return a message; ``length``: how many bytes it had, where not all of them are here."""
        if length is not None and length > len(data):
            text = f"the message has {length} bytes, {len(data)} are allowed and kept here"
            return Message(data, at, DataError(text, code="data.message-too-long"))
        now = self._now().astimezone(UTC)
        try:
            said: dict[str, Any] = read_message(data, received_at=now, zone=self._zone)
        except DataError as error:
            return Message(data, at, error)
        return Message(said | {"received_at": now, "sender": sender}, at)


class FrameCutter:
    r"""Takes bytes as they come from one sender, and gives the messages that they complete.

    >>> reader = Reader(largest=100, zone=UTC, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    >>> found = FrameCutter(reader, sender="::1").feed(b"5 <1>ab<2>cd\n4 <3>")
    >>> [message.content["text"] for message in found]
    ['ab', 'cd']
    """

    __slots__ = ("_at", "_begun", "_count", "_held", "_left", "_length", "_reader", "_sender")

    def __init__(self, reader: Reader, *, sender: str) -> None:
        self._reader, self._sender = reader, sender
        self._count = b""
        """The beginning of a number, the rest of which has not come."""
        self._left = 0
        """How many bytes of a counted message have not come."""
        self._begun = False
        """Whether a message that ends with its line has begun."""
        self._held = bytearray()
        self._length = 0
        self._at = 0

    @property
    def pending(self) -> int:
        """How many bytes have come of a message whose end has not; at least one if it has begun."""
        begun = bool(self._left or self._begun)
        return len(self._count) + self._length + begun

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that these bytes complete, in order."""
        data, self._count = self._count + data, b""
        found: list[Message] = []
        at = 0
        while at < len(data):
            if self._left:
                at = self._take_counted(data, at, found)
            elif self._begun:
                at = self._take_line(data, at, found)
            else:
                at = self._begin(data, at)
        return found

    def finish(self) -> Message | None:
        """Return what has come of a message without an end, and forget it; None: nothing."""
        data, length = bytes(self._held) + self._count, self._length + len(self._count)
        begun, self._count = self.pending, b""
        self._reset()
        if not begun:
            return None
        text = f"the message ends after {length} bytes, before its end"
        return Message(data, self._next(), DataError(text, code="data.half-message"))

    def _begin(self, data: bytes, at: int) -> int:
        """Find out how the next message is cut; return where to go on."""
        if count := _COUNT.match(data, at):
            self._left = int(count[1])
            return count.end()
        if _BEGUN_COUNT.match(data, at):
            self._count = data[at:]
            return len(data)
        self._begun = True
        return at

    def _take_counted(self, data: bytes, at: int, found: list[Message]) -> int:
        end = min(at + self._left, len(data))
        self._hold(data[at:end])
        self._left -= end - at
        if not self._left:
            self._complete(found)
        return end

    def _take_line(self, data: bytes, at: int, found: list[Message]) -> int:
        end = data.find(b"\n", at)
        if end < 0:
            self._hold(data[at:])
            return len(data)
        self._hold(data[at:end])
        self._complete(found)
        return end + 1

    def _hold(self, piece: bytes) -> None:
        room = self._reader.largest - len(self._held)
        if room > 0:
            self._held += piece[:room]
        self._length += len(piece)

    def _complete(self, found: list[Message]) -> None:
        data, length = bytes(self._held), self._length
        self._reset()
        if length > len(data):
            found.append(
                self._reader.item(data, at=self._next(), sender=self._sender, length=length)
            )
        elif message := data.rstrip(_ENDS):  # some count the end of the line, some end with NUL
            found.append(self._reader.item(message, at=self._next(), sender=self._sender))

    def _reset(self) -> None:
        self._held.clear()
        self._length, self._left, self._begun = 0, 0, False

    def _next(self) -> int:
        self._at += 1
        return self._at - 1
