"""Questions and answers between parts: through topics, each answer a message to whoever asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, get_args, get_origin

import msgspec

from penstock.core.graph.data import Output, Stream
from penstock.core.graph.state import Context
from penstock.core.records.deadletter import HEADER_PREFIX
from penstock.core.units import duration
from penstock.errors import Place

__all__ = [
    "Answer",
    "Question",
    "Questions",
    "ReplyTo",
    "Unanswered",
    "answer",
    "ask",
    "failure_headers",
    "failure_in",
    "question_headers",
    "unanswered",
]

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")

QUESTION = HEADER_PREFIX + "question"
ASKER = HEADER_PREFIX + "asker"
ASKER_KEY = HEADER_PREFIX + "asker-key"
FAILURE = HEADER_PREFIX + "failure"
"""Of a record without a value in the place of an answer: why the question is not answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions(Generic[Q, A]):
    """Questions of one type and their answers; ``app.questions`` declares them.

    Examples:
        >>> checks = app.questions("checks", Reading, answers=Alarm, timeout="10s")
        >>> checks.stream.name, checks.answers.name
        ('checks', 'checks.answers')
    """

    name: str
    stream: Stream[Q]
    """Where the questions are, under the key of the question."""
    answers: Stream[A]
    """Where the answers are, under the key of whoever asked."""
    timeout: timedelta
    """How long an answer is waited for, by the clock."""
    keeps: timedelta = timedelta(days=1)
    """How long questions and answers stay on their topics, and tickets of gateways are good."""
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Question(Output[T]):
    """An output that asks; ``ask`` makes it."""

    questions: Questions[Any, Any] | None = None
    timeout: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Answer(Output[T]):
    """An output that answers; ``answer`` makes it."""

    reply_to: ReplyTo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered(Generic[Q]):
    """A message that says: nobody has answered a question in time.

    Whoever asks receives it instead of the answer. An answer that comes later is dropped, and
    counted.

    Examples:
        >>> checks = app.questions("checks", Reading, answers=Alarm, timeout="10s")
        >>> @app.actor(reads=readings, asks=checks)
        ... class Device:
        ...     given_up: int = 0
        ...     def receive(self, reading: Reading) -> Output[Reading]:
        ...         return ask(checks, reading)
        ...     def receive_answer(self, alarm: Alarm) -> None: ...
        ...     def receive_silence(self, silence: Unanswered[Reading]) -> None:
        ...         self.given_up += silence.question.celsius > 60
        >>> from penstock.testing import Driver
        >>> driver = Driver(app)
        >>> driver.pipe(readings, Reading("boiler", datetime(2026, 1, 1, tzinfo=UTC), 71.5))
        >>> driver.advance_clock("10s")
        >>> driver.state(Device, "boiler").given_up
        1
    """

    question: Q
    due_at: datetime
    """Until when it was waited for."""


class ReplyTo(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to answer: keep it in a field or a state to answer later.

    Examples:
        >>> checks = app.questions("checks", Reading, answers=Alarm)
        >>> @app.actor(answers=checks)
        ... class Patient:
        ...     waiting: ReplyTo | None = None
        ...     def receive(self, reading: Reading, context: Context) -> list[Output[Alarm]]:
        ...         before, self.waiting = self.waiting, ReplyTo.of(context)
        ...         at_last = Alarm(reading.device, "at last")
        ...         return [answer(checks, before, at_last)] if before else []
    """

    question: str
    asker: str
    key: bytes

    @classmethod
    def of(cls, context: Context) -> ReplyTo | None:
        """Return whom to answer a question that is being handled; None: nobody waits for it."""
        return cls.read(context.headers)

    @classmethod
    def read(cls, headers: Mapping[str, bytes]) -> ReplyTo | None:
        """Return whom the headers of a question, or of its answer, name."""
        if QUESTION not in headers or ASKER not in headers:
            return None
        question, asker = headers[QUESTION].decode(), headers[ASKER].decode()
        return cls(question=question, asker=asker, key=headers.get(ASKER_KEY, b""))


def unanswered(kind: Any) -> Any:
    """Return of which questions an annotation takes the news that there is no answer; None: none.

    ``Unanswered`` alone takes those of any.
    """
    if kind is Unanswered:
        return Any
    return get_args(kind)[0] if get_origin(kind) is Unanswered else None


def question_headers(reply_to: ReplyTo, *, keyed: bool) -> dict[str, bytes]:
    """Return the headers of a question; of an answer, whose own key is the asker's, fewer."""
    found = {QUESTION: reply_to.question.encode(), ASKER: reply_to.asker.encode()}
    return found | {ASKER_KEY: reply_to.key} if keyed else found


def failure_headers(reply_to: ReplyTo, code: str) -> dict[str, bytes]:
    """Return the headers of what stands in the place of an answer where the service failed."""
    return {**question_headers(reply_to, keyed=False), FAILURE: code.encode()}


def failure_in(headers: Mapping[str, bytes]) -> str | None:
    """Return why a question is not answered, where headers say that; None: they do not."""
    found = headers.get(FAILURE)
    return None if found is None else found.decode("utf-8", "replace")


def ask(
    questions: Questions[Q, A],
    question: Q,
    *,
    timeout: str | timedelta | None = None,
    headers: Mapping[str, bytes] | None = None,
) -> Output[Q]:
    """Ask a question: an output of a service or an actor that declares ``asks=``.

    The answer comes back as a message to the same key, or an ``Unanswered`` after the time-out,
    one of the two exactly once. Annotate the result as ``Output[...]``.

    Examples:
        >>> checks = app.questions("checks", Reading, answers=Alarm)
        >>> @app.service(reads=readings, asks=checks)
        ... def check_each(
        ...     message: Reading | Alarm | Unanswered[Reading]
        ... ) -> Output[Reading] | None:
        ...     if isinstance(message, Reading):
        ...         return ask(checks, message, timeout="5s")
    """
    span = questions.timeout if timeout is None else duration(timeout)
    return Question(questions.stream, question, headers or {}, None, questions, span)


def answer(questions: Questions[Q, A], reply_to: ReplyTo, record: A) -> Output[A]:
    """Answer a question that was kept: an output of a service or an actor with ``answers=``.

    To answer at once, return the answer itself: it goes to whoever asked what is being handled.

    Examples:
        >>> checks = app.questions("checks", Reading, answers=Alarm)
        >>> to = ReplyTo(question="readings/0/7/0", asker="plant.Device", key=b"boiler")
        >>> answer(checks, to, Alarm("boiler", "hot")).record.text
        'hot'
    """
    return Answer(questions.answers, record, {}, None, reply_to)
