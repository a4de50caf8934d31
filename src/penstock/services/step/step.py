"""The heart of a service: one record in, its outputs out. Pure: no I/O, no clock of its own.

The worker on a broker and the test driver run this same code, a :class:`Step` for each task.

Long because the way of a record is here, and every call on it would be felt.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.data import Table
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Actor, Service
from penstock.core.graph.state import CallScope, Context, Opening
from penstock.core.graph.timer import TimerTime
from penstock.core.instants import EPOCH, LAST_MICROS, instant, micros
from penstock.core.records.deadletter import Coordinates
from penstock.core.status.eventtimes import EventTimes
from penstock.errors import DataError, PenstockError, TransientError
from penstock.services.state.states import States
from penstock.services.state.timing.eventtime import TaskEventTime
from penstock.services.state.timing.queue import Due, TimerQueue
from penstock.services.state.wholetables import WholeTables
from penstock.services.step.actors import Actors
from penstock.services.step.calls import Calls, bind_calls, make_codecs, make_subject, rows_handles
from penstock.services.step.conversation import conversation_of
from penstock.services.step.deadletters import DeadLetters
from penstock.services.step.outputs import Outputs, Send
from penstock.services.step.reactions import Hold, Reactions
from penstock.services.step.rounds import TOO_OFTEN, Rounds, rounds_of
from penstock.services.step.tally import Tally
from penstock.services.usererrors import LOG, coordinates_of, describe_error, is_users

if TYPE_CHECKING:
    from penstock.services.state.shelf import Shelf

__all__ = ["Clock", "Step"]

Clock = Callable[[], datetime]

_SWEEP_INTERVAL = 1_000_000
"""Microseconds between two sweeps of what has expired."""
_UNLOOKED = 7
_SLOW_SECONDS = 0.01
"""So many records are handled without a look at the clock, where they take less time than this."""


class Step:
    """Handles the records of one task with the service's function.

    A record that does not decode, or that makes the function raise, is dead-lettered with its
    reason and the stream goes on, unless the error policy says otherwise; what the failed call did
    to the state is taken back, and nothing it gave is sent. A null value on a table is its deletion
    of a key: it is counted as filtered.
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
        # Where nothing waits for event time its tasks may lack partitions of some streams.
        timed = [data for data in service.reads if data.topic.name not in service.changes]
        self._event_time = TaskEventTime(timed if service.timed else (), waits=waits)
        self._timers = (
            TimerQueue(self._event_time, clock=clock, shelf=shelf) if service.timed else None
        )
        self._changelog = graph.changelog(service).name
        self.states = States(
            service.states,
            changelog=self._changelog,
            clock=clock,
            timers=self._timers,
            shelf=shelf,
            rows=rows_handles(service, tables or {}),
        )
        self._here = CallScope()
        self.tally = Tally()
        self._service = service
        self._clock = clock
        self._dead_letters = DeadLetters(graph, service, clock=clock)
        self._outputs = Outputs(service)
        self._codecs = make_codecs(service)
        self._tables = {data.topic.name for data in service.reads if isinstance(data, Table)}
        self._reactions = Reactions(service, clock=clock)
        self.retries = self._reactions.retries
        self._actors = Actors(service, clock=clock) if isinstance(service, Actor) else None
        try:
            self._subject = None if self._actors else make_subject(service)
        except BaseException as error:
            if not is_users(error):
                raise
            place = Coordinates(service.reads[0].topic.name, -1, -1)
            raise self._reactions.user_error(error, place, doing="cannot be made: it ") from error
        self._conversation = conversation_of(graph, service, self._timers, clock)
        self._calls = self._bound(self._here)
        self._held_until: datetime | None = None
        self._left = False
        """Whether timers were left that are due: before the time was up, or before a restart."""
        self._number = 0
        self._rounds = rounds_of(graph, service)
        self.deadline = inf
        """When to leave what is left for later, by the monotonic clock."""

    @property
    def last_dead_letter(self) -> str:
        """Return the last dead letter in words, empty where there was none."""
        return self._dead_letters.last

    def facts(self) -> dict[str, int]:
        """Return how many values, and timers, there are."""
        facts = {"keys": len(self.states)} if self._service.keeps_state else {}
        if self._actors is not None:
            facts |= self._actors.facts()
        if self._service.asks and self._conversation is not None:
            facts["late answers"] = self._conversation.late_answers
        return facts if self._timers is None else facts | {"timers": len(self._timers)}

    def event_times(self) -> EventTimes:
        """Return how far event time has come, where timers wait for it."""
        return EventTimes.of_micros(None if self._timers is None else self._event_time.micros)

    def open(self, number: int) -> None:
        """Begin: the state of this partition number is restored; call the user's ``open``."""
        self._number = number
        self._left = self._has_due_event()
        if self._calls.open is not None:
            try:
                self._done(self._calls.open(Opening(self._service.name, number)))
            except TransientError:
                raise
            except BaseException as error:
                if not is_users(error):
                    raise
                raise self._reactions.user_error(error, self._place(), doing="open ") from error

    def close(self) -> None:
        """End: call the user's ``close``; what it raises is logged, there is nothing to save."""
        if self._calls.close is not None:
            try:
                self._done(self._calls.close())
            except BaseException as error:
                if not is_users(error):
                    raise
                LOG.warning("close of %s %s", self._service.name, describe_error(error))

    def wakes_at(self) -> datetime | None:
        """Return when :meth:`tick` has something to do; None: nothing waits for the clock."""
        first = self._timers.first("processing") if self._timers is not None else None
        if self._held_until is not None:
            first = micros(self._held_until)
        elif self._has_due_event():
            return EPOCH
        elif self._timers is not None:
            # Also where no timer is set: those to come must find event time where the silence of
            # a stream has left it, however often the task was begun again meanwhile.
            moments = (first, self._event_time.looks_again())
            first = min((at for at in moments if at is not None), default=None)
        expiry = self.states.expires_at()
        if expiry is not None:
            # What has expired is not seen any more; forgetting it need not be prompt.
            expiry += _SWEEP_INTERVAL - expiry % _SWEEP_INTERVAL
        rests_at = None if self._actors is None else self._actors.rests_at
        found = [at for at in (first, expiry, rests_at) if at is not None]
        return instant(min(LAST_MICROS, *found)) if found else None

    def tick(self, send: Send) -> bool:
        """Let the timers go off that are due, and forget what has expired."""
        now, known = micros(self._clock()), self._event_time.changed
        if self._actors is not None:
            self._actors.rest(now)
        self._event_time.look(self._clock)
        # What the clock has moved is kept, too: it would be moved at another moment after a crash.
        fired = self._event_time.changed and not known
        fired |= self._fire("event", self._event_time.micros, send)
        if not self._out_of_time():
            fired |= self._fire("processing", now, send)
        return self.states.sweep(now) or fired

    def advance(self, event_time_at: datetime) -> None:
        """Take note of an event time, as if a record of each stream had come with it."""
        self._event_time.see_all(event_time_at)

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> Hold | None:
        """Handle records of one topic in order, passing what they give to ``send``.

        A record that is to be tried again later is returned, or the one at which the time was up;
        those behind it were not handled. However little time there is, one record is handled.
        Whatever ``send`` raises goes through, and so does the end that the error policy asks for:
        the task has to be thrown away.
        """
        if self._rounds is not None:
            records, send = self._counted(self._rounds, topic, records, send)
        return self._run(topic, records, send)

    def _counted(
        self, rounds: Rounds, topic: str, records: Iterable[RawRecord], send: Send
    ) -> tuple[Iterable[RawRecord], Send]:
        """Return the records that have not gone round too often, and what counts on."""
        return rounds.follow(topic, records, send, self._give_up)

    def _run(  # noqa: C901, PLR0912 - one loop: every call in it costs
        self, topic: str, records: Iterable[RawRecord], send: Send
    ) -> Hold | None:
        accept, outputs_of, call = self._codecs[topic].accept, self._outputs.of, self._calls.process
        here = self._here if self._service.keeps_state else None
        timers = self._timers
        context = self._context if self._service.context else None
        passed = filtered = written = 0
        hold: Hold | None = None
        until, looked, unlooked = inf, -inf, 0
        self._event_time.look(self._clock)
        for raw in records:
            if unlooked:
                unlooked -= 1
            elif (now := monotonic()) >= until:
                hold = self._up(raw)
                break
            else:
                unlooked = 0 if now - looked > _SLOW_SECONDS else _UNLOOKED
                until, looked = self.deadline, now
            key = raw.key()
            try:
                record = accept(key, raw.value())
            except DataError as error:
                self._reject(raw, error, send)
                continue
            if timers is not None and (hold := self._move_time(topic, raw, record, send)):
                break
            try:
                if here is not None:
                    here.key = key  # type: ignore[assignment] # accept saw that there is one
                    here.undo.clear()
                result = call(record) if context is None else call(record, **context(raw))
                sent = outputs_of(result)
            except BaseException as error:  # noqa: BLE001 - what is not the user's is raised again
                if hold := self._fail(raw, record, error, send):
                    break
                continue
            for to, out_key, value, headers, partition in sent:
                send(to, key=out_key, value=value, headers=headers, partition=partition)
            if sent:
                passed += 1
                written += len(sent)
            else:
                filtered += 1
            if timers is not None and self._has_due_event():
                if monotonic() < self.deadline:
                    self._fire("event", self._event_time.micros, send)
                else:  # the record has given what is in a transaction by now: they must not wait
                    self._left = True
        self._count(passed, filtered, written)
        return hold

    def _bound(self, here: CallScope) -> Calls:
        """Return what to call of the user's code, pointing where ``here`` does."""
        if self._actors is not None:
            calls = self._actors.bind(self.states, here)
        else:
            calls = bind_calls(self._subject, self.states, here)
        return calls if self._conversation is None else self._conversation.bind(calls, here)

    def _done(self, result: Any) -> Any:
        """Return what a call of the user's code came to, outside of the loop over records."""
        return result

    def _count(self, passed: int, filtered: int, written: int) -> None:
        tally = self.tally
        tally.written += written
        if self._service.writes:
            tally.passed += passed
            tally.filtered += filtered
        else:  # a service that writes nothing filters nothing: its work is its state
            tally.passed += passed + filtered

    def _give_up(self, raw: RawRecord, error: DataError, send: Send) -> None:
        """Bury a record that has gone round too often."""
        self._bury(raw, error, send)

    def _bury(self, raw: RawRecord, error: PenstockError, send: Send) -> None:
        """Bury a record; who waits for an answer to it over a gateway is told."""
        self._dead_letters.bury(raw, error, send)
        self.tally.dead_lettered += 1
        if self._conversation is not None and (told := self._conversation.failed(raw, error)):
            to, key, value, headers, partition = told
            send(to, key=key, value=value, headers=headers, partition=partition)

    def _reject(self, raw: RawRecord, error: DataError, send: Send) -> None:
        """Deal with a record that does not decode, or goes on no more."""
        if error.code == TOO_OFTEN:
            self._give_up(raw, error, send)
        elif raw.value() is None and (
            raw.topic() in self._tables
            or (self._conversation is not None and self._conversation.is_failure(raw))
        ):
            self.tally.filtered += 1
        else:
            self._reactions.to_bytes(error, coordinates_of(raw), raw.value())
            self._bury(raw, error, send)

    def _fail(self, raw: RawRecord, record: Any, error: BaseException, send: Send) -> Hold | None:
        """Deal with a record that the user's code failed on."""
        if not is_users(error):
            raise error
        self._raise_disk_trouble()
        self._here.take_back()
        place = coordinates_of(raw)
        attempt = self._reactions.attempt(place)
        outcome = self._reactions.to_call(error, place, record, attempt=attempt)
        if isinstance(outcome, Hold):
            return outcome
        self._bury(raw, outcome, send)
        return None

    def _fire(self, time: TimerTime, until: int | None, send: Send) -> bool:
        """Let timers go off in order, those that they set included; return whether any did."""
        timers, call, here = self._timers, self._calls.on_timer, self._here
        if timers is None or call is None or until is None or self._timers_held():
            return False
        fired = False
        while (due := timers.pop(time, until)) is not None:
            fired = True
            here.key, here.firing = due.key, due
            here.undo.clear()
            try:
                sent = self._outputs.of(self._done(call(timers.timer_of(due))))
            except BaseException as error:  # noqa: BLE001 - what is not the user's is raised again
                if self._fail_timer(due, error, send):
                    break
                sent = []
            for to, key, value, headers, partition in sent:
                send(to, key=key, value=value, headers=headers, partition=partition)
            self.tally.written += len(sent)
            if monotonic() >= self.deadline:
                self._left = True
                break
        here.firing = None
        return fired

    def _fail_timer(self, due: Due, error: BaseException, send: Send) -> bool:
        """Deal with a timer that the user's code failed on; return whether timers are held."""
        if not is_users(error):
            raise error
        self._raise_disk_trouble()
        self._here.take_back()
        attempt = self._reactions.attempt(self._place(), due)
        outcome = self._reactions.to_call(
            error, self._place(), None, attempt=attempt, doing=f"on timer {due.name!r} "
        )
        if isinstance(outcome, Hold) and self._timers is not None:
            self._timers.put_back(due)
            self._held_until = outcome.until
            return True
        if isinstance(outcome, PenstockError):
            self._dead_letters.bury_timer(due, outcome, self._place(), send)
            self.tally.written += 1
        return False

    def _up(self, raw: RawRecord) -> Hold:
        """Leave a record for later because the time is up."""
        return Hold(raw.offset() or 0, self._clock(), unfinished=True)

    def _out_of_time(self) -> bool:
        """Return whether the time was up before every timer that is due had gone off."""
        return monotonic() >= self.deadline and self._has_due_event()

    def _has_due_event(self) -> bool:
        first = self._timers.first("event") if self._timers is not None else None
        until = self._event_time.micros
        return first is not None and until is not None and first <= until

    def _raise_disk_trouble(self) -> None:
        """Raise what is wrong with the disk, where that made the user's code fail."""
        if self.states.shelf is not None and self.states.shelf.trouble is not None:
            raise self.states.shelf.trouble

    def _move_time(self, topic: str, raw: RawRecord, record: Any, send: Send) -> Hold | None:
        """Let the timers go off that a record makes due; return a hold where it waits for one."""
        left, self._left = self._left, False
        if self._held_until is None or self._waits_for_timer(send) is None:
            if left and not self._left:  # those that an earlier record has made due come first
                self._fire("event", self._event_time.micros, send)
            if not self._left and self._held_until is None:
                self._here.happened = self._event_time.see(topic, record)
                self._fire("event", self._event_time.micros, send)
        if self._held_until is not None:
            self._left |= left
            return Hold(raw.offset() or 0, self._held_until)
        # The time was up behind a timer: the record waits, for what the timer gave must not.
        return self._up(raw) if self._left else None

    def _waits_for_timer(self, send: Send) -> datetime | None:
        """Return until when records wait for a timer that failed before them; None: they do not.

        It went off before them, so what it does and what they do must come in that order.
        """
        if self._held_until is not None and not self._timers_held():
            self._fire("event", self._event_time.micros, send)
        return self._held_until

    def _timers_held(self) -> bool:
        """Return whether timers wait for one that is to be tried again."""
        if self._held_until is not None and self._held_until <= self._clock():
            self._held_until = None
            self.retries.settle(self._place())
        return self._held_until is not None

    def _place(self) -> Coordinates:
        """Return where what is no record belongs: to the changelog, at no offset."""
        return Coordinates(self._changelog, self._number, -1)

    def _context(self, raw: RawRecord) -> dict[str, Context]:
        _, milliseconds = raw.timestamp()
        context = Context(
            coordinates=coordinates_of(raw),
            written_at=EPOCH + timedelta(milliseconds=milliseconds),
            now_at=self._clock(),
            key=raw.key(),
            headers={name: value or b"" for name, value in raw.headers() or ()},
        )
        return {self._service.context or "": context}
