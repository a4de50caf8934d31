"""What the OpenAPI document says of SQL."""

from typing import Any

from penstock.core.graph.gateway import Gateway
from penstock.serving.describe.openapi import problems
from penstock.serving.http.bodies import JSON, NDJSON
from penstock.serving.sql.answers import ARROW

__all__ = ["sql_paths"]

_TEXT = {"type": "string", "minLength": 1, "description": "one SELECT"}


def sql_paths(gateway: Gateway) -> dict[str, Any]:
    """Return the paths that answer SQL, and tell what changes."""
    asked = {"name": "query", "in": "query", "required": True, "schema": _TEXT}
    body = {
        "type": "object",
        "properties": {"query": _TEXT},
        "required": ["query"],
        "additionalProperties": False,
    }
    refused = ("400", "401", "403", "405", "406", "421", "422", "429", "503")
    return {
        "/v1/sql": {
            "get": {
                "operationId": "sql_get",
                "summary": "The rows of a short query",
                "parameters": [asked, *_FRESHNESS],
                "responses": {"200": _answer(), **problems(*refused)},
            },
            "post": {
                "operationId": "sql",
                "summary": "The rows of a query",
                "parameters": [*_FRESHNESS],
                "requestBody": {"required": True, "content": {JSON: {"schema": body}}},
                "responses": {"200": _answer(), **problems(*refused, "408", "413", "415")},
            },
        },
        "/v1/sql/changes": {
            "get": _changes("sql_changes", "The rows of a query, and then what changes", [asked])
        },
        **{
            f"/v1/states/{service.name}/{state.name}/changes": {
                "get": _changes(
                    f"changes_{service.name}_{state.name}",
                    f"{state.name} of {service.name}, and then what changes in it",
                    _WHICH,
                )
            }
            for service in gateway.services
            for state in service.states
        },
    }


_WHICH = [
    {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
    for name, text in (("key", "only this key"), ("prefix", "only keys that begin so"))
]


def _changes(operation: str, summary: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    last = {
        "name": "Last-Event-ID",
        "in": "header",
        "schema": {"type": "string"},
        "description": "go on behind this event; also as ?last=",
    }
    return {
        "operationId": operation,
        "summary": f"{summary}, as server-sent events",
        "parameters": [*parameters, last],
        "responses": {
            "200": {
                "description": "events: row, ready, change, at, waiting, behind, ended",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **problems("400", "401", "403", "404", "405", "413", "421", "422", "429", "503"),
        },
    }


def _answer() -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object"}},
            "columns": {"type": "array", "items": {"type": "object"}},
            "more": {"type": "boolean"},
            "stale_seconds": {"type": ["number", "null"]},
            "stale": {"const": True, "description": "a standby answered: an owner is away"},
            "relations": {"type": "object"},
        },
        "required": ["rows", "columns", "more", "stale_seconds", "relations"],
    }
    return {
        "description": "the rows, and how far each relation was",
        "content": {
            JSON: {"schema": schema},
            NDJSON: {"schema": {"type": "string"}},
            ARROW: {"schema": {"type": "string", "contentEncoding": "binary"}},
        },
    }


_FRESHNESS = (
    {
        "name": "at_least",
        "in": "query",
        "schema": {"type": "string"},
        "description": "wait for these offsets: TOPIC:PARTITION:OFFSET, several with commas",
    },
    {
        "name": "max_stale",
        "in": "query",
        "schema": {"type": "string"},
        "description": "refuse an answer that is staler than this: 500ms, 2s",
    },
)
