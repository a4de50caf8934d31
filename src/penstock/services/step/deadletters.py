"""Where what a service cannot use goes: the dead-letter topic, with reason and place."""

from collections.abc import Callable, Sequence
from datetime import datetime

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.records.deadletter import TIMER, Coordinates, dead_letter_headers
from penstock.errors import PenstockError
from penstock.services.state.timing.queue import Due, timer_json
from penstock.services.step.outputs import Send
from penstock.services.usererrors import coordinates_of

__all__ = ["DeadLetters"]


class DeadLetters:
    """Buries records, and timers whose handling failed; ``last`` is the last one in words."""

    def __init__(self, graph: Graph, service: Service, *, clock: Callable[[], datetime]) -> None:
        self.last = ""
        self._topic = graph.dead_letters.name
        self._part = service.name
        self._clock = clock

    def bury(self, raw: RawRecord, error: PenstockError, send: Send) -> None:
        """Send a record as it came, with its reason and place."""
        place = coordinates_of(raw)
        headers = self._headers(error, place, raw.headers() or ())
        send(self._topic, key=raw.key(), value=raw.value(), headers=headers)

    def bury_timer(self, due: Due, error: PenstockError, place: Coordinates, send: Send) -> None:
        """Send a timer as JSON under its key."""
        headers = self._headers(error, place, [(TIMER, due.name.encode())])
        send(self._topic, key=due.key, value=timer_json(due), headers=headers)

    def _headers(
        self,
        error: PenstockError,
        place: Coordinates,
        own: Sequence[tuple[str, bytes | None]],
    ) -> list[tuple[str, bytes | None]]:
        self.last = f"{place}: {error.message} [{error.code}]"
        return [*own, *dead_letter_headers(error, place, part=self._part, at=self._clock())]
