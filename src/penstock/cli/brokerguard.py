"""Guard the embedded broker while parts run: start it again when it dies."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from penstock.core.settings.settings import EMBEDDED, Settings
from penstock.errors import PenstockError
from penstock.machine.places import Places

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection

__all__ = ["Guard", "Guarded", "Log", "guarded_log"]

_LOOK = timedelta(seconds=0.5)
_RETRY = timedelta(seconds=5)


class Log:
    """The connection, and the state of its broker."""

    def __init__(self, connection: "Connection", status: Callable[[], str]) -> None:
        self.connection = connection
        self._status = status

    @property
    def status(self) -> str:
        """Return the address and state of the broker, in a few words."""
        return self._status()


@contextmanager
def guarded_log(
    settings: Settings,
    places: Places,
    *,
    note: Callable[[str], None],
    starting: Callable[[str], None] | None = None,
) -> Iterator[Log]:
    """Give the connection; an embedded broker is started, supervised, and released at the end.

    ``note`` hears what happens to it, and ``starting`` that it is started, if that is told apart.
    """
    from penstock.backbone.broker.broker import EmbeddedBroker
    from penstock.backbone.connect import connected

    if settings.kafka.bootstrap != EMBEDDED:
        with connected(settings, places, note=starting or note) as connection:
            yield Log(connection, lambda: f"Kafka at {connection.bootstrap}")
        return
    (starting or note)(f"starting the broker in {places.broker}")
    with EmbeddedBroker(places.broker, settings.kafka) as broker:
        guard = Guard(broker, note)
        guard.start()
        try:
            yield Log(broker.connection, guard.status)
        finally:
            guard.stop()


class Guarded(Protocol):
    """What is supervised."""

    @property
    def bootstrap(self) -> str:
        """Return where it is."""

    def alive(self) -> bool:
        """Return whether it runs."""

    def ensure(self) -> None:
        """Start it again."""


class Guard:
    """Supervise the broker in a separate thread, because a restart takes seconds.

    Every failure is reported and retried, even a lack of file descriptors.
    """

    def __init__(
        self,
        broker: Guarded,
        note: Callable[[str], None],
        *,
        look: timedelta = _LOOK,
        retry: timedelta = _RETRY,
    ) -> None:
        self._look_seconds, self._retry_seconds = look.total_seconds(), retry.total_seconds()
        self._broker = broker
        self._note = note
        self._bootstrap = broker.bootstrap
        self._down_at: float | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="broker-guard", daemon=True)

    def start(self) -> None:
        """Start supervising."""
        self._thread.start()

    def stop(self) -> None:
        """Stop supervising."""
        self._stop.set()
        self._thread.join()

    def status(self) -> str:
        """Return its state, in a few words."""
        if (down_at := self._down_at) is None:
            return f"broker running at {self._bootstrap}"
        seconds = time.monotonic() - down_at
        return f"broker at {self._bootstrap} has been down for {seconds:.0f}s; starting it again"

    def _run(self) -> None:
        wait = self._look_seconds
        while not self._stop.wait(wait):
            try:
                self._look()
                wait = self._look_seconds
            except (PenstockError, OSError) as error:
                wait = self._retry_seconds
                said = error.message if isinstance(error, PenstockError) else str(error)
                what = "is not supervised" if self._down_at is None else "did not start"
                self._note(f"the broker {what}: {said}; next attempt in {wait:g}s")

    def _look(self) -> None:
        if self._broker.alive():
            self._down_at = None
            return
        self._down_at = self._down_at or time.monotonic()
        self._note(f"the broker at {self._bootstrap} died; starting it again")
        self._broker.ensure()
        seconds = time.monotonic() - self._down_at
        self._down_at = None
        self._note(f"the broker is back after {seconds:.1f}s, on the same ports")
