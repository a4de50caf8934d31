"""Questions and answers between parts: how they are declared, and who asks and answers them."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from penstock.core.declare.declarations import Declarations
from penstock.core.graph.actor import CONTEXT
from penstock.core.graph.data import Stream
from penstock.core.graph.questions import Questions
from penstock.core.options import Options
from penstock.core.place import caller
from penstock.core.records.eventtime import EventTime
from penstock.core.records.record import RecordType
from penstock.core.topic import DEFAULT_PARTITIONS, Partitioning, TopicSpec
from penstock.errors import Place

__all__ = ["DEFAULT_ANSWER_TIMEOUT", "DEFAULT_KEEPS", "DeclaresQuestions", "Talk", "read_talk"]

Q = TypeVar("Q")
A = TypeVar("A")

DEFAULT_ANSWER_TIMEOUT = timedelta(seconds=30)
DEFAULT_KEEPS = timedelta(days=1)
"""How long questions and answers stay on their topics."""


class DeclaresQuestions:
    """Declares questions with their answers."""

    _declared: Declarations

    def questions(
        self,
        name: str,
        record: type[Q],
        *,
        answers: type[A],
        timeout: str | timedelta = DEFAULT_ANSWER_TIMEOUT,
        keeps: str | timedelta | None = None,
        partitions: int = DEFAULT_PARTITIONS,
    ) -> Questions[Q, A]:
        """Declare questions that parts ask each other, and their answers.

        A part asks with ``asks=`` and ``ask(...)``; one part answers with ``answers=``. Questions
        are on a topic of this name, answers on ``<name>.answers``. A gateway with ``offers=`` lets
        callers over HTTP ask them.

        Args:
            name: The name of the questions and of their topic.
            record: The type of a question; its key decides who answers.
            answers: The type of an answer.
            timeout: How long an answer is waited for, unless ``ask`` says otherwise.
            keeps: How long questions and answers are kept, and tickets of gateways are good (1d).
            partitions: How many partitions both topics have: as many as what the asking part reads.

        Examples:
            >>> checks = app.questions("checks", Reading, answers=Alarm, timeout="10s")
            >>> @app.service(answers=checks)
            ... def check(reading: Reading) -> Alarm:
            ...     return Alarm(reading.device, "hot" if reading.celsius > 60 else "fine")
        """
        place = caller()
        options = self._declared.options("questions", name, place)
        name = options.name(name)
        count = options.count("partitions", partitions, DEFAULT_PARTITIONS)
        given = options.span("timeout", timeout, DEFAULT_ANSWER_TIMEOUT)
        if not given:
            options.wrong("timeout", "nobody could answer in no time", 'timeout="10s"')
        least = max(DEFAULT_KEEPS, given)
        kept = least if keeps is None else options.span("keeps", keeps, least)
        if kept < given:
            options.wrong(
                "keeps", "an answer must be kept until it is waited for no more", 'keeps="1d"'
            )

        stream = partial(self._stream, partitions=count, retention=kept, place=place)
        asked = self._declared.record_type(name, record, place)
        answer_type = self._declared.record_type(f"{name}.answers", answers, place)
        return Questions(
            name=name,
            stream=stream(name, asked, partitioning="key"),
            answers=stream(
                f"{name}.answers",
                answer_type,
                partitioning="key" if answer_type.schema.key else "round_robin",
            ),
            timeout=given,
            keeps=kept,
            place=place,
        )

    def _stream(
        self,
        name: str,
        record: RecordType[Any],
        *,
        partitioning: Partitioning,
        partitions: int,
        retention: timedelta,
        place: Place | None,
    ) -> Stream[Any]:
        """Declare the stream of the questions, or of their answers."""
        topic = TopicSpec(
            name=name, partitions=partitions, partitioning=partitioning, retention=retention
        )
        # Silence here is no sign of the time: it must not hold back that of other streams.
        time = EventTime(follows="newest")
        made = Stream(name=name, record=record, topic=topic, event_time=time, place=place)
        self._declared.data.append(made)
        return made


@dataclass(frozen=True, slots=True)
class Talk:
    """What a service asks and answers, and the streams that this takes."""

    asks: tuple[Questions[Any, Any], ...]
    answers: tuple[Questions[Any, Any], ...]

    @property
    def reads(self) -> tuple[Any, ...]:
        """Return the streams that it reads: questions, and answers to its own."""
        return (*(each.stream for each in self.answers), *(each.answers for each in self.asks))

    @property
    def writes(self) -> tuple[Any, ...]:
        """Return the streams that it writes."""
        return (*(each.answers for each in self.answers), *(each.stream for each in self.asks))

    @property
    def context(self) -> str | None:
        """Return the name under which each call gets a Context, whose headers say who asked."""
        return CONTEXT if self.asks or self.answers else None

    @property
    def feedback(self) -> tuple[str, ...]:
        """Return the names of those that lead round to it, as every question does."""
        return tuple(each.stream.name for each in self.asks)


def read_talk(asks: Any, answers: Any, options: Options) -> Talk:
    """Return what a service asks and answers; what is no declared questions is a problem."""
    found = []
    for option, given in (("asks", asks), ("answers", answers)):
        listed = given if isinstance(given, tuple | list) else (given,)
        for each in listed:
            if not isinstance(each, Questions):
                hint = 'questions = app.questions("checks", Check, answers=Verdict)'
                options.wrong(option, f"{each!r} is not what app.questions(...) returned", hint)
        found.append(tuple(each for each in listed if isinstance(each, Questions)))
    return Talk(*found)
