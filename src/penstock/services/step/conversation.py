"""Questions and answers of one task: around the user's code, in its timers and its outputs.

A question that is open is a timer of the key that asked, by the clock; its name is the question's
id. So it is committed with everything else, on disk where timers are, and goes off when nobody
answers. The id is made of the coordinates of what was handled and the number of the question within
that call: whoever does the call again asks under the same id, and gets one answer.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.graph.actor import read_actor
from penstock.core.graph.data import Output
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Actor, Service
from penstock.core.graph.questions import (
    Answer,
    Question,
    ReplyTo,
    Unanswered,
    failure_headers,
    failure_in,
    question_headers,
)
from penstock.core.graph.signature import Definition, is_async, read_definition
from penstock.core.graph.state import CallScope, Context
from penstock.core.graph.timer import OWN_TIMERS, Timer
from penstock.core.instants import micros
from penstock.core.records.codec import JsonCodec
from penstock.core.records.deadletter import Coordinates
from penstock.errors import PenstockError
from penstock.services.state.timing.queue import TimerQueue
from penstock.services.step.calls import Calls
from penstock.services.step.outputs import Sent

__all__ = ["Conversation", "conversation_of"]

_STAYS = (str, bytes, Mapping)


@dataclass(slots=True)
class _Call:
    """What is known of a call while its outputs are read."""

    here: CallScope
    place: str
    reply_to: ReplyTo | None = None
    asked: int = 0


class Conversation:
    """Gives answers to the calls that wait for them, and questions and answers their headers."""

    def __init__(
        self,
        graph: Graph,
        service: Service,
        *,
        timers: TimerQueue | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._name = f"{graph.app}.{service.name}"
        self._gateways = frozenset(
            f"{graph.app}.{part.name}" for part in graph.parts if isinstance(part, Gateway)
        )
        self._timers = timers
        self._clock = clock
        self._context = service.context
        self._async = is_async(service.function)
        self._asked_here = {each.answers.topic.name for each in service.asks}
        self._answered_here = {each.stream.topic.name: each for each in service.answers}
        self._answers = {each.answers.name: each for each in service.answers}
        self._codecs = {each.name: JsonCodec(each.stream.record) for each in service.asks}
        self._records = {data.record.cls for data in service.writes}
        self._wants_context = _definition(service).process.context is not None
        self.late_answers = 0
        """How many answers came that nobody waited for any more."""

    def bind(self, calls: Calls, here: CallScope) -> Calls:
        """Return calls with questions and answers taken care of."""
        wants_context = self._wants_context
        sent = self._sent_async if self._async else self._sent

        def process(record: Any, **given: Any) -> Any:
            context: Context = given[self._context or ""]
            at = context.coordinates
            call = _Call(here, f"{at.topic}/{at.partition}/{at.offset}")
            if at.topic in self._asked_here and not self._is_awaited(context, here):
                return self._nothing()
            if at.topic in self._answered_here:
                call.reply_to = ReplyTo.of(context)
            return sent(calls.process(record, **given if wants_context else {}), call)

        def on_timer(timer: Timer) -> Any:
            call = _Call(here, f"{timer.time}/{timer.name}/{micros(timer.due_at)}")
            if not timer.name.startswith(OWN_TIMERS):
                return sent(calls.on_timer(timer) if calls.on_timer else None, call)
            given = {self._context or "": _silence(timer, here)} if wants_context else {}
            return sent(calls.process(self._unanswered(timer), **given), call)

        timed = self._timers is not None
        return Calls(
            process=process,
            on_timer=on_timer if timed else None,
            open=calls.open,
            close=calls.close,
        )

    def failed(self, raw: RawRecord, error: PenstockError) -> Sent | None:
        """Return what tells a gateway that its question is not answered; None: nobody waits.

        A part that asks hears of it when its time is up, as it does where the service is away.
        """
        questions = self._answered_here.get(raw.topic() or "")
        reply_to = ReplyTo.read(_headers(raw)) if questions is not None else None
        if questions is None or reply_to is None or reply_to.asker not in self._gateways:
            return None
        headers = (*failure_headers(reply_to, error.code).items(),)
        return questions.answers.topic.name, reply_to.key, None, headers, None

    def is_failure(self, raw: RawRecord) -> bool:
        """Return whether a record says that a question is not answered, to whom it may concern."""
        return raw.topic() in self._asked_here and failure_in(_headers(raw)) is not None

    def _is_awaited(self, context: Context, here: CallScope) -> bool:
        """Return whether an answer is for this part and in time; then it is waited for no more."""
        reply_to, timers = ReplyTo.of(context), self._timers
        if reply_to is None or reply_to.asker != self._name or timers is None:
            return False
        name = OWN_TIMERS + reply_to.question
        if timers.due_at("processing", here.key, name) is None:
            self.late_answers += 1
            return False
        timers.drop(here, "processing", name)
        return True

    def _unanswered(self, timer: Timer) -> Unanswered[Any]:
        name, text = timer.payload
        question = self._codecs[name].decode(text.encode())
        return Unanswered(question=question, due_at=timer.due_at)

    def _sent(self, given: Any, call: _Call) -> Any:
        """Return what a call gave, ready to be sent."""
        if given is None:
            return None
        several = isinstance(given, Iterable) and not isinstance(given, _STAYS)
        if several and type(given) not in self._records:
            return [self._one(each, call) for each in given]
        return self._one(given, call)

    async def _sent_async(self, given: Any, call: _Call) -> Any:
        if inspect.isasyncgen(given):
            given = [each async for each in given]
        elif inspect.isawaitable(given):
            given = await given
        return self._sent(given, call)

    def _nothing(self) -> Any:
        return _nothing_async() if self._async else None

    def _one(self, item: Any, call: _Call) -> Any:
        if isinstance(item, Question):
            return self._question(item, call)
        if isinstance(item, Answer):
            return item
        if call.reply_to is not None:
            for questions in self._answers.values():
                if type(item) is questions.answers.record.cls:
                    return Answer(questions.answers, item, {}, None, call.reply_to)
                if isinstance(item, Output) and item.to == questions.answers:
                    return Answer(item.to, item.record, item.headers, None, call.reply_to)
        return item

    def _question(self, item: Question[Any], call: _Call) -> Output[Any]:
        """Return a question with its headers, its time-out being set."""
        questions, timers = item.questions, self._timers
        if questions is None or timers is None or questions.name not in self._codecs:
            shown = item.to.name
            raise TypeError(f"it asks {shown!r}, which is not in its asks=...")
        name = self._free(call, timers)
        text = self._codecs[questions.name].encode(item.record).decode()
        due_at = self._clock() + item.timeout
        timers.put(call.here, "processing", OWN_TIMERS + name, due_at, [questions.name, text])
        reply_to = ReplyTo(question=name, asker=self._name, key=call.here.key)
        headers = {**item.headers, **question_headers(reply_to, keyed=True)}
        return replace(item, headers=headers)

    def _free(self, call: _Call, timers: TimerQueue) -> str:
        """Return an id that no open question of the key has: the same whenever it is done again."""
        while True:
            name = f"{call.place}/{call.asked}"
            call.asked += 1
            if timers.due_at("processing", call.here.key, OWN_TIMERS + name) is None:
                return name


def conversation_of(
    graph: Graph, service: Service, timers: TimerQueue | None, clock: Callable[[], datetime]
) -> Conversation | None:
    """Return what takes care of a service's questions and answers; None: it has none."""
    if not service.asks and not service.answers:
        return None
    return Conversation(graph, service, timers=timers, clock=clock)


def _headers(raw: RawRecord) -> dict[str, bytes]:
    return {name: value or b"" for name, value in raw.headers() or ()}


def _definition(service: Service) -> Definition:
    if isinstance(service, Actor):
        return read_actor(service.function).definition
    return read_definition(service.function)


def _silence(timer: Timer, here: CallScope) -> Context:
    """Return the context of a message that is on no log."""
    return Context(
        coordinates=Coordinates("", -1, -1),
        written_at=timer.due_at,
        now_at=timer.now_at,
        key=here.key,
        headers={},
    )


async def _nothing_async() -> None:
    return None
