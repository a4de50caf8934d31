"""The log as it is: topics, their ends and rates, groups and how far they are behind."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.status.history import History, Series
from penstock.errors import TransientError

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection
    from penstock.backbone.client.logrecord import Partition
    from penstock.backbone.log.groups import GroupState
    from penstock.backbone.topics.topics import TopicState

__all__ = ["LogLook", "LogWatcher", "Reader"]

_LEAST_SECONDS = 2.0
"""A look is used for so long."""
_SHARE = 5
"""Looking takes at most one of so many seconds, also where there are many topics."""
_HISTORY_PARTITIONS = 1000
"""So many partitions of groups have a history of their lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A group that has committed offsets in a topic."""

    group: str
    lags: Mapping[int, int]

    @property
    def lag(self) -> int:
        """How far it is behind in all partitions."""
        return sum(self.lags.values())


@dataclass(frozen=True, kw_only=True)
class LogLook:
    """The log at one moment."""

    at: float
    took_seconds: float
    topics: Mapping[str, "TopicState"]
    ends: Mapping[str, Mapping[int, tuple[int, int]]]
    rates: Mapping[str, Mapping[int, float]]
    """Offsets per second since the look before; empty: there was none."""
    groups: Mapping[str, "GroupState"]
    committed: Mapping[str, Mapping["Partition", int]] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Bytes on disk, where the broker is on this machine and Penstock's own."""

    def readers(self, topic: str) -> Sequence[Reader]:
        """Return who reads a topic, and how far each is behind."""
        return self._readers.get(topic, ())

    @cached_property
    def _readers(self) -> dict[str, list[Reader]]:
        """The readers of each topic: made once, there may be many of both."""
        found: dict[str, list[Reader]] = {}
        for group, offsets in sorted(self.committed.items()):
            lags: dict[str, dict[int, int]] = {}
            for (topic, number), offset in sorted(offsets.items()):
                if (ends := self.ends.get(topic, {}).get(number)) is not None:
                    lags.setdefault(topic, {})[number] = max(0, ends[1] - offset)
            for topic, by_partition in lags.items():
                found.setdefault(topic, []).append(Reader(group=group, lags=by_partition))
        return found

    def lags(self, group: str) -> dict["Partition", tuple[int, int]]:
        """Return the committed offset and the end of each partition that a group reads."""
        return {
            (topic, number): (offset, self.ends[topic][number][1])
            for (topic, number), offset in sorted(self.committed.get(group, {}).items())
            if number in self.ends.get(topic, {})
        }


class LogWatcher:
    """Looks at the log when it is asked, and not more often than it should; from any thread.

    ``directory`` is that of the embedded broker, where there is one: it knows sizes in bytes.
    """

    def __init__(
        self, connection: Callable[[], "Connection | None"], *, directory: Path | None = None
    ) -> None:
        self._connection = connection
        self._directory = directory
        self._lock = threading.Lock()
        self._last: LogLook | None = None
        self.history = History()

    @property
    def is_own(self) -> bool:
        """Whether Penstock itself keeps the broker alive."""
        return self._directory is not None

    @property
    def connection(self) -> "Connection":
        """The connection; TransientError while there is none."""
        if (found := self._connection()) is None:
            raise TransientError("the log is not there yet: it starts", code="console.no-log")
        return found

    def look(self) -> LogLook:
        """Return how the log is now, or was a moment ago."""
        with self._lock:
            last, now = self._last, time.time()
            if last is None or now - last.at >= max(_LEAST_SECONDS, last.took_seconds * _SHARE):
                self._last = last = self._take(now, last)
                self._remember(last)
            return last

    def schemas(self, topic: str) -> list[dict[str, Any]]:
        """Return the versions of what a topic holds, the oldest first."""
        from penstock.backbone.declare import schema_versions
        from penstock.backbone.schemas import SchemaRegistry

        found = schema_versions(SchemaRegistry(self.connection).get(topic))
        return [version.to_json() for version in found]

    def lag_history(self, group: str, topic: str, number: int) -> list[float | None]:
        """Return the lag of a group in a partition at each look that is remembered."""
        with self._lock:
            return self.history.values(Series(group, f"{topic}[{number}]"))

    def pause(self) -> float:
        """Return how long to wait until there may be another look."""
        took = self._last.took_seconds if self._last else 0.0
        return max(_LEAST_SECONDS, took * _SHARE)

    def _take(self, now: float, last: LogLook | None) -> LogLook:
        from penstock.backbone.broker.sizes import sizes_on_disk
        from penstock.backbone.log.groups import Groups
        from penstock.backbone.topics.topics import Topics

        connection = self.connection
        topics = {each.name: each for each in Topics(connection).list()}
        ends = Topics(connection).all_ends(topics.values())
        groups = Groups(connection)
        states = {each.name: each for each in groups.list() if not each.position}
        return LogLook(
            at=now,
            took_seconds=time.time() - now,
            topics=topics,
            ends=ends,
            rates=_rates(last, ends, now) if last else {},
            groups=states,
            committed={name: groups.committed(name) for name in states},
            sizes=sizes_on_disk(self._directory) if self._directory else {},
        )

    def _remember(self, look: LogLook) -> None:
        values = {
            Series(group, f"{topic}[{number}]"): float(max(0, end - offset))
            for group in look.groups
            for (topic, number), (offset, end) in look.lags(group).items()
        }
        self.history.take(look.at, dict(list(values.items())[:_HISTORY_PARTITIONS]))


def _rates(
    last: LogLook, ends: Mapping[str, Mapping[int, tuple[int, int]]], now: float
) -> dict[str, dict[int, float]]:
    seconds = max(now - last.at, 0.001)
    return {
        topic: {
            number: max(0.0, (high - last.ends[topic][number][1]) / seconds)
            for number, (_, high) in partitions.items()
            if number in last.ends[topic]
        }
        for topic, partitions in ends.items()
        if topic in last.ends
    }
