"""The room that takes questions, and gives their answers."""

import time

from starlette.routing import Route

from penstock.machine.peers.secret import shared_secret
from penstock.serving.fixture import Trouble
from penstock.serving.questions.answers import READING, Answers
from penstock.serving.questions.asked import Desk, asker_of
from penstock.serving.questions.describe import question_paths, question_schemas
from penstock.serving.questions.routes import QuestionRoutes
from penstock.serving.room import Building, Room

__all__ = ["open_questions"]


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
            questions.name: Desk(
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
        if not found:
            return None
        text = "; ".join(f"answers to {name}: {why}" for name, why in found.items())
        return Trouble(text, beginning=READING in found.values())

    async def close(self) -> None:
        """Follow no answers any more."""
        for each in self._answers.values():
            await each.close()


def open_questions(building: Building) -> Room | None:
    """Open the room, where the gateway offers questions."""
    return _Questions(building) if building.gateway.offers else None
