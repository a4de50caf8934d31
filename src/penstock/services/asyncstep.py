"""The step of an async service: several calls at a time, records of one key one after the other.

A batch of records is a unit: all its calls are done before anything else happens to the task, so a
commit never meets a call under way, and outputs are sent in the order of the records. Within it
calls are begun in that order as others end: one that is slow holds up nothing but the batch's end.
"""

import asyncio
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from penstock.backbone.logrecord import RawRecord
from penstock.core.graph import Graph, Service
from penstock.core.state import Here
from penstock.errors import DataError, PenstockError
from penstock.services.blame import RAISED, TookTooLongError, coordinates_of
from penstock.services.calls import Calls, bind_calls
from penstock.services.outputs import Send, Sent
from penstock.services.reactions import Hold
from penstock.services.step import Clock, Step

if TYPE_CHECKING:
    from penstock.services.shelf import Shelf

__all__ = ["LONGEST_RUN_SECONDS", "AsyncStep"]

LONGEST_RUN_SECONDS = 60.0
"""After this the rest of a batch is left for later: a worker has to ask for records in time."""
_WAITING = 4
"""So many records for each call that may be under way are let in: some wait for others of a key."""


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
        self,
        graph: Graph,
        service: Service,
        *,
        clock: Clock,
        shelf: "Shelf | None" = None,
        waits: Callable[[str], bool] = lambda _: False,
    ) -> None:
        super().__init__(graph, service, clock=clock, shelf=shelf, waits=waits)
        self._frames = [self._frame() for _ in range(service.concurrency)]
        self._runner = asyncio.Runner()
        # A task of a test is never closed: its loop is, when it is let go.
        self._finish_loop = weakref.finalize(self, _finish, self._runner)

    def close(self) -> None:
        """End: call the user's ``close``, then end the event loop."""
        super().close()
        self._finish_loop()

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of one topic; see :meth:`Step.run`."""
        jobs = [self._job(topic, raw) for raw in records]
        self._event_time.look(self._clock)
        deadline = min(self.deadline, monotonic() + LONGEST_RUN_SECONDS)
        at_least = 1  # however long that takes: a batch always gets on
        for piece in self._pieces(topic, jobs, send):
            if piece and self._out_of_time():
                return self._up(piece[0].raw)
            begun = self._finish(piece, send, deadline=deadline, at_least=at_least)
            if begun < len(piece):
                return self._up(piece[begun].raw)
            if begun:
                at_least = 0
        return None

    def _pieces(self, topic: str, jobs: list[_Job], send: Send) -> Iterator[list[_Job]]:
        """Yield the records to be handled together; with timers, cut where one might go off.

        That is where a key comes again, which may have set one, and where one that is set is due.
        Each piece must be finished before the next is asked for.
        """
        if self._timers is None:
            yield jobs
            return
        piece: list[_Job] = []
        keys: set[bytes | None] = set()
        for job in jobs:
            if job.raw.key() in keys or self._makes_due(topic, job):
                yield piece
                piece, keys = [], set()
                if job.record is not None:
                    self._event_time.see(topic, job.record)
                self._fire("event", self._event_time.micros, send)
            piece.append(job)
            keys.add(job.raw.key())
        yield piece
        self._fire("event", self._event_time.micros, send)

    def _makes_due(self, topic: str, job: _Job) -> bool:
        if self._timers is None or job.record is None:
            return False
        first, at = self._timers.first("event"), self._event_time.of(topic, job.record)
        return first is not None and at is not None and first <= at

    def _finish(self, jobs: Sequence[_Job], send: Send, *, deadline: float, at_least: int) -> int:
        """Make the calls, then send what they gave in the order of the records.

        Return how many of the records were handled: those that were begun before the deadline.
        """
        try:
            begun = self._runner.run(self._handle(jobs, deadline=deadline, at_least=at_least))
        except BaseExceptionGroup as several:
            raise _first(several) from several
        passed = written = handled = 0
        for job in jobs[:begun]:
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
        return begun

    def _job(self, topic: str, raw: RawRecord) -> _Job:
        try:
            record = self._codecs[topic].accept(raw.key(), raw.value())
        except DataError as error:
            return _Job(raw, error=error)
        return _Job(raw, record)

    async def _handle(self, jobs: Sequence[_Job], *, deadline: float, at_least: int) -> int:
        """Begin the calls in the order of the records, and wait for them; return how many."""
        limit = self._service.concurrency
        slots, waiting = asyncio.Semaphore(limit), asyncio.Semaphore(_WAITING * limit)
        last_of_key: dict[bytes, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            for number, job in enumerate(jobs):
                await waiting.acquire()
                if number >= at_least and monotonic() >= deadline:
                    return number
                key = job.raw.key()
                before = None if key is None else last_of_key.get(key)
                call = group.create_task(self._call(job, slots, after=before))
                call.add_done_callback(lambda _: waiting.release())
                if key is not None:
                    last_of_key[key] = call
        return len(jobs)

    async def _call(
        self, job: _Job, slots: asyncio.Semaphore, *, after: "asyncio.Task[None] | None"
    ) -> None:
        """Handle a record when the one before it of the same key was handled."""
        if job.record is None:
            return
        if after is not None:
            await asyncio.wait([after])
        async with slots:
            frame = self._frames.pop()
            try:
                await self._one(frame, job)
            finally:
                self._frames.append(frame)

    async def _one(self, frame: _Frame, job: _Job) -> None:
        here = frame.here
        context = self._context(job.raw) if self._service.context else {}
        here.happened = self._event_time.see(job.raw.topic() or "", job.record)
        for attempt in count(1):
            here.key = job.raw.key() or b""
            here.undo.clear()
            try:
                result = await self._within(frame.calls.process(job.record, **context))
                job.sent = self._outputs.of(result)
                if self.retries:
                    self.retries.settle(coordinates_of(job.raw))
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
            raise TookTooLongError(f"took longer than its timeout of {seconds:g}s") from error

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


def _finish(runner: asyncio.Runner) -> None:
    """End an event loop; one that was let go may be found while another one runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        runner.close()
    else:
        runner.get_loop().close()
