"""The step of an async service: several calls at a time, those of one key one after the other.

A batch of records is a unit: all its calls are done before anything else happens to the task, so a
commit never meets a call under way, and outputs are sent in the order of the records. Within it
calls are begun in that order as others end: one that is slow holds up nothing but the batch's end.
A record or timer that is to be tried again holds its partition: calls behind it are made again.

Long because a batch's whole way is here: how calls begin, wait for each other, fail and end.
"""

import asyncio
import inspect
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.core.graph.state import CallScope
from penstock.core.graph.timer import TimerTime
from penstock.errors import DataError, PenstockError, UserCodeError
from penstock.services.state.wholetables import WholeTables
from penstock.services.step.calls import Calls
from penstock.services.step.lanes import AFTER, RECORD, BatchPlace, Item, Lane, Lanes
from penstock.services.step.outputs import Send
from penstock.services.step.reactions import Hold
from penstock.services.step.rounds import Rounds
from penstock.services.step.step import Clock, Step
from penstock.services.usererrors import TookTooLongError, describe_error, is_users

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["LONGEST_RUN_SECONDS", "AsyncStep"]

LONGEST_RUN_SECONDS = 60.0
"""After this the rest of a batch is left for later: a worker has to ask for records in time."""
_WAITING = 4
"""So many records for each call that may be under way are let in: some wait for others of a key."""


@dataclass(slots=True)
class _Frame:
    """A call under way: its key, its states, what takes it back."""

    here: CallScope
    calls: Calls


@dataclass(slots=True)
class _Batch:
    """Records on their way through, or timers alone."""

    items: list[Item]
    lanes: Lanes
    deadline: float
    slots: asyncio.Semaphore
    room: asyncio.Semaphore
    under_way: set["asyncio.Task[None]"] = field(default_factory=set)
    ending: bool = False
    """Whether it is we who cancel calls."""


