"""Server-sent events, from bytes: without I/O."""

from dataclasses import dataclass

__all__ = ["Event", "EventReader", "TooLargeEventError"]


class TooLargeEventError(ValueError):
    """An event has more bytes than its reader holds."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``id`` is where to go on behind it, empty where it does not say."""

    kind: str
    data: str
    id: str = ""


class EventReader:
    """Takes the bytes of a stream of events as they come, and gives the events that are whole."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._rest = b""
        self._held = 0
        self._fields: dict[str, list[str]] = {}

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that end in what came; TooLargeEventError: one has no end in sight."""
        found: list[Event] = []
        *lines, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line:
                self._take(line.decode("utf-8", "replace"))
            elif self._fields:
                found += self._event()
        if self._held + len(self._rest) > self._most:
            raise TooLargeEventError(f"an event has more than {self._most} bytes")
        return found

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        if name:  # a line that begins with a colon is a comment
            self._held += len(line)
            self._fields.setdefault(name, []).append(value.removeprefix(" "))

    def _event(self) -> list[Event]:
        fields, self._fields, self._held = self._fields, {}, 0
        if "data" not in fields:
            return []
        kind, number = fields.get("event", ["message"])[-1], fields.get("id", [""])[-1]
        return [Event(kind, "\n".join(fields["data"]), number)]
