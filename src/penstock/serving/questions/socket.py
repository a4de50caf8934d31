"""``/v1/questions/{name}/socket``: questions in over a WebSocket, answers out as they come.

Each message of the client has an ``id`` of its own choice, and a ``question`` or a ``ticket``. What
it is told of it has the same id: the ticket once the question is on the log, and then the answer.
A client may have so many questions open; beyond that nothing is read from it.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.errors import PenstockError, TransientError
from penstock.serving.http.caller import Caller
from penstock.serving.http.conversation import Conversation
from penstock.serving.http.guard import still_calling
from penstock.serving.http.problems import Problem, problem_of
from penstock.serving.questions.asked import QuestionDesk
from penstock.serving.questions.ticket import Ticket
from penstock.serving.questions.window import Failure
from penstock.serving.writing.keys import IdempotencyKey

__all__ = ["OPEN_QUESTIONS", "QuestionSocket"]

LOG = logging.getLogger("penstock.serving")

OPEN_QUESTIONS = 100
"""So many questions of one client may be open."""
_TURN_SECONDS = 60.0
_AGAIN_SECONDS = 1.0
_ID_CHARACTERS = 64


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    """What a client says; the question stays as it was sent."""

    id: str | int
    question: msgspec.Raw = msgspec.Raw()
    ticket: str | None = None
    key: str | None = None


_MESSAGES = msgspec.json.Decoder(_Message)


class QuestionSocket:
    """Takes the questions of one client; for one conversation."""

    def __init__(self, conversation: Conversation, desk: QuestionDesk) -> None:
        self._conversation = conversation
        self._desk = desk
        self._room = asyncio.Semaphore(OPEN_QUESTIONS)

    async def take(self) -> None:
        """Take questions until the client goes, or the gateway is to stop; then all tasks end."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while (message := await self._conversation.hear()) is not None:
                caller = still_calling(self._conversation.scope)
                if caller is None:
                    raise Problem(
                        HTTPStatus.UNAUTHORIZED, "caller.unknown", "the token is valid no more"
                    )
                await self._room.acquire()
                task = asyncio.create_task(self._answer(message, caller))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                task.add_done_callback(lambda _: self._room.release())
                del message
        finally:
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, raw: str | bytes, caller: Caller) -> None:
        given: str | int | None = None
        try:
            message = _read(raw)
            given = message.id
            ticket, text = await self._ticket(message, caller)
            if message.question:
                await self._tell({"id": given, "ticket": text})
            answer = await self._wait(ticket)
            await self._tell({"id": given, "answer": msgspec.Raw(answer)})
        except Problem as problem:
            await self._tell({"id": given, "problem": problem.document()})
        except PenstockError as error:
            await self._tell({"id": given, "problem": problem_of(error).document()})
        except Exception:
            # A mistake of ours: the client is told no more than that.
            LOG.exception("a question failed")
            failed = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the gateway failed")
            await self._tell({"id": given, "problem": failed.document()})

    async def _ticket(self, message: _Message, caller: Caller) -> tuple[Ticket, str]:
        desk = self._desk
        if not message.question:
            text = message.ticket or ""
            return desk.read(text, caller=caller.name), text
        key = None
        if message.key is not None:
            topic = desk.questions.stream.topic.name
            key = IdempotencyKey(message.key, caller.name).scoped(topic)
        raw = bytes(message.question)
        ticket, text, _ = await desk.ask(raw, caller=caller.name, key=key)
        return ticket, text

    async def _wait(self, ticket: Ticket) -> bytes:
        """Return the answer; Problem ``answer.failed``, or ``ticket.expired``: none in time."""
        while (left := self._desk.seconds_left(ticket)) > 0:
            try:
                found = await self._desk.answers.wait(ticket, seconds=min(left, _TURN_SECONDS))
            except TransientError:  # the log cannot be asked now
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            if isinstance(found, Failure):
                raise found.problem()
            if found is not None:
                return found
        raise self._desk.expired()

    async def _tell(self, document: dict[str, Any]) -> None:
        encoded = msgspec.json.encode(document)
        while not self._conversation.tell(encoded):
            await self._conversation.drained()  # it has to read before it is told more


def _read(raw: str | bytes) -> _Message:
    """Return what a client says; Problem ``message.wrong``."""
    allowed = '{"id": ..., "question": {...}}, or {"id": ..., "ticket": "..."}'
    try:
        message = _MESSAGES.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Problem(
            HTTPStatus.BAD_REQUEST, "message.wrong", str(error), allowed=allowed
        ) from error
    if bool(message.question) == (message.ticket is not None):
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "message.wrong",
            "it has a question, or a ticket",
            allowed=allowed,
        )
    if len(str(message.id)) > _ID_CHARACTERS:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "message.wrong",
            f"its id has more than {_ID_CHARACTERS} characters",
        )
    return message
