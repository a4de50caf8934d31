"""What the OpenAPI document says of questions."""

from typing import Any

from penstock.core.graph.gateway import Gateway
from penstock.core.graph.questions import Questions
from penstock.serving.describe.jsonschema import schema_document
from penstock.serving.describe.openapi import SPAN, problems, reference
from penstock.serving.http.bodies import JSON
from penstock.serving.questions.push import EVENTS
from penstock.serving.questions.ticket import TICKET_CHARACTERS
from penstock.serving.writing.keys import IDEMPOTENCY_KEY, KEY_CHARACTERS

__all__ = ["question_paths", "question_schemas"]

_TICKET: dict[str, Any] = {
    "type": "object",
    "properties": {"ticket": {"type": "string"}, "href": {"type": "string"}},
    "required": ["ticket", "href"],
}
_ASKING = (
    {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": KEY_CHARACTERS},
        "description": "the same question with the same key is asked once, and has one answer",
    },
    {
        "name": "Prefer",
        "in": "header",
        "schema": {"type": "string"},
        "description": "respond-async: a ticket at once; wait=5: for so many seconds at most",
    },
)
_WEBHOOK = {
    "name": "Webhook-Url",
    "in": "header",
    "schema": {"type": "string", "format": "uri"},
    "description": "send the answer there, too",
}
_OF_TICKET = {
    "name": "ticket",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": TICKET_CHARACTERS},
}
_WAIT = {
    "name": "wait",
    "in": "query",
    "schema": SPAN,
    "description": "for how long to wait for the answer: 500ms, 2s",
}
_EITHER = ("401", "403", "404", "405", "421", "429", "503")


def question_schemas(gateway: Gateway) -> dict[str, Any]:
    """Return the record types of the questions and the answers that it offers."""
    found: dict[str, Any] = {"Ticket": _TICKET}
    for each in gateway.offers:
        found[each.name] = schema_document(each.stream.record.schema)
        found[each.answers.name] = schema_document(each.answers.record.schema, closed=False)
    return found


def question_paths(gateway: Gateway) -> dict[str, Any]:
    """Return the paths of questions and of their answers."""
    found = {}
    for each in gateway.offers:
        path = f"/v1/questions/{each.name}"
        found[path] = {"post": _ask(each, webhooks=bool(gateway.webhooks))}
        found[f"{path}/tickets/{{ticket}}"] = {"get": _answer(each)}
        found[f"{path}/tickets/{{ticket}}/events"] = {"get": _events(each)}
    return found


def _ask(questions: Questions[Any, Any], *, webhooks: bool) -> dict[str, Any]:
    return {
        "operationId": f"ask_{questions.name}",
        "summary": f"Ask {questions.name}, and get the answer",
        "description": f"Or over a WebSocket: /v1/questions/{questions.name}/socket",
        "parameters": [*_ASKING, *([_WEBHOOK] if webhooks else [])],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": reference(questions.name)}},
        },
        "responses": {
            "200": _the_answer(questions),
            "202": _no_answer_yet() | {"links": _later(questions)},
            **problems("400", "408", "410", "413", "415", "422", "504", *_EITHER),
        },
    }


def _answer(questions: Questions[Any, Any]) -> dict[str, Any]:
    return {
        "operationId": f"answer_{questions.name}",
        "summary": "The answer for a ticket",
        "parameters": [_OF_TICKET, _WAIT],
        "responses": {
            "200": _the_answer(questions),
            "202": _no_answer_yet(),
            **problems("400", "410", "422", *_EITHER),
        },
    }


def _events(questions: Questions[Any, Any]) -> dict[str, Any]:
    return {
        "operationId": f"events_{questions.name}",
        "summary": "The answer for a ticket, as soon as there is one, as a server-sent event",
        "parameters": [_OF_TICKET],
        "responses": {
            "200": {
                "description": "the event answer, failed, expired, or ended",
                "content": {EVENTS: {}},
            },
            "204": {"description": "it has been told: there is no reason to connect again"},
            **problems("400", "410", *_EITHER),
        },
    }


def _the_answer(questions: Questions[Any, Any]) -> dict[str, Any]:
    schema = reference(questions.answers.name)
    return {"description": "the answer", "content": {JSON: {"schema": schema}}}


def _later(questions: Questions[Any, Any]) -> dict[str, Any]:
    """Return where the answer for a ticket is."""
    parameters = {"ticket": "$response.body#/ticket"}
    return {
        kind: {"operationId": f"{kind}_{questions.name}", "parameters": parameters}
        for kind in ("answer", "events")
    }


def _no_answer_yet() -> dict[str, Any]:
    content = {JSON: {"schema": reference("Ticket")}}
    return {"description": "no answer yet: the ticket is good for it", "content": content}
