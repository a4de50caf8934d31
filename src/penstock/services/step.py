"""The heart of a service: one record in, its outputs out. Pure: no I/O, no clock of its own.

The worker on a broker and the test driver run this same code, a :class:`Step` for each task.
"""

import inspect
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePath
from traceback import extract_tb
from typing import Any

from penstock.backbone.logrecord import RawRecord
from penstock.core.codec import JsonCodec
from penstock.core.deadletter import Coordinates, dead_letter_headers
from penstock.core.graph import Graph, Service, Table
from penstock.core.state import Context
from penstock.errors import DataError, DefinitionError, PenstockError, Problem, UserCodeError
from penstock.services.outputs import Outputs, Send
from penstock.services.states import States
from penstock.services.tally import Tally

__all__ = ["Clock", "Step"]

Clock = Callable[[], datetime]

_EPOCH = datetime.fromtimestamp(0, UTC)
_PACKAGE = str(PurePath(__file__).parent.parent)


class Step:
    """Handles the records of one task with the service's function.

    A record that does not decode, or that makes the function raise, is dead-lettered with its
    reason and the stream goes on; what the failed call did to the state is taken back, and nothing
    it gave is sent. A null value on a table is its deletion of a key: it is counted as filtered.
    """

    def __init__(self, graph: Graph, service: Service, *, clock: Clock) -> None:
        self.states = States(service.states, changelog=graph.changelog(service).name)
        self.tally = Tally()
        self.last_dead_letter = ""
        self._service = service
        self._clock = clock
        self._dead_letters = graph.dead_letters.name
        self._outputs = Outputs(service)
        self._codecs = {
            data.topic.name: JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)
            for data in service.reads
        }
        self._tables = {data.topic.name for data in service.reads if isinstance(data, Table)}
        self._call = _bind(service, self.states)

    def open(self, number: int) -> None:
        """Begin: the state of this partition number is restored."""

    def close(self) -> None:
        """End; nothing is handled any more."""

    def wakes_at(self) -> datetime | None:
        """Return when :meth:`tick` has something to do; None: nothing waits for the clock."""
        return None

    def tick(self, send: Send) -> bool:  # noqa: ARG002 - nothing waits for a time yet
        """Do what the clock and the event time make due; True: something was sent or changed."""
        return False

    def advance(self, event_time_at: datetime) -> None:
        """Take note of an event time, as if a record of each stream had come with it."""

    def run(self, topic: str, records: Iterable[RawRecord], send: Send) -> None:
        """Handle records of one topic in order, passing what they give to ``send``.

        Whatever ``send`` raises goes through: the task has to be thrown away.
        """
        accept, outputs_of, call = self._codecs[topic].accept, self._outputs.of, self._call
        states = self.states if self.states.slots else None
        context = self._context if self._service.context else None
        passed = filtered = written = 0
        for raw in records:
            key = raw.key()
            try:
                record = accept(key, raw.value())
            except DataError as error:
                self._reject(raw, error, send)
                continue
            try:
                if states is not None:
                    states.point(key)  # type: ignore[arg-type] # accept saw that there is one
                result = call(record) if context is None else call(record, **context(raw))
                sent = outputs_of(result)
                if states is not None:
                    states.verify(key)  # type: ignore[arg-type]
            except Exception as error:  # noqa: BLE001 - the user's code may raise anything
                if states is not None:
                    states.take_back(key)  # type: ignore[arg-type]
                self._bury(raw, self._blame(raw, error), send)
                continue
            for to, out_key, value, headers, partition in sent:
                send(to, key=out_key, value=value, headers=headers, partition=partition)
            if sent:
                passed += 1
                written += len(sent)
            else:
                filtered += 1
        self._count(passed, filtered, written)

    def _count(self, passed: int, filtered: int, written: int) -> None:
        tally = self.tally
        tally.written += written
        if self._service.writes:
            tally.passed += passed
            tally.filtered += filtered
        else:  # a service that writes nothing filters nothing: its work is its state
            tally.passed += passed + filtered

    def _reject(self, raw: RawRecord, error: DataError, send: Send) -> None:
        if raw.value() is None and raw.topic() in self._tables:
            self.tally.filtered += 1
        else:
            self._bury(raw, error, send)

    def _bury(self, raw: RawRecord, error: PenstockError, send: Send) -> None:
        coordinates = _coordinates(raw)
        marks = dead_letter_headers(error, coordinates, part=self._service.name, at=self._clock())
        headers: list[tuple[str, bytes | None]] = [*(raw.headers() or ()), *marks]
        send(self._dead_letters, key=raw.key(), value=raw.value(), headers=headers)
        self.tally.dead_lettered += 1
        self.last_dead_letter = f"{coordinates}: {error.message} [{error.code}]"

    def _blame(self, raw: RawRecord, error: Exception) -> PenstockError:
        if isinstance(error, DataError):
            return error
        at = _coordinates(raw)
        return UserCodeError(
            f"{self._service.name} {_told(error)}",
            topic=at.topic,
            partition=at.partition,
            offset=at.offset,
        )

    def _context(self, raw: RawRecord) -> dict[str, Context]:
        _, milliseconds = raw.timestamp()
        context = Context(
            coordinates=_coordinates(raw),
            written_at=_EPOCH + timedelta(milliseconds=milliseconds),
            now_at=self._clock(),
            key=raw.key(),
            headers={name: value or b"" for name, value in raw.headers() or ()},
        )
        return {self._service.context or "": context}


def _coordinates(raw: RawRecord) -> Coordinates:
    return Coordinates(raw.topic() or "", raw.partition() or 0, raw.offset() or 0)


def _told(error: Exception) -> str:
    """Return an exception as words: its type, its text, and the line it came from."""
    try:
        text = f"raised {type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - even the text of a user's exception is the user's code
        text = f"raised {type(error).__name__}"
    frames = extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_PACKAGE)]
    if not outside:
        return f"gave what cannot be used: {error}"
    return f"{text} ({PurePath(outside[-1].filename).name}:{outside[-1].lineno})"


def _bind(service: Service, states: States) -> Callable[..., Any]:
    """Return the service's function with its states given, so that a call names the rest only.

    Positions are used where the function allows: they cost a fifth of what names do.
    """
    function = service.function
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        text = f"service {service.name!r} is async, which services are not yet"
        raise DefinitionError(
            (Problem("service.async", text, "make it a plain function", service.place),)
        )
    given = {slot.spec.name: slot.state for slot in states.slots}
    if not given:
        return function
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if [parameter.name for parameter in parameters] == list(given) and all(
        parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters
    ):
        first, *others = given.values()
        if not others:
            return lambda record: function(record, first)
        return lambda record: function(record, first, *others)
    return partial(function, **given)
