"""``penstock dev --watch``: the newest records of a stream, or the top of a table, live."""

import heapq
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.cli.records import Shown, by_type
from penstock.core.graph.data import Lake, OnLog, Table
from penstock.core.graph.graph import Graph
from penstock.core.hints import did_you_mean
from penstock.errors import ConfigurationError, PenstockError

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection

__all__ = ["Latest", "Watched", "Watcher", "find_watched"]

_SHOWN = 10
_KEYS_LIMIT = 200_000
_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What to watch; ``field`` orders a table."""

    data: OnLog
    field: str | None


def find_watched(graph: Graph, text: str) -> Watched:
    """Return what ``NAME[:FIELD]`` stands for; ConfigurationError where it is nothing."""
    name, _, field = text.partition(":")
    data = graph.find(name)
    if data is None or isinstance(data, Lake):
        known = [each.name for each in graph.on_log]
        what = "is in the lake, not on the log" if data else "is not a stream or table"
        raise ConfigurationError(
            f"{name!r} {what} of {graph.app}",
            code="dev.watch",
            hint=did_you_mean(name, known),
        )
    if field and not isinstance(data, Table):
        raise ConfigurationError(
            f"{name!r} is a stream: its records are shown as they come, not ordered by {field!r}",
            code="dev.watch",
            hint=f"--watch {name}",
        )
    fields = [each.name for each in data.record.schema.fields]
    if field and field not in fields:
        raise ConfigurationError(
            f"{data.record.name} has no field {field!r}",
            code="dev.watch",
            hint=did_you_mean(field, fields),
        )
    return Watched(data, field or None)


class Latest:
    """The records to show: the newest of a stream, or the top ones of a table.

    A table's keys are all held, up to a limit; ``full`` says that it was reached.
    """

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.full = False
        self._recent: deque[Any] = deque(maxlen=_SHOWN)
        self._by_key: dict[bytes, Any] = {}

    def add(self, shown: Shown) -> None:
        """Take note of a record; what does not decode is not shown."""
        if shown.problem:
            return
        if not isinstance(self.watched.data, Table):
            self._recent.append(shown.value)
            return
        key = shown.record.key or b""
        before = self._by_key.pop(key, None)
        if shown.value is None:
            return
        if before is None and len(self._by_key) >= _KEYS_LIMIT:
            self.full = True
            return
        # Taken out and put in again: the order of the keys is the order of their changes.
        self._by_key[key] = shown.value

    def rows(self) -> list[dict[str, Any]]:
        """Return the records to show, the most important first."""
        if not isinstance(self.watched.data, Table):
            return list(reversed(self._recent))
        field = self.watched.field
        values = list(self._by_key.values())
        if field is None:
            return values[: -_SHOWN - 1 : -1]
        ranked = (value for value in values if value.get(field) is not None)
        return heapq.nlargest(_SHOWN, ranked, key=lambda value: value[field])


class Watcher:
    """Reads what is watched in a thread of its own, from the moment it is entered."""

    def __init__(self, watched: Watched, connection: "Connection") -> None:
        self._connection = connection
        self._watched = watched
        self._latest = Latest(watched)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    @property
    def name(self) -> str:
        """Return the name of what is watched."""
        return self._watched.data.name

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self) -> None:
        """End reading."""
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def rows(self) -> list[dict[str, Any]]:
        """Return what is to be shown now."""
        with self._lock:
            return self._latest.rows()

    def _run(self) -> None:
        from penstock.backbone.log.reader import LogReader
        from penstock.backbone.topics.range import EARLIEST, Last, Start

        decode: Callable[..., Shown] = by_type(self._watched.data)
        start: Start = EARLIEST if isinstance(self._watched.data, Table) else Last(_SHOWN)
        while not self._stop.is_set():
            with self._lock:
                self._latest = Latest(self._watched)
            try:
                for record in LogReader(self._connection).read(
                    self._watched.data.topic.name,
                    start=start,
                    follow=True,
                    stop=self._stop,
                    when_trimmed="skip",
                ):
                    shown = decode(record)
                    with self._lock:
                        self._latest.add(shown)
            except (PenstockError, OSError):
                # The broker may be away: the status says so, and reading begins again.
                self._stop.wait(_RETRY_SECONDS)