class AsyncStep(Step):
    """Handles the records of one task with a service that is awaited.

    Calls run in an event loop of the task's own, which also opens and closes the user's object.
    Timers go off between the records of their key, at the places that :class:`Lanes` gives them.
    """

    def __init__(
        self,
        graph: Graph,
        service: Service,
        *,
        clock: Clock,
        shelf: "Shelf | None" = None,
        waits: Callable[[str], bool] = lambda _: False,
        tables: WholeTables | None = None,
    ) -> None:
        super().__init__(graph, service, clock=clock, shelf=shelf, waits=waits, tables=tables)
        policy = service.errors
        self._goes_back = not policy.process == policy.produce == "dead_letter"
        self._hold_until: datetime | None = None
        self._frames: list[_Frame] = []
        self._runner = asyncio.Runner()
        # A task of a test is never closed: its loop is, when it is let go.
        self._finish_loop = weakref.finalize(self, _finish, self._runner)

    def close(self) -> None:
        """End: call the user's ``close``, then end the event loop."""
        super().close()
        self._finish_loop()

    def _counted(
        self,
        rounds: Rounds,
        topic: str,  # noqa: ARG002 - a record that went round too often is refused in its turn
        records: Iterable[RawRecord],
        send: Send,
    ) -> tuple[Iterable[RawRecord], Send]:
        return records, rounds.sending(send)

    def _run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        items = [self._item(topic, number, raw) for number, raw in enumerate(records)]
        self._event_time.look(self._clock)
        fired = self._held_until is not None
        if items and (until := self._waits_for_timer(send)):
            return Hold(_offset(items[0]), until)
        if self._has_due_event():  # left when the time was up: they come before the records
            fired = self._fire("event", self._event_time.micros, send)
        if fired and (monotonic() >= self.deadline or self._has_due_event()):
            until = self._held_until or self._clock()
            return Hold(_offset(items[0]), until, unfinished=True)
        before = self._event_time.kept() if self._timers is not None and self._goes_back else None
        batch = self._batch(items, "event")
        begun = self._await(self._handle(batch, topic))
        batch.lanes.give_back()
        last = self._settle(batch, send)
        if last is not None:
            if before is not None:
                self._event_time.go_back(before)
                for item in items[: last.number + 1]:
                    if item.record is not None:
                        self._event_time.see(topic, item.record)
            done = last.side == AFTER or (last.side == RECORD and self._hold_until is None)
            begun = last.number + done
        if begun == len(items):
            return None
        if self._hold_until is not None:
            return Hold(_offset(items[begun]), self._hold_until)
        return Hold(_offset(items[begun]), self._clock(), unfinished=True)

    def _fire(self, time: TimerTime, until: int | None, send: Send) -> bool:
        """Let timers go off that are due, those that they set included; return whether any did."""
        if self._timers is None or until is None or self._timers_held():
            return False
        if (first := self._timers.first(time)) is None or first > until:
            return False
        batch = self._batch([], time)
        batch.lanes.move(until, record=False)
        self._await(self._handle(batch, ""))
        batch.lanes.give_back()
        self._settle(batch, send)
        return True

    def _batch(self, items: list[Item], time: TimerTime) -> _Batch:
        limit = self._service.concurrency
        self._hold_until = None
        return _Batch(
            items,
            Lanes(self._timers, time=time),
            min(self.deadline, monotonic() + LONGEST_RUN_SECONDS),
            asyncio.Semaphore(limit),
            asyncio.Semaphore(_WAITING * limit),
        )

    def _await(self, handling: Any) -> int:
        """Run a batch in the event loop; return how many of its records were begun."""
        try:
            begun: int = self._runner.run(handling)
        except BaseExceptionGroup as several:
            raise _first(several) from several
        except SystemExit as error:
            # A task that the user's code left running: no record is to blame, and the process must
            # not end as if it had been asked to.
            text = f"{self._service.name} left a task running that {describe_error(error)}"
            hint = "await it in process, or let it end well"
            raise UserCodeError(
                text, topic=self._changelog, partition=self._number, offset=-1, hint=hint
            ) from error
        return begun

    async def _handle(self, batch: _Batch, topic: str) -> int:
        """Begin the calls in the order of the records, and wait for them; return how many."""
        async with asyncio.TaskGroup() as group:
            try:
                begun = 0
                if not batch.items:
                    await self._wake(batch, group, at_least=1)
                for item in batch.items:
                    await batch.room.acquire()
                    late = begun > 0 and monotonic() >= batch.deadline
                    if (
                        late
                        or batch.lanes.halted
                        or not await self._let_in(batch, group, item, topic)
                    ):
                        break
                    begun += 1
                while batch.under_way:
                    await asyncio.wait(batch.under_way)
            except asyncio.CancelledError:
                batch.ending = True
                raise
        return begun

    async def _let_in(
        self, batch: _Batch, group: asyncio.TaskGroup, item: Item, topic: str
    ) -> bool:
        """Let a record in, behind the timers that it makes due; False: not all of them got on."""
        if self._timers is not None:
            if item.record is not None:
                item.happened = self._event_time.see(topic, item.record)
            item.reached = self._event_time.micros
            batch.lanes.move(item.reached, record=True)
            if not await self._wake(batch, group, at_least=1 if item.place.number == 0 else 0):
                return False
        if item.record is None:
            batch.lanes.done.append(item)
            batch.room.release()
        else:
            self._start(batch, group, batch.lanes.put(item))
        return True

    async def _wake(self, batch: _Batch, group: asyncio.TaskGroup, *, at_least: int) -> bool:
        """Begin the calls for timers that are due, some at a time; False: there are more of them.

        Those that are left go off before the record for which this was called is handled.
        """
        some = _WAITING * self._service.concurrency
        while True:
            number = 0
            for lane in batch.lanes.wake():
                self._start(batch, group, lane)
                number += 1
                if number >= some:
                    break
            if number < some:
                return True
            await asyncio.wait(batch.under_way)
            at_least -= number
            if at_least <= 0 and (monotonic() >= batch.deadline or batch.lanes.halted):
                return False

    def _start(self, batch: _Batch, group: asyncio.TaskGroup, lane: Lane) -> None:
        """Let a lane go on that has nothing under way."""
        if not lane.busy:
            lane.busy = True
            task = group.create_task(self._go_on(batch, group, lane))
            batch.under_way.add(task)
            task.add_done_callback(batch.under_way.discard)

    async def _go_on(self, batch: _Batch, group: asyncio.TaskGroup, lane: Lane) -> None:
        """Make the calls of one key, until it has none left."""
        lanes = batch.lanes
        while lane.records or lane.due:
            async with batch.slots:
                if (item := lanes.next(lane)) is None:
                    break
                frame = self._frames.pop() if self._frames else self._frame()
                try:
                    await self._one(frame, item, batch)
                finally:
                    self._frames.append(frame)
            lanes.ended(lane, item)
            if item.raw is not None:
                batch.room.release()
            if item.error is not None and self._goes_back:
                lanes.halt(item.place)
            if self._timers is not None:  # it may have set some that are due by now
                for other in lanes.wake():
                    self._start(batch, group, other)
        lane.busy = False

    async def _one(self, frame: _Frame, item: Item, batch: _Batch) -> None:
        """Make one call; what it raises is the item's, unless it is we who end it."""
        here = frame.here
        here.key, here.firing = item.key or b"", item.due
        here.happened, here.reached = item.happened, item.reached
        here.undo.clear()
        try:
            item.sent = self._outputs.of(await self._within(self._called(frame, item)))
        except BaseException as error:
            if batch.ending or not is_users(error):
                batch.ending = True
                raise
            _go_on_after(error)
            try:
                self._raise_disk_trouble()
            except PenstockError:
                batch.ending = True
                raise
            here.take_back()
            item.error = error
        if self._goes_back:
            item.undo, here.undo = here.undo, []

    def _called(self, frame: _Frame, item: Item) -> Any:
        if item.due is not None and self._timers is not None and frame.calls.on_timer is not None:
            return frame.calls.on_timer(self._timers.timer_of(item.due, reached=item.reached))
        context = self._context(item.raw) if self._service.context and item.raw is not None else {}
        return frame.calls.process(item.record, **context)

    def _settle(self, batch: _Batch, send: Send) -> BatchPlace | None:
        """Send what the calls gave in the order of their places.

        Return the place of what failed, where nothing behind it is wanted before it is tried again
        or given up: everything there was taken back, or not begun.
        """
        passed = written = handled = 0
        done = sorted(batch.lanes.done, key=lambda item: item.place)
        failed: BatchPlace | None = None
        for number, item in enumerate(done):
            if item.error is not None:
                self._fail_item(item, send)
                if batch.lanes.halted:
                    self._go_back(done[number + 1 :], batch)
                    failed = item.place
                    break
            elif item.refused is not None and item.raw is not None:
                self._reject(item.raw, item.refused, send)
            else:
                if self._rounds is not None:
                    self._rounds.at(item.raw)
                for to, key, value, headers, partition in item.sent:
                    send(to, key=key, value=value, headers=headers, partition=partition)
                written += len(item.sent)
                if item.due is None:
                    handled += 1
                    passed += bool(item.sent)
        self._count(passed, handled - passed, written)
        return failed

    def _fail_item(self, item: Item, send: Send) -> None:
        """Deal with what the user's code failed on."""
        if item.due is not None:
            held = self._fail_timer(item.due, item.error, send)  # type: ignore[arg-type]
            self._hold_until = self._held_until if held else None
        else:
            hold = self._fail(item.raw, item.record, item.error, send)  # type: ignore[arg-type]
            self._hold_until = None if hold is None else hold.until

    def _go_back(self, items: list[Item], batch: _Batch) -> None:
        """Take back what calls did that are to be made again."""
        again = set(items)
        for item in reversed(batch.lanes.done):
            if item in again:
                for store, place, before in reversed(item.undo):
                    store.restore(place, before)
                if item.due is not None and self._timers is not None:
                    self._timers.put_back(item.due)

    def _item(self, topic: str, number: int, raw: RawRecord) -> Item:
        item = Item(BatchPlace(number, RECORD), raw.key(), raw=raw)
        if self._rounds is not None:
            item.refused = self._rounds.refused(topic, raw)
            if item.refused is not None:
                return item
        try:
            item.record = self._codecs[topic].accept(raw.key(), raw.value())
        except DataError as error:
            item.refused = error
        return item

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
        here = CallScope()
        return _Frame(here, self._bound(here))


def _offset(item: Item) -> int:
    return (item.raw.offset() or 0) if item.raw is not None else 0


def _go_on_after(error: BaseException) -> None:
    """Let the running task be as if the user's code had not cancelled it, where it did."""
    if isinstance(error, GeneratorExit) and not _runs():
        raise error  # the coroutine is being thrown away: it must not go on
    if isinstance(error, asyncio.CancelledError) and (task := asyncio.current_task()):
        while task.cancelling():
            task.uncancel()


def _runs() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


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
