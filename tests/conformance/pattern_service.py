"""The pattern cases as services on a real broker: topics, transactions, changelogs.

Each case is an application of its own. Each step of it is a commit, by a new task that is restored
from the changelog.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from itertools import count
from typing import Any

from pattern_driver import END_AT
from pattern_form import EPOCH, Case, Outcome, PatternCase

from penstock import App
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.declare import declare_application
from penstock.backbone.log.positions import memberless
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.core.graph.parts import Service
from penstock.core.records.codec import JsonCodec
from penstock.core.rules.check import verified
from penstock.core.settings.settings import ServiceSettings
from penstock.errors import DefinitionError
from penstock.services.task.delivery import ExactlyOnce
from penstock.services.task.task import Task
from penstock.testing.broker import temporary_broker
from penstock.testing.deadletters import read_dead_letter

__all__ = ["ServiceEngine"]

SIDE_BY_SIDE = 12


class ServiceEngine:
    """Runs cases side by side: on a broker a case is mostly waiting."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._stack = ExitStack()
        if connection is None:
            broker = self._stack.enter_context(temporary_broker())
            connection = Connection(broker.bootstrap, broker.settings)
        self._connection = connection
        self._numbers = count()

    def run(self, cases: list[Case]) -> list[list[Outcome] | str]:
        """Return the outcomes of each case, or what went wrong."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as executor:
            return list(executor.map(self._attempt, cases))

    def close(self) -> None:
        """End the broker."""
        self._stack.close()

    def _attempt(self, case: Case) -> list[Outcome] | str:
        try:
            return [_Run(self._connection, f"patterns{next(self._numbers)}", case).outcome()]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this case's failure
            return f"{type(error).__name__}: {error}"


class _Run:
    def __init__(self, connection: Connection, name: str, case: Case) -> None:
        self._connection = connection
        self._case = case
        self._app = App(name)
        self._made = PatternCase(case)
        self._events, declared = self._made.declare(self._app, f"{name}.")
        self._found = self._app.stream(f"{name}.found", declared, on="services", partitions=1)
        self._input = (self._events.topic.name, 0)
        self._handled = 0
        self._clock: datetime = EPOCH

    def outcome(self) -> Outcome:
        outcome = Outcome()
        try:
            self._graph = verified(self._app.graph)
        except DefinitionError as error:
            if not self._case.get("error"):
                raise
            outcome.errors += [problem.code for problem in error.problems]
            return outcome
        declare_application(self._graph, self._connection)
        came: list[Any] = []
        records = self._made.records()
        for what, value in self._made.moments():
            if what == "event":
                came.append(records[value])
                if len(came) < 3:
                    continue
            self._add(came)
            came = []
            if what != "event":
                self._advance(END_AT if what == "end" else self._made.told(value))
        self._add(came)
        found = self._raw(self._found.topic.name)
        self._made.read([json.loads(raw.value() or b"") for raw in found], outcome)
        late = self._raw(self._graph.late_records.name)
        outcome.late = [json.loads(raw.value() or b"")["offset"] for raw in late]
        dead = self._raw(self._graph.dead_letters.name)
        outcome.errors = [read_dead_letter(raw).code for raw in dead]
        return outcome

    def _add(self, records: list[Any]) -> None:
        if not records:
            return
        codec: JsonCodec[Any] = JsonCodec(self._events.record)
        with Producer(self._connection) as producer:
            for each in records:
                producer.send(self._input[0], key=codec.key(each), value=codec.encode(each))
        came = list(self._raw(self._input[0]))[self._handled :]
        task = self._task()
        try:
            task.handle(self._input, came)
            task.commit()
        finally:
            task.close()
        self._handled += len(came)

    def _advance(self, to: datetime) -> None:
        task = self._task()
        try:
            task.advance(to)
            task.tick()
            task.commit()
        finally:
            task.close()

    def _task(self) -> Task:
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
            clock=lambda: self._clock,
        )
        changelog = self._graph.changelog(service).name
        kept = list(self._raw(changelog))
        end = (kept[-1].offset() or 0) + 1 if kept else 0
        task.resume({changelog: (0, end)})
        for raw in kept:
            task.step.states.apply(raw.key() or b"", raw.value())
        task.restored(changelog, end)
        task.open()
        return task

    def _raw(self, topic: str) -> Iterator[RawRecord]:
        for batch in LogReader(self._connection).batches(topic):
            yield from batch
