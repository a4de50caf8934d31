"""Counts how often records go round in a cycle, and ends it where that is too often."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.topic import Partitioning
from penstock.core.wiring.rounds import ROUNDS_HEADER, feedback_bounds, is_in_cycle
from penstock.errors import DataError
from penstock.services.step.outputs import Send

__all__ = ["TOO_OFTEN", "Rounds", "rounds_of"]

TOO_OFTEN = "feedback.rounds"

_MOST_DIGITS = 9
Bury = Callable[[RawRecord, DataError, Send], None]


def rounds_of(graph: Graph, service: Service) -> "Rounds | None":
    """Return what counts the rounds of a service's records; None: it is in no cycle."""
    bounds = feedback_bounds(graph)
    return Rounds(service, bounds) if bounds and is_in_cycle(graph, service) else None


class Rounds:
    """Passes the count of a record on to all that is made from it, one more over a feedback edge.

    A record that has gone round more often than its stream allows becomes a dead letter. What a
    timer gives begins to count anew.
    """

    def __init__(self, service: Service, bounds: Mapping[str, int]) -> None:
        self._part = service.name
        self._bounds = bounds
        self._written = {data.topic.name for data in service.writes}
        self._back = {topic for topic, _ in service.rounds}
        self._current = 0

    def follow(
        self, topic: str, records: Iterable[RawRecord], send: Send, bury: Bury
    ) -> tuple[Iterator[RawRecord], Send]:
        """Return the records that go on, and what sends what is made from them, one by one."""
        return self._kept(topic, records, send, bury), self.sending(send)

    def refused(self, topic: str, raw: RawRecord) -> DataError | None:
        """Return why a record goes on no more; None: it does."""
        most, count = self._bounds.get(topic), _count(raw)
        return None if most is None or count <= most else self._too_often(topic, count, most)

    def at(self, raw: RawRecord | None) -> None:
        """Hear which record is sent for from now on; None: a timer."""
        self._current = 0 if raw is None else _count(raw)

    def _kept(
        self, topic: str, records: Iterable[RawRecord], send: Send, bury: Bury
    ) -> Iterator[RawRecord]:
        for raw in records:
            if not raw.headers():  # it has not gone round, as most have not
                self._current = 0
            elif (error := self.refused(topic, raw)) is not None:
                bury(raw, error, send)
                continue
            else:
                self._current = _count(raw)
            yield raw
        self._current = 0

    def sending(self, send: Send) -> Send:
        """Return what sends with the count of the record that is current."""
        written, back = self._written, self._back

        def send_on(
            topic: str,
            /,
            *,
            key: bytes | None,
            value: bytes | None,
            headers: Sequence[tuple[str, bytes | None]] = (),
            partition: int | Partitioning | None = None,
        ) -> None:
            if topic in written and (count := self._current + (topic in back)):
                headers = (*headers, (ROUNDS_HEADER, str(count).encode()))
            send(topic, key=key, value=value, headers=headers, partition=partition)

        return send_on

    def _too_often(self, topic: str, count: int, most: int) -> DataError:
        return DataError(
            f"it has gone round {count} times to {topic}, which allows {most}",
            code=TOO_OFTEN,
            hint="end the cycle in the service, or allow more: feedback(..., most=...)",
        )


def _count(raw: RawRecord) -> int:
    """Return how often a record went round, whoever wrote the header."""
    for name, value in raw.headers() or ():
        if name == ROUNDS_HEADER and value and len(value) <= _MOST_DIGITS and value.isdigit():
            return int(value)
    return 0
