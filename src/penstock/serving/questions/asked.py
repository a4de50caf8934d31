"""Questions of one kind, as callers ask them: onto the log, with a ticket for the answer."""

import asyncio
import os
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from penstock.core.graph.gateway import Gateway
from penstock.core.graph.questions import Questions, ReplyTo, question_headers
from penstock.core.partitioner import partition_of
from penstock.errors import PenstockError
from penstock.serving.http.problems import Problem
from penstock.serving.meter import Meter
from penstock.serving.questions.answers import Answers
from penstock.serving.questions.ticket import ID_BYTES, Seal, Ticket
from penstock.serving.writing.parsing import Mistake, RecordReader, Taken, refusal
from penstock.serving.writing.slots import Once, Target, digest_of
from penstock.serving.writing.writer import Writer

__all__ = ["QuestionDesk", "asker_of"]


def asker_of(app: str, gateway: Gateway) -> str:
    """Return under which name a gateway asks, all of its processes alike."""
    return f"{app}.{gateway.name}"


class QuestionDesk:
    """Takes the questions of one kind, and knows their tickets; for one event loop."""

    def __init__(
        self,
        app: str,
        questions: Questions[Any, Any],
        *,
        gateway: Gateway,
        writer: Writer,
        answers: Answers,
        meter: Meter,
        secret: bytes,
        leaving: asyncio.Event,
        clock: Callable[[], float],
    ) -> None:
        self.leaving = leaving
        """Set when the gateway is to stop."""
        self.questions = questions
        self.answers = answers
        self._asker = asker_of(app, gateway)
        self._reader = RecordReader(questions.stream)
        self._writer = writer
        self._meter = meter
        self._seal = Seal(secret, self._asker, questions.name)
        self._clock = clock
        self._keeps = questions.keeps.total_seconds()

    async def ask(
        self, raw: bytes, *, caller: str, key: bytes | None, hook: str = ""
    ) -> tuple[Ticket, str, bool]:
        """Put a question on the log; return its ticket, and whether it had been asked before.

        With an idempotency ``key`` it is asked once. The answer is sent to ``hook``, too.
        TransientError: try again. Problem: it has a mistake, or the key was used for another one.
        """
        record = self._reader.read(raw)
        self._meter.took(1)
        if isinstance(record, Mistake):
            self._meter.settled(refused=1)
            raise refusal(record)
        try:
            ticket = self._ticket(hook)
            text = self._seal.seal(ticket, caller=caller)
            reply_to = ReplyTo(
                question=ticket.id.hex(), asker=self._asker, key=ticket.id + hook.encode()
            )
            headers = tuple(question_headers(reply_to, keyed=True).items())
            taken = Taken(record.key, record.value, headers)
            if key is None:
                await self._write(taken)
            else:
                before = await self._write_once(taken, raw, key=key, note=text, hook=hook)
                if before:
                    self._meter.settled(refused=1)
                    return self.read(before, caller=caller), before, True
        except BaseException:
            self._meter.undone(1)
            raise
        self._meter.settled(passed=1)
        return ticket, text, False

    def read(self, text: str, *, caller: str) -> Ticket:
        """Return the ticket that a caller has; Problem ``ticket.unknown`` or ``ticket.expired``."""
        ticket = self._seal.open(text, caller=caller)
        if ticket is None:
            raise Problem(
                HTTPStatus.NOT_FOUND, "ticket.unknown", "this is no ticket of yours for this"
            )
        if self.seconds_left(ticket) <= 0:
            raise self.expired()
        return ticket

    def expired(self) -> Problem:
        """Return the problem of a ticket that is not good any more."""
        return Problem(
            HTTPStatus.GONE,
            "ticket.expired",
            "the answer is not kept any more, or nobody gave one in time",
            allowed=f"{self._keeps:g}s behind the question",
        )

    def seconds_left(self, ticket: Ticket) -> float:
        """Return for how long a ticket is good."""
        return ticket.asked_at + self._keeps - self._clock()

    def _ticket(self, hook: str) -> Ticket:
        """Return a new ticket: its answer will not stand before what is known by now."""
        id_ = os.urandom(ID_BYTES)
        partition = partition_of(id_ + hook.encode(), self.answers.partitions)
        return Ticket(id_, self._clock(), partition, self.answers.position(partition))

    async def _write(self, taken: Taken) -> None:
        intake = self._writer.intake
        intake.require_room(1)
        writing = intake.send(self.questions.stream, [taken])
        await writing.done
        outcome = writing.outcomes[0]
        if isinstance(outcome, PenstockError):
            raise outcome
        if isinstance(outcome, Mistake):
            raise refusal(outcome)

    async def _write_once(
        self, taken: Taken, raw: bytes, *, key: bytes, note: str, hook: str
    ) -> str:
        """Write a question unless it was asked before; return its ticket then, else nothing."""
        self._writer.intake.require_room(0)
        topic = self.questions.stream.topic.name
        request = digest_of([b"question", topic.encode(), raw, hook.encode()])
        target = Target(topic=topic, partitions=self._writer.partitions.get(topic))
        once = Once(key=key, request=request, note=note)
        written = await self._writer.transactions.write(target, [taken], once=once)
        return written.note if written.before else ""
