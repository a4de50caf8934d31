"""``/v1/questions/{name}``: a question in, its answer out; ``tickets/{ticket}``: the answer later.

Whoever waits gets the answer, or 504 with a ticket. Whoever prefers not to gets the ticket at once.
"""

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from penstock.core.graph.gateway import Gateway
from penstock.core.graph.webhooks import is_webhook
from penstock.core.settings.settings import ServingSettings
from penstock.serving.http.bodies import JSON, Bodies, content_type
from penstock.serving.http.conversation import Conversation
from penstock.serving.http.guard import caller_of
from penstock.serving.http.problems import Problem
from penstock.serving.http.rights import require_right, until_refused, while_allowed
from penstock.serving.questions.asked import QuestionDesk
from penstock.serving.questions.prefer import read_preference, read_wait
from penstock.serving.questions.push import AnswerEvents
from penstock.serving.questions.socket import QuestionSocket
from penstock.serving.questions.window import Failure
from penstock.serving.writing.keys import idempotency_key

__all__ = ["WEBHOOK", "QuestionRoutes", "place_of"]

WEBHOOK = "Webhook-Url"
_SOON = {"Retry-After": "1"}


def place_of(name: str, ticket: str) -> str:
    """Return the path at which the answer for a ticket is."""
    return f"/v1/questions/{quote(name, safe='')}/tickets/{ticket}"


class QuestionRoutes:
    """Takes questions, and gives their answers."""

    def __init__(
        self, gateway: Gateway, settings: ServingSettings, *, desks: Mapping[str, QuestionDesk]
    ) -> None:
        self._gateway = gateway
        self._desks = desks
        self._bodies = Bodies(
            body_bytes=settings.body_bytes,
            silence_seconds=settings.silence_timeout.total_seconds(),
        )
        self._most = settings.answer_wait

    async def ask(self, request: Request) -> Response:
        """Take a question."""
        desk = self.desk(request.scope)
        name = desk.questions.name
        if (kind := content_type(request)) != JSON:
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "body.type",
                f"the body is {kind}",
                allowed=f"one question as {JSON}",
            )
        given = idempotency_key(request)
        key = None if given is None else given.scoped(desk.questions.stream.topic.name)
        prefers = read_preference(request, most=min(desk.questions.timeout, self._most))
        caller = caller_of(request.scope).name
        hook = self._hook(request)
        ticket, text, before = await desk.ask(
            await self._bodies.whole(request), caller=caller, key=key, hook=hook
        )
        place = place_of(name, text)
        headers = {"Idempotency-Replayed": "true"} if before else {}
        if prefers.later:
            headers["Preference-Applied"] = "respond-async"
        answer = None
        if prefers.wait_seconds or before:
            answer = await desk.answers.wait(ticket, seconds=prefers.wait_seconds)
        if answer is not None:
            return _answered(answer, {**headers, "Content-Location": place})
        if prefers.later:
            return _accepted(name, text, {**headers, "Location": place})
        raise Problem(
            HTTPStatus.GATEWAY_TIMEOUT,
            "answer.late",
            f"nobody has answered within {prefers.wait_seconds:g}s; the ticket is good for later",
            headers={**headers, **_SOON, "Location": place},
            ticket=text,
            href=place,
        )

    def _hook(self, request: Request) -> str:
        """Return where the answer is to be sent; Problem ``webhook.not-allowed``."""
        hook = request.headers.get(WEBHOOK, "")
        if hook and not is_webhook(hook, self._gateway.webhooks):
            raise Problem(
                HTTPStatus.BAD_REQUEST,
                "webhook.not-allowed",
                f"the answer cannot be sent to {hook!r}",
                allowed=", ".join(self._gateway.webhooks)
                or "none: the application has no webhooks",
            )
        return hook

    async def answer(self, request: Request) -> Response:
        """Give the answer for a ticket, or say that there is none yet."""
        desk = self.desk(request.scope)
        text = request.path_params["ticket"]
        ticket = desk.read(text, caller=caller_of(request.scope).name)
        seconds = min(read_wait(request, most=self._most), desk.seconds_left(ticket))
        found = await desk.answers.wait(ticket, seconds=seconds)
        if found is None:
            return _accepted(desk.questions.name, text, {})
        return _answered(found, {})

    async def events(self, request: Request) -> Response:
        """Tell the answer for a ticket as a server-sent event."""
        desk = self.desk(request.scope)
        ticket = desk.read(request.path_params["ticket"], caller=caller_of(request.scope).name)
        if request.headers.get("last-event-id"):
            # It has been told: this is how a browser is asked to connect no more.
            return Response(status_code=HTTPStatus.NO_CONTENT)
        desk.answers.require_begun()
        name = desk.questions.name
        refused = until_refused(request.scope, self._gateway, name)
        return AnswerEvents(desk, ticket, refused=refused)

    async def converse(self, conversation: Conversation) -> None:
        """Take questions over a WebSocket."""
        desk = self.desk(conversation.scope)
        desk.answers.require_begun()
        await conversation.accept()
        taking = QuestionSocket(conversation, desk).take()
        await while_allowed(taking, conversation.scope, self._gateway, desk.questions.name)

    def desk(self, scope: Scope) -> QuestionDesk:
        """Return who takes the questions that a path names; Problem: nobody, or not for them."""
        name = scope["path_params"]["name"]
        desk = self._desks.get(name)
        if desk is None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "questions.unknown",
                f"this gateway offers no questions {name!r}",
                allowed=", ".join(self._desks),
            )
        require_right(scope, self._gateway, name)
        return desk


def _answered(answer: bytes, headers: Mapping[str, str]) -> Response:
    if isinstance(answer, Failure):
        problem = answer.problem()
        problem.headers.update(headers)
        raise problem
    return Response(answer, media_type=JSON, headers=dict(headers))


def _accepted(name: str, ticket: str, headers: Mapping[str, str]) -> Response:
    return Response(
        msgspec.json.encode({"ticket": ticket, "href": place_of(name, ticket)}),
        status_code=HTTPStatus.ACCEPTED,
        media_type=JSON,
        headers={**_SOON, **headers},
    )
