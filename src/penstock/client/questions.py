"""Questions to the application: their answers now, or later for a ticket."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from penstock.client.asking import Asking, SyncAsking
from penstock.client.connection import Request
from penstock.client.refusals import read_json
from penstock.client.wire import Reply
from penstock.core.graph.questions import Questions
from penstock.core.options import span_of
from penstock.errors import TransientError

__all__ = ["QuestionRequests", "SyncAsked", "Ticket"]

Q = TypeVar("Q")
A = TypeVar("A")
Span = str | timedelta | None

_OK, _ACCEPTED = 200, 202
_EITHER = frozenset({_OK, _ACCEPTED})
_TURN_SECONDS = 10.0
"""For how long one request waits for an answer; then the next one does."""


@dataclass(frozen=True, slots=True)
class Ticket(Generic[A]):
    """A text with which the answer to a question can be fetched later.

    ``text`` can be kept: ``Ticket(questions, text)`` is the same ticket in another process.
    """

    questions: Questions[Any, A]
    text: str = field(repr=False)


class _Ticket(msgspec.Struct):
    ticket: str


_TICKET = msgspec.json.Decoder(_Ticket)


class QuestionRequests(Asking):
    """The requests that ask questions of the application."""

    async def ask(
        self,
        questions: Questions[Q, A],
        question: Q,
        *,
        wait: Span = None,
        once: bool = True,
    ) -> A:
        """Ask a question, and return its answer.

        It is asked once, however often it had to be sent. ``once=False`` is faster, and a question
        that had to be sent again may be asked twice. TransientError ``answer.late``: nobody has
        answered in time, which is that of ``app.questions`` unless ``wait`` says otherwise.
        """
        limit = questions.timeout if wait is None else span_of(wait)
        until = monotonic() + limit.total_seconds()
        first = min(limit.total_seconds(), _TURN_SECONDS)
        reply = await self._put(questions, question, once=once, seconds=first)
        if reply.status == _OK:
            return self._read(questions, reply)
        ticket = Ticket(questions, read_json(_TICKET, reply.body).ticket)
        return await self.answer(ticket, wait=timedelta(seconds=max(0, until - monotonic())))

    async def ask_later(
        self, questions: Questions[Q, A], question: Q, *, once: bool = True
    ) -> Ticket[A]:
        """Ask a question, and return a ticket for its answer as soon as it is on the log."""
        reply = await self._put(questions, question, once=once, seconds=0)
        if reply.status == _OK:
            place = reply.headers.get("content-location", "")
            return Ticket(questions, place.rpartition("/")[2])
        return Ticket(questions, read_json(_TICKET, reply.body).ticket)

    async def answer(self, ticket: Ticket[A], *, wait: Span = None) -> A:
        """Return the answer for a ticket; TransientError ``answer.late``: there is none in time.

        DataError ``ticket.expired``: it is not kept any more.
        """
        questions = ticket.questions
        limit = questions.timeout if wait is None else span_of(wait)
        until = monotonic() + limit.total_seconds()
        path = f"{_path(questions)}/tickets/{quote(ticket.text, safe='')}"
        while True:
            left = max(0.0, until - monotonic())
            turn = round(min(left, _TURN_SECONDS) * 1000)
            request = Request(
                method="GET",
                target=f"{path}?wait={turn}ms",
                silence_seconds=self._patience(),
            )
            reply = await self._wire.ask(request, good=_EITHER)
            if reply.status == _OK:
                return self._read(questions, reply)
            if not left:
                raise TransientError(
                    f"nobody has answered {questions.name} within {limit.total_seconds():g}s",
                    code="answer.late",
                    hint="client.answer(ticket) asks again; is the service that answers running?",
                )

    async def _put(
        self, questions: Questions[Q, A], question: Q, *, once: bool, seconds: float
    ) -> Reply:
        headers: Mapping[str, str] = {
            "Content-Type": "application/json",
            "Prefer": f"respond-async, wait={int(seconds)}",
        }
        if once:
            headers = {**headers, "Idempotency-Key": uuid.uuid4().hex}
        request = Request(
            method="POST",
            target=_path(questions),
            headers=headers,
            body=self._codec(questions.stream).encode_valid(question),
            silence_seconds=self._patience(),
        )
        return await self._wire.ask(request, good=_EITHER)

    def _patience(self) -> float:
        return self._wire.limits.silence_timeout.total_seconds() + _TURN_SECONDS

    def _read(self, questions: Questions[Any, A], reply: Reply) -> A:
        most = self._wire.limits.answer_bytes
        return self._codec(questions.answers, most=most).decode(reply.body)


class SyncAsked(SyncAsking):
    """The same, for callers without an event loop."""

    _asked: QuestionRequests

    def ask(
        self,
        questions: Questions[Q, A],
        question: Q,
        *,
        wait: Span = None,
        once: bool = True,
    ) -> A:
        """See ``Client.ask``."""
        return self._loop.run(self._asked.ask(questions, question, wait=wait, once=once))

    def ask_later(self, questions: Questions[Q, A], question: Q, *, once: bool = True) -> Ticket[A]:
        """See ``Client.ask_later``."""
        return self._loop.run(self._asked.ask_later(questions, question, once=once))

    def answer(self, ticket: Ticket[A], *, wait: Span = None) -> A:
        """See ``Client.answer``."""
        return self._loop.run(self._asked.answer(ticket, wait=wait))


def _path(questions: Questions[Any, Any]) -> str:
    return f"/v1/questions/{quote(questions.name, safe='')}"
