"""Dead letters by reason: how many, since when, and the newest with their bytes."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.console.log import LogWatcher
from penstock.cli.records import text_of
from penstock.core.graph.graph import Graph
from penstock.core.records.deadletter import DeadLetter, read_letter
from penstock.errors import ConfigurationError
from penstock.serving.desk.offers import Asked, Event

__all__ = ["READ", "Letters"]

READ = 5000
"""So many letters are read of each partition, the newest."""
_NEWEST = 20
"""So many letters of each reason are told whole."""
_MOST_REASONS = 200
_MOST_TEXT = 4096


@dataclass(slots=True)
class _Reason:
    """The letters of one part with one code."""

    part: str
    code: str
    count: int = 0
    given_back: int = 0
    first_at: str = ""
    last_at: str = ""
    newest: deque[tuple[DeadLetter, bool]] = field(default_factory=lambda: deque(maxlen=_NEWEST))

    def take(self, letter: DeadLetter, *, done: bool) -> None:
        self.count += 1
        self.given_back += done
        self.first_at = min(self.first_at or letter.at, letter.at)
        self.last_at = max(self.last_at, letter.at)
        self.newest.append((letter, done))

    def document(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "code": self.code,
            "count": self.count,
            "given_back": self.given_back,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "newest": [
                _letter(each) | {"is_given_back": done} for each, done in reversed(self.newest)
            ],
        }


class Letters:
    """Reads the dead letters of the application for as long as somebody looks."""

    def __init__(self, watcher: LogWatcher, graph: Callable[[], Graph | None]) -> None:
        self._watcher = watcher
        self._graph = graph

    def document(self, asked: Asked) -> dict[str, Any]:
        """Return the dead letters there are."""
        *_, last = self._documents(asked, follow=False)
        return last

    def stream(self, asked: Asked) -> Iterator[Event]:
        """Yield the dead letters, and again whenever there are more."""
        for document in self._documents(asked, follow=True):
            yield Event("now", document)

    def _documents(self, asked: Asked, *, follow: bool) -> Iterator[dict[str, Any]]:
        from penstock.backbone.client.logrecord import log_record
        from penstock.backbone.givingback import given_back
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import Last
        from penstock.backbone.topics.topics import Topics

        if (graph := self._graph()) is None:
            raise ConfigurationError(
                "no application is known here", code="console.no-app", hint="penstock console APP"
            )
        topic = graph.dead_letters.name
        connection = self._watcher.connection
        reasons: dict[tuple[str, str], _Reason] = {}
        ends = Topics(connection).ends(topic).values()
        # Offsets are not letters, transactions take some; so what is left out is not counted.
        more = any(high - low > READ for low, high in ends)
        done = given_back(graph, connection)
        yield _document(topic, reasons, more=more)
        batches = LogReader(connection).batches(
            topic, start=Last(READ), follow=follow, stop=asked.stop, when_trimmed="skip"
        )
        for batch in batches:
            for raw in batch:
                record = log_record(raw)
                letter = read_letter(record.key, record.value, record.headers)
                key = (letter.part, letter.code)
                if key not in reasons and len(reasons) >= _MOST_REASONS:
                    key = ("", "others")
                place = (record.partition, record.offset)
                reasons.setdefault(key, _Reason(*key)).take(letter, done=place in done)
            yield _document(topic, reasons, more=more)


def _document(topic: str, reasons: dict[tuple[str, str], _Reason], *, more: bool) -> dict[str, Any]:
    found = sorted(reasons.values(), key=lambda each: each.last_at, reverse=True)
    return {
        "topic": topic,
        "read": sum(each.count for each in found),
        "more": more,
        "reasons": [each.document() for each in found],
    }


def _letter(letter: DeadLetter) -> dict[str, Any]:
    value, key = text_of(letter.value), text_of(letter.key)
    return {
        "at": letter.at,
        "topic": letter.coordinates.topic,
        "partition": letter.coordinates.partition,
        "offset": letter.coordinates.offset,
        "reason": letter.reason,
        "key": None if letter.key is None else key[:_MOST_TEXT],
        "value": None if letter.value is None else value[:_MOST_TEXT],
        "bytes": len(letter.value or b""),
        "cut": len(value) > _MOST_TEXT,
        "failed_again": letter.given_back,
        "headers": {name: text_of(data)[:_MOST_TEXT] for name, data in letter.headers},
    }
