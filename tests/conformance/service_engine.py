"""The pane cases as services on a real broker: topics, transactions, changelogs.

Every run (one stream of one case, in one bundling) is an application of its own. Each step is one
commit, and each begins with a new task that is restored from the changelog, or from a disk and what
the disk lacks.
"""

import atexit
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from pane_match import PaneRow
from pane_rows import row

from penstock import App, EventTime, record
from penstock.aggregates import collect
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.declare import declare_application
from penstock.backbone.log.positions import memberless
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.core.graph.parts import Service
from penstock.core.panes.machine import Windowing
from penstock.core.panes.times import END
from penstock.core.records.codec import JsonCodec
from penstock.core.rules.check import verified
from penstock.core.settings.settings import ServiceSettings
from penstock.services.state.shelf import Shelf, open_shelf
from penstock.services.step.panes import PaneStep
from penstock.services.task.delivery import ExactlyOnce
from penstock.services.task.task import Task
from penstock.testing.broker import temporary_broker
from penstock.windows import fixed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DISORDER = timedelta(days=1)
"""So much that the elements themselves never move the watermark; the case does."""


@record(key="key", time="at")
class Element:
    key: str
    at: datetime
    value: str


class ServiceEngines:
    """The broker that all runs share."""

    def __init__(self, *, on_disk: bool = False) -> None:
        stack = ExitStack()
        atexit.register(stack.close)
        broker = stack.enter_context(temporary_broker())
        self._connection = Connection(broker.bootstrap, broker.settings)
        self._numbers = count()
        self._disk: Path | None = None
        if on_disk:
            self._disk = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="panes-")))

    def make(self, windowing: Windowing) -> "ServiceEngine":
        name = f"case{next(self._numbers)}"
        return ServiceEngine(self._connection, name, windowing, self._disk)


class ServiceEngine:
    """One stream of one case."""

    def __init__(
        self, connection: Connection, name: str, windowing: Windowing, disk: Path | None
    ) -> None:
        app = App(name)
        self._disk = disk
        self._elements = app.stream(
            f"{name}.elements", Element, partitions=1, event_time=EventTime(disorder=DISORDER)
        )
        windowed = replace(self._elements.window(fixed("1s"), by="key"), windowing=windowing)
        panes = windowed.aggregate(values=collect("value"))
        self._panes = app.stream(f"{name}.panes", panes, partitions=1, on="services")
        self._graph = verified(app.graph)
        self._connection = connection
        self._now_at = EPOCH
        self._input = (self._elements.topic.name, 0)
        self._handled = self._read = self._sent = 0
        declare_application(self._graph, connection)

    def add(self, elements: list[tuple[int, Any, Any]]) -> None:
        codec: JsonCodec[Element] = JsonCodec(self._elements.record)
        with Producer(self._connection) as producer:
            for time, value, key in elements:
                at = EPOCH + timedelta(microseconds=time)
                made = Element(json.dumps(key), at, json.dumps(value))
                producer.send(self._input[0], key=codec.key(made), value=codec.encode(made))
        came = list(self._raw(self._input[0]))[self._handled :]
        with self._task() as task:
            task.handle(self._input, came)
        self._handled += len(came)

    def watermark(self, time: int) -> None:
        with self._task() as task:
            if time >= END:
                # The end of the input is no instant that a test could tell a service.
                task.step._advanced_to = END  # type: ignore[attr-defined]
                task.tick()
            else:
                task.advance(EPOCH + timedelta(microseconds=time) + DISORDER)
                task.tick()

    def clock(self, time: int) -> None:
        self._now_at = max(self._now_at, EPOCH + timedelta(microseconds=time))
        with self._task() as task:
            task.tick()

    def take_panes(self) -> list[PaneRow]:
        came = list(self._raw(self._panes.topic.name))[self._read :]
        self._read += len(came)
        return [_shown(raw) for raw in came]

    def dropped(self) -> int:
        return len(list(self._raw(self._graph.late_records.name)))

    def close(self) -> None:
        """The topics go with the broker."""

    def _task(self) -> "_Committing":
        (service,) = (part for part in self._graph.parts if isinstance(part, Service))
        delivery = ExactlyOnce(
            self._connection,
            transactional_id=f"{self._graph.app}.task",
            group=lambda: memberless(f"{self._graph.app}.group"),
            limits=SendLimits(),
            timeout=ServiceSettings().transaction_timeout,
        )
        task = Task(
            self._graph,
            service,
            number=0,
            starts={self._input: self._handled},
            delivery=delivery,
            clock=lambda: self._now_at,
            shelf=self._shelf(),
        )
        self._restore(task, self._graph.changelog(service).name)
        task.open()
        if not isinstance(task.step, PaneStep):
            raise TypeError("not a windowed aggregation")
        return _Committing(task)

    def _shelf(self) -> Shelf | None:
        name = self._graph.app
        return None if self._disk is None else open_shelf(self._disk / name, identity=name)

    def _restore(self, task: Task, changelog: str) -> None:
        records = list(self._raw(changelog))
        end = (records[-1].offset() or 0) + 1 if records else 0
        start = task.resume({changelog: (0, end)}).get(changelog, 0)
        for raw in records:
            if (raw.offset() or 0) >= start:
                task.step.states.apply(raw.key() or b"", raw.value())
        task.restored(changelog, end)

    def _raw(self, topic: str) -> Iterator[RawRecord]:
        for batch in LogReader(self._connection).batches(topic):
            yield from batch


class _Committing:
    """A task that commits what its block did, and is gone."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __enter__(self) -> Task:
        return self._task

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._task.commit()
        self._task.close()


def _shown(raw: RawRecord) -> PaneRow:
    """A pane as a consumer sees it: what is no field of the record is in its headers."""
    pane = json.loads(raw.value() or b"")
    window = None
    if "window_start" in pane:
        window = (_micros(pane["window_start"]), _micros(pane["window_end"]))
    if pane["withdrawn"]:
        return row(pane["key"], window, pane["values"], retract=True)
    headers = {name: value or b"" for name, value in raw.headers() or ()}
    return row(
        pane["key"],
        window,
        pane["values"],
        timing=pane["pane"],
        index=pane["pane_index"],
        on_time_index=int(headers["penstock.pane.on-time-index"]),
        first=pane["pane_index"] == 0,
        last=pane["pane_last"],
        stamp=END - 1 if pane["at"] is None else _micros(pane["at"]),
    )


def _micros(value: str | int) -> int:
    if isinstance(value, int):
        return value
    return (datetime.fromisoformat(value) - EPOCH) // timedelta(microseconds=1)
