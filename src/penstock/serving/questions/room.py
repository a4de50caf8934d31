"""The room that takes questions, and gives their answers."""

import asyncio
import time

from starlette.routing import Route

from penstock.errors import ConfigurationError
from penstock.machine.peers.secret import shared_secret
from penstock.serving.fixture import Trouble
from penstock.serving.questions.answers import READING, Answers
from penstock.serving.questions.asked import QuestionDesk, asker_of
from penstock.serving.questions.describe import question_paths, question_schemas
from penstock.serving.questions.routes import QuestionRoutes
from penstock.serving.questions.webhooks import Posting, Webhooks
from penstock.serving.room import Building, Room

__all__ = ["open_questions"]

_SECRET_BYTES = 16


class _Questions(Room):
    def __init__(self, building: Building) -> None:
        settings, gateway, app = building.settings, building.gateway, building.graph.app
        secret = shared_secret(settings, building.site.places.home)
        self._answers = {
            questions.name: Answers(
                building.site.connection,
                questions.answers.topic.name,
                asker=asker_of(app, gateway),
                most_bytes=settings.kept_answer_bytes,
            )
            for questions in gateway.offers
        }
        desks = {
            questions.name: QuestionDesk(
                app,
                questions,
                gateway=gateway,
                writer=building.writer,
                answers=self._answers[questions.name],
                meter=building.meter,
                secret=secret,
                leaving=building.leaving,
                clock=time.time,
            )
            for questions in gateway.offers
        }
        self._webhooks = _webhooks(building)
        routes = QuestionRoutes(gateway, settings, desks=desks)
        path = "/v1/questions/{name}"
        self.routes = [
            Route(path, routes.ask, methods=["POST"]),
            Route(f"{path}/tickets/{{ticket}}", routes.answer, methods=["GET"]),
            Route(f"{path}/tickets/{{ticket}}/events", routes.events, methods=["GET"]),
            *building.socket_routes(f"{path}/socket", routes.converse),
        ]
        self.paths = question_paths(gateway)
        self.schemas = question_schemas(gateway)

    async def look(self) -> Trouble | None:
        """Return which answers do not come, and why."""
        found = {name: each.trouble for name, each in self._answers.items() if each.trouble}
        if not found and self._webhooks is not None and self._webhooks.trouble:
            return Trouble(self._webhooks.trouble)
        if not found:
            return None
        text = "; ".join(f"answers to {name}: {why}" for name, why in found.items())
        return Trouble(text, beginning=READING in found.values())

    async def close(self) -> None:
        """Follow no answers any more, and send none."""
        if self._webhooks is not None:
            await asyncio.to_thread(self._webhooks.close)
        for each in self._answers.values():
            await each.close()


def _webhooks(building: Building) -> Webhooks | None:
    """Return what sends answers to webhooks; ConfigurationError: it has no secret."""
    gateway, settings = building.gateway, building.settings
    if not gateway.webhooks:
        return None
    secret = settings.webhook_secret.reveal().encode()
    if len(secret) < _SECRET_BYTES:
        raise ConfigurationError(
            f"gateway {gateway.name!r} has webhooks, and no secret to sign their answers with",
            code="serving.webhook",
            detail=f"serving.webhook_secret needs {_SECRET_BYTES} characters at least",
            hint="openssl rand -hex 32",
        )
    posting = Posting(
        part=gateway.name,
        asker=asker_of(building.graph.app, gateway),
        topics=[questions.answers.topic.name for questions in gateway.offers],
        allowed=gateway.webhooks,
        secret=secret,
        patience=settings.webhook_patience,
        dead_letters=building.graph.dead_letters.name,
    )
    loop = asyncio.get_running_loop()

    def buried(answers: int, last: str) -> None:
        loop.call_soon_threadsafe(building.meter.buried, answers, last)

    services = building.site.settings.services
    return Webhooks(building.site.connection, posting, settings=services, buried=buried)


def open_questions(building: Building) -> Room | None:
    """Open the room, where the gateway offers questions."""
    return _Questions(building) if building.gateway.offers else None
