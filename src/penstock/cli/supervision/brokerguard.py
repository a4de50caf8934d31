"""The log while parts run: an embedded broker is started again when it dies."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.core.settings import EMBEDDED, Settings
from penstock.errors import PenstockError
from penstock.machine.places import Places

if TYPE_CHECKING:
    from penstock.backbone.broker import EmbeddedBroker
    from penstock.backbone.connection import Connection

__all__ = ["Log", "guarded_log"]

_LOOK_SECONDS = 0.5
_RETRY_SECONDS = 5.0


class Log:
    """The connection, and how the broker behind it is."""

    def __init__(self, connection: "Connection", status: Callable[[], str]) -> None:
        self.connection = connection
        self._status = status

    @property
    def status(self) -> str:
        """Return where the log is and how it is, in a few words."""
        return self._status()


@contextmanager
def guarded_log(
    settings: Settings,
    places: Places,
    *,
    note: Callable[[str], None],
    starting: Callable[[str], None] | None = None,
) -> Iterator[Log]:
    """Give the log; an embedded broker is started, watched, and given up at the end.

    ``note`` hears what happens to it, and ``starting`` that it is started, if that is told apart.
    """
    from penstock.backbone.broker import EmbeddedBroker
    from penstock.backbone.connect import connected

    if settings.kafka.bootstrap != EMBEDDED:
        with connected(settings, places, note=starting or note) as connection:
            yield Log(connection, lambda: f"Kafka at {connection.bootstrap}")
        return
    (starting or note)(f"starting the broker in {places.broker}")
    with EmbeddedBroker(places.broker, settings.kafka) as broker:
        guard = _Guard(broker, note)
        guard.start()
        try:
            yield Log(broker.connection, guard.status)
        finally:
            guard.stop()


class _Guard:
    """Looks after the broker in a thread of its own: starting it again takes seconds."""

    def __init__(self, broker: "EmbeddedBroker", note: Callable[[str], None]) -> None:
        self._broker = broker
        self._note = note
        self._bootstrap = broker.bootstrap
        self._down_at: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="broker-guard", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def status(self) -> str:
        if (down_at := self._down_at) is None:
            return f"broker running at {self._bootstrap}"
        seconds = time.monotonic() - down_at
        return f"broker at {self._bootstrap} is down for {seconds:.0f}s, starting it again"

    def _run(self) -> None:
        wait = _LOOK_SECONDS
        while not self._stop.wait(wait):
            if self._broker.alive():
                wait = _LOOK_SECONDS
                continue
            self._down_at = self._down_at or time.monotonic()
            self._note(f"the broker at {self._bootstrap} died; starting it again")
            try:
                self._broker.ensure()
            except PenstockError as error:
                wait = _RETRY_SECONDS
                self._note(f"the broker did not start: {error.message}; again in {wait:g}s")
            else:
                seconds = time.monotonic() - self._down_at
                self._down_at = None
                self._note(f"the broker is back after {seconds:.1f}s, on the same ports")
