"""What the OpenAPI document says of live queries."""

from typing import Any

from penstock.serving.describe.openapi import problems
from penstock.serving.http.bodies import JSON
from penstock.serving.live.stream import EVENTS

__all__ = ["live_paths"]

_SUBSCRIPTION = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "type": {"const": "subscribe"},
        "id": {"type": "string", "minLength": 1, "maxLength": 64},
        "live": {"type": "string"},
        "query": {"type": "object"},
        "face": {"enum": ["events", "results"]},
        "resume": {"type": "string"},
        "squash": {"type": "string"},
    },
}
_ASKED = {
    "required": True,
    "content": {
        JSON: {
            "schema": {
                "type": "object",
                "required": ["subscribe"],
                "properties": {
                    "subscribe": {"type": "array", "items": _SUBSCRIPTION, "minItems": 1},
                    "wait": {"type": "string"},
                },
            }
        }
    },
}
_MESSAGES = {
    "type": "object",
    "properties": {"messages": {"type": "array", "items": {"type": "object"}}},
}
_REFUSED = problems("400", "401", "403", "405", "408", "413", "415", "421", "422", "429", "503")


def live_paths() -> dict[str, Any]:
    """Return the paths over which live queries are followed; the messages have a page of docs."""
    stream = {
        "200": {
            "description": "a message for each event, without end",
            "content": {EVENTS: {"schema": {"type": "string"}}},
        },
        **_REFUSED,
    }
    answer = {
        "200": {"description": "messages", "content": {JSON: {"schema": _MESSAGES}}},
        **_REFUSED,
    }
    subscribe = {
        "name": "subscribe",
        "in": "query",
        "required": True,
        "schema": {"type": "string"},
        "description": "a subscription as JSON; repeat it for several",
    }
    return {
        "/v1/live/events": {
            "get": {
                "operationId": "live_events",
                "summary": "Follow live queries, as server-sent events",
                "parameters": [subscribe],
                "responses": stream,
            },
            "post": {
                "operationId": "live_events_of",
                "summary": "Follow live queries, as server-sent events",
                "requestBody": _ASKED,
                "responses": stream,
            },
        },
        "/v1/live/result": {"get": _result()},
        "/v1/live/poll": {
            "post": {
                "operationId": "live_poll",
                "summary": "Follow live queries by asking again and again",
                "requestBody": _ASKED,
                "responses": answer,
            }
        },
    }


def _result() -> dict[str, Any]:
    texts = [
        ("query", "the query as JSON; everything, if it is left out"),
        ("live", "the live queries, where there are several"),
        ("max_stale", "how old the answer may be, such as 5s"),
    ]
    result = {
        "type": "object",
        "properties": {
            "documents": {"type": "array", "items": {"type": "object"}},
            "ordered": {"type": "boolean"},
            "positions": {"type": "object"},
            "token": {"type": "string"},
        },
    }
    return {
        "operationId": "live_result",
        "summary": "The result of a query, with an entity tag",
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
            for name, text in texts
        ],
        "responses": {
            "200": {"description": "the result", "content": {JSON: {"schema": result}}},
            "304": {"description": "it has not changed"},
            **_REFUSED,
        },
    }
