"""Which messages are on the log, and what the broker is told of them when; no I/O.

A message of QoS 2 is exchanged in four steps. Its number is **held** from the commit that has its
record until a commit that has its number no more:

1. PUBLISH: the record and the number are committed together. A message whose number is held is one
   that came before: no record is made of it.
2. PUBREC, when that is committed.
3. PUBREL: the number is left out of the next position.
4. PUBCOMP, when that is committed; before it, the broker gives the number to no other message.

So whenever the process is killed, the broker repeats a step whose outcome is known.
"""

from collections.abc import Collection, Iterable

from penstock.connectors.mqtt.packets import PUBACK, PUBCOMP, PUBREC, Message

__all__ = ["Inbox"]

Answer = tuple[int, int]
"""The kind of an acknowledgement, and the number of the message."""


class Inbox:
    """What has come over one connection, from the numbers on that a position holds."""

    def __init__(self, held: Iterable[int]) -> None:
        self._held = set(held)
        self._given: list[Message] = []
        self._coming: set[int] = set()
        """The numbers of those of QoS 2."""
        self._released: set[int] = set()
        """Numbers whose PUBREL has come, and whose PUBCOMP was not sent."""
        self._left_out: frozenset[int] = frozenset()
        """Those of them that the last position leaves out."""
        self._owed: list[Answer] = []

    def settle(self) -> list[Answer]:
        """Return what the broker is told: all that was given, and the last position, is kept."""
        owed, self._owed = self._owed, []
        for message in self._given:
            if message.quality == 1:
                owed.append((PUBACK, message.number))
            elif message.quality:
                self._held.add(message.number)
                owed.append((PUBREC, message.number))
        self._given.clear()
        self._coming.clear()
        owed += [(PUBCOMP, number) for number in sorted(self._left_out)]
        self._held -= self._left_out
        self._released -= self._left_out
        self._left_out = frozenset()
        return owed

    def take(self, message: Message) -> bool:
        """Take a message; return whether it is to be a record, and not one already."""
        if message.quality > 1:
            if message.again and message.number in self._held:
                self._owed.append((PUBREC, message.number))
                return False
            if message.number in self._coming:  # some brokers repeat over the same connection
                return False
            self._coming.add(message.number)
        self._given.append(message)
        return True

    def leave_out(self, message: Message) -> None:
        """Take note of a message that no record is made of."""
        if message.quality:
            self._owed.append((PUBACK if message.quality == 1 else PUBREC, message.number))

    def release(self, number: int) -> None:
        """Take note that the broker has forgotten a message, but for its number."""
        if number in self._held:
            self._released.add(number)
        else:
            self._owed.append((PUBCOMP, number))

    @property
    def moved(self) -> bool:
        """Whether a position has to be kept before the broker can be told something."""
        return bool(self._released)

    def held_after(self, count: int) -> Collection[int]:
        """Return the numbers that the position behind so many of the given messages holds."""
        self._left_out = frozenset(self._released)
        given = {each.number for each in self._given[:count] if each.quality > 1}
        return sorted((self._held - self._released) | given)
