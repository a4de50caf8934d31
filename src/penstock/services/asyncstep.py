"""The step of an async service: several calls at a time, records of one key one after the other.

A batch of records is a unit: all its calls are done before anything else happens to the task, so a
commit never meets a call under way, and outputs are sent in the order of the records.
"""

import asyncio
import inspect
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from penstock.backbone.logrecord import RawRecord
from penstock.core.graph import Graph, Service
from penstock.core.state import Here
from penstock.errors import DataError, PenstockError
from penstock.services.blame import RAISED, coordinates_of
from penstock.services.calls import Calls, bind_calls
from penstock.services.outputs import Send, Sent
from penstock.services.reactions import Hold
from penstock.services.step import Clock, Step

if TYPE_CHECKING:
    from penstock.services.shelf import Shelf

__all__ = ["LONGEST_RUN_SECONDS", "AsyncStep"]

LONGEST_RUN_SECONDS = 60.0
"""After this the rest of a batch is left for later: a worker has to ask for records in time."""
_ROUNDS = 4
"""So many records per call that may be under way are begun together."""


@dataclass(slots=True)
class _Frame:
    """A call under way: its key, its states, what takes it back."""

    here: Here
    calls: Calls


@dataclass(slots=True)
class _Job:
    """A record on its way through, and what became of it."""

    raw: RawRecord
    record: Any = None
    sent: list[Sent] = field(default_factory=list)
    error: PenstockError | None = None
    """What it is to be buried with."""


class AsyncStep(Step):
    """Handles the records of one task with a service that is awaited.

    Calls run in an event loop of the task's own, which also opens and closes the user's object.
    Timers go off when no call is under way. A record that is tried again makes those of its key
    wait, not those of its partition.
    """

    def __init__(
        self, graph: Graph, service: Service, *, clock: Clock, shelf: "Shelf | None" = None
    ) -> None:
        super().__init__(graph, service, clock=clock, shelf=shelf)
        self._frames = [self._frame() for _ in range(service.concurrency)]
        self._runner = asyncio.Runner()
        # A task of a test is never closed: its loop is, when it is let go.
        self._finish_loop = weakref.finalize(self, self._runner.close)

    def close(self) -> None:
        """End: call the user's ``close``, then end the event loop."""
        super().close()
        self._finish_loop()

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of one topic; see :meth:`Step.run`."""
        listed = list(records)
        began = monotonic()
        size = self._service.concurrency * _ROUNDS
        for start in range(0, len(listed), size):
            if start and monotonic() - began > LONGEST_RUN_SECONDS:
                return Hold(listed[start].offset() or 0, self._clock())
            self._batch(topic, listed[start : start + size], send)
        return None

    def _batch(self, topic: str, records: Sequence[RawRecord], send: Send) -> None:
        """Handle some records; with timers they are cut where one might go off in between.

        That is where a key comes again, which may have set one, and where one that is set is due.
        """
        jobs = [self._job(topic, raw) for raw in records]
        if self._timers is None:
            self._finish(jobs, send)
            return
        piece: list[_Job] = []
        keys: set[bytes | None] = set()
        for job in jobs:
            if job.raw.key() in keys or self._makes_due(topic, job):
                self._finish(piece, send)
                piece, keys = [], set()
                if job.record is not None:
                    self._event_time.see(topic, job.record)
                self._fire("event", self._event_time.micros, send)
            piece.append(job)
            keys.add(job.raw.key())
        self._finish(piece, send)
        self._fire("event", self._event_time.micros, send)

    def _makes_due(self, topic: str, job: _Job) -> bool:
        if self._timers is None or job.record is None:
            return False
        first, at = self._timers.first("event"), self._event_time.of(topic, job.record)
        return first is not None and at is not None and first <= at

    def _finish(self, jobs: Sequence[_Job], send: Send) -> None:
        """Make the calls, then send what they gave in the order of the records."""
        try:
            self._runner.run(self._handle([job for job in jobs if job.record is not None]))
        except BaseExceptionGroup as several:
            raise _first(several) from several
        passed = written = handled = 0
        for job in jobs:
            if job.record is None:
                self._reject(job.raw, job.error, send)  # type: ignore[arg-type]
            elif job.error is not None:
                self._dead_letters.bury(job.raw, job.error, send)
                self.tally.dead_lettered += 1
            else:
                for to, key, value, headers, partition in job.sent:
                    send(to, key=key, value=value, headers=headers, partition=partition)
                handled += 1
                passed += bool(job.sent)
                written += len(job.sent)
        self._count(passed, handled - passed, written)

    def _job(self, topic: str, raw: RawRecord) -> _Job:
        try:
            record = self._codecs[topic].accept(raw.key(), raw.value())
        except DataError as error:
            return _Job(raw, error=error)
        return _Job(raw, record)

    async def _handle(self, jobs: Iterable[_Job]) -> None:
        chains: dict[Any, list[_Job]] = {}
        for number, job in enumerate(jobs):
            key = job.raw.key()
            chains.setdefault(number if key is None else key, []).append(job)
        slots = asyncio.Semaphore(self._service.concurrency)
        async with asyncio.TaskGroup() as group:
            for chain in chains.values():
                group.create_task(self._follow(chain, slots))

    async def _follow(self, chain: list[_Job], slots: asyncio.Semaphore) -> None:
        """Handle the records of one key, one after the other."""
        for job in chain:
            async with slots:
                frame = self._frames.pop()
                try:
                    await self._one(frame, job)
                finally:
                    self._frames.append(frame)

    async def _one(self, frame: _Frame, job: _Job) -> None:
        here = frame.here
        context = self._context(job.raw) if self._service.context else {}
        self._event_time.see(job.raw.topic() or "", job.record)
        for attempt in count(1):
            here.key = job.raw.key() or b""
            here.undo.clear()
            try:
                result = await self._within(frame.calls.process(job.record, **context))
                job.sent = self._outputs.of(result)
            except RAISED as error:
                self._blame_the_disk()
                here.take_back()
                place = coordinates_of(job.raw)
                outcome = self._reactions.to_call(error, place, job.record, attempt=attempt)
                if isinstance(outcome, Hold):
                    await asyncio.sleep((outcome.until - self._clock()).total_seconds())
                    continue
                job.error = outcome
            return

    async def _within(self, result: Any) -> Any:
        """Wait for a call, no longer than it may take."""
        seconds = self._service.timeout.total_seconds()
        try:
            async with asyncio.timeout(seconds) as limit:
                return await _collected(result)
        except TimeoutError as error:
            if not limit.expired():
                raise  # the user's own
            raise TimeoutError(f"it took longer than {seconds:g}s") from error

    def _done(self, result: Any) -> Any:
        return self._runner.run(self._within(result))

    def _frame(self) -> _Frame:
        here = Here()
        return _Frame(here, bind_calls(self._subject, self.states, here))


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return what ended a group of calls: an end the policy asked for, before anything else."""
    ours = [error for error in several.exceptions if isinstance(error, PenstockError)]
    return [*ours, *several.exceptions][0]


async def _collected(result: Any) -> Any:
    """Return what a call gives: awaited, and an async generator as a list."""
    if inspect.isasyncgen(result):
        return [item async for item in result]
    return await result if inspect.isawaitable(result) else result
