"""The service under fault, in a process that can be killed: counts ids per key, exactly once.

``python chaosworker.py BOOTSTRAP APP`` runs it until SIGTERM and writes its reports to standard
output as JSON lines. ``FAILPOINT=name:n`` in the environment makes it kill itself at the n-th time
it comes by that point; ``STATE_DIR`` puts its state on a disk; ``ON_TRIMMED=skip`` lets it go on
without input that was deleted; ``ALSO=ring`` makes it set a timer for each event, and tell when it
goes off.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from penstock import App, State, Timer, Timers, record, services
from penstock.backbone.client.connection import Connection
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.site import Site
from penstock.core.settings.settings import (
    KafkaSettings,
    Secret,
    ServiceSettings,
    ServingSettings,
    Settings,
)
from penstock.core.status.report import PartReport, encode_report
from penstock.errors import PenstockError
from penstock.machine.places import Places
from penstock.services.state.states import States
from penstock.services.step.step import Step
from penstock.services.task.task import Task
from penstock.services.worker.assignment import Assignment

PARTITIONS = 3
RING_AFTER = timedelta(seconds=1)
FAILPOINTS = (
    "after poll",
    "after state write",
    "after produce",
    "before offsets",
    "before commit",
    "after commit",
    "in restore",
    "in revoke",
)


@record(key="key")
class Event:
    key: str
    id: int


@record(key="key")
class Seen:
    key: str
    id: int
    count: int


class Counting:
    """The application, under a name of its own."""

    def __init__(self, name: str) -> None:
        self.app = App(name)
        self.events = self.app.stream(f"{name}.events", Event, partitions=PARTITIONS)
        self.seen = self.app.stream(f"{name}.seen", Seen, partitions=PARTITIONS)

        @self.app.service(reads=self.events, writes=self.seen)
        def count(event: Event, total: State[int]) -> Iterable[Seen]:
            total.set(total.get(0) + 1)
            if event.id < 0:
                raise ValueError("poison")
            yield Seen(event.key, event.id, total.get(0))

        self.count = count
        self.rung = self.app.stream(f"{name}.rung", Seen, partitions=PARTITIONS)

        @self.app.service(reads=self.events, writes=self.rung, name="ring")
        class Ring:
            def process(self, event: Event, timers: Timers) -> None:
                timers.set(f"{event.id}", after=RING_AFTER, time="processing", payload=event.id)

            def on_timer(self, timer: Timer) -> Seen:
                return Seen(timer.key, timer.payload, 1)

    @property
    def changelog(self) -> str:
        return self.app.graph.changelog(self.count).name


def settings(state_dir: str) -> Settings:
    return Settings(
        serving=ServingSettings(
            secret=Secret("of the processes of a test")
        ),  # so that no file is made for it
        kafka=KafkaSettings(request_timeout=timedelta(seconds=15)),
        services=ServiceSettings(
            commit_interval=timedelta(milliseconds=500),
            session_timeout=timedelta(seconds=3),
            stop_timeout=timedelta(seconds=4),
            snapshot_interval=timedelta(seconds=1),
            state="disk" if state_dir else "memory",
            state_dir=state_dir,
            on_trimmed=os.environ.get("ON_TRIMMED", "stop"),
        ),
    )


class Failpoint:
    """Kills this process, as hard as it gets, at the n-th hit."""

    def __init__(self, hits: int) -> None:
        self._left = hits

    def hit(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def plant(name: str, hits: int) -> None:
    """Put a failpoint into the engine."""
    point = Failpoint(hits)
    after = {
        "after poll": (Consumer, "consume"),
        "after state write": (Step, "run"),
        "after produce": (TransactionalProducer, "send"),
        "after commit": (Task, "end_commit"),
        "in restore": (States, "apply"),
    }
    before = {
        "before offsets": (TransactionalProducer, "commit"),
        "in revoke": (Assignment, "revoked"),
    }
    if name in after:
        _wrap(*after[name], lambda call: _then(call, point.hit))
    elif name in before:
        _wrap(*before[name], lambda call: _first(point.hit, call))
    else:
        _wrap(TransactionalProducer, "begin", lambda call: _watch_commit(call, point))


def _wrap(owner: type, name: str, make: Callable[[Any], Any]) -> None:
    setattr(owner, name, make(getattr(owner, name)))


def _then(call: Any, hit: Callable[[], None]) -> Any:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        result = call(*arguments, **named)
        if result or result is None:
            hit()
        return result

    return wrapped


def _first(hit: Callable[[], None], call: Any) -> Any:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        hit()
        return call(*arguments, **named)

    return wrapped


def _watch_commit(begin: Any, point: Failpoint) -> Any:
    """Stand between the handing in of the offsets and the commit itself."""

    def wrapped(self: TransactionalProducer) -> None:
        if not isinstance(self._sender.client, _Between):
            self._sender.client = _Between(self._sender.client, point)
        begin(self)

    return wrapped


class _Between:
    def __init__(self, client: Any, point: Failpoint) -> None:
        self._client = client
        self._point = point

    def commit_transaction(self, *arguments: Any) -> Any:
        self._point.hit()
        return self._client.commit_transaction(*arguments)

    def __len__(self) -> int:
        return len(self._client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def main() -> None:
    bootstrap, name = sys.argv[1:]
    if failpoint := os.environ.get("FAILPOINT"):
        where, _, hits = failpoint.partition(":")
        plant(where, int(hits))

    def report(found: PartReport) -> None:
        os.write(sys.stdout.fileno(), encode_report(found) + b"\n")

    chosen = settings(os.environ.get("STATE_DIR", ""))
    site = Site(
        settings=chosen,
        places=Places(Path.cwd()),
        connection=Connection(
            bootstrap,
            KafkaSettings(bootstrap=bootstrap, request_timeout=chosen.kafka.request_timeout),
        ),
        stop=threading.Event(),
        report=report,
    )
    signal.signal(signal.SIGTERM, lambda *_: site.stop.set())
    try:
        names = ["count", *os.environ.get("ALSO", "").split()]
        services.run(Counting(name).app.graph, names, site)
    except PenstockError as error:
        sys.exit(f"the worker stops: {error}")


if __name__ == "__main__":
    main()
