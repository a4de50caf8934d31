"""The join cases in the test driver."""

from datetime import UTC, datetime, timedelta
from typing import Any

from join_form import Declared, Feed

from penstock.core.graph.parts import Service
from penstock.testing import Driver

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DriverEngine:
    """The application of one case."""

    steps = True

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._driver = Driver(declared.graph, start_at=EPOCH)

    def feed(self, feeds: list[Feed]) -> None:
        """Feed records one by one."""
        for data, key, value, ms in feeds:
            self._driver.pipe_raw(data, key, value, at=EPOCH + timedelta(milliseconds=ms))

    def restart(self) -> None:
        """Kill everything, and begin anew from what is stored."""
        self._driver.crash()
        self._driver.restart()

    def take(self) -> list[Any]:
        """Return what came out since the last time."""
        return [
            (data, raw.key(), raw.value(), raw.headers())
            for data in self._declared.results
            for raw in self._driver.read_raw(data)
        ]

    def late(self) -> list[tuple[str, int]]:
        """Return topics and offsets of the records in the late ledger."""
        return [(each.topic, each.offset) for each in self._driver.late_records()]

    def dropped(self) -> int | None:
        """Return how many records were dropped, late ones and dead letters too."""
        services = [part for part in self._declared.graph.parts if isinstance(part, Service)]
        if len(services) > 1:
            return None  # marks of event time between two of them are counted too
        counts = [self._driver.counts(service) for service in services]
        filtered = sum(each.filtered + each.dead_lettered for each in counts)
        return filtered + len(self.late())

    def close(self) -> None:
        """Nothing is open."""
