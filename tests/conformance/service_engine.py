"""The pane cases as services on a real broker: topics, transactions, changelogs.

Every run (one stream of one case, in one bundling) is an application of its own. Each step is one
commit, and each begins with a new task that is restored from the changelog.
"""

import atexit
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from pane_match import PaneRow
from pane_rows import row

from penstock import App, collect, fixed, record
from penstock.backbone.connection import Connection
from penstock.backbone.declare import declare_application
from penstock.backbone.logreader import LogReader
from penstock.backbone.logrecord import RawRecord
from penstock.backbone.positions import memberless
from penstock.backbone.producer import Producer, SendLimits
from penstock.core.codec import JsonCodec
from penstock.core.graph import Service
from penstock.core.panes.machine import Windowing
from penstock.core.panes.times import END
from penstock.services.delivery import ExactlyOnce
from penstock.services.panestep import PaneStep
from penstock.services.task import Task
from penstock.testing.broker import temporary_broker

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

    def __init__(self) -> None:
        stack = ExitStack()
        atexit.register(stack.close)
        broker = stack.enter_context(temporary_broker())
        self._connection = Connection(broker.bootstrap, broker.settings)
        self._numbers = count()

    def make(self, windowing: Windowing) -> "ServiceEngine":
        return ServiceEngine(self._connection, f"case{next(self._numbers)}", windowing)


class ServiceEngine:
    """One stream of one case."""

    def __init__(self, connection: Connection, name: str, windowing: Windowing) -> None:
        app = App(name)
        self._elements = app.stream(f"{name}.elements", Element, partitions=1, disorder=DISORDER)
        windowed = replace(self._elements.window(fixed("1s"), by="key"), windowing=windowing)
        panes = windowed.aggregate(values=collect("value"))
        self._panes = app.stream(f"{name}.panes", panes, partitions=1, on="services")
        self._graph = app.graph.verified()
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
                task.step._told = END
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
        )
        task = Task(
            self._graph,
            service,
            number=0,
            starts={self._input: self._handled},
            delivery=delivery,
            clock=lambda: self._now_at,
        )
        for raw in self._raw(self._graph.changelog(service).name):
            task.step.states.apply(raw.key() or b"", raw.value())
        task.open()
        if not isinstance(task.step, PaneStep):
            raise TypeError("not a windowed aggregation")
        return _Committing(task)

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
