"""The OpenAPI 3.1 document of a gateway: made from the graph, so it cannot be out of date."""

from typing import Any

from penstock import __version__
from penstock.core.graph.data import Stream, Table
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.serving.describe.jsonschema import schema_document
from penstock.serving.http.bodies import JSON, NDJSON
from penstock.serving.http.problems import CONTENT_TYPE

__all__ = ["openapi_document"]

_PROBLEMS = {
    "400": "what was sent is not what is meant, as the document says",
    "401": "no token, or one that nobody has",
    "403": "no role of the caller may use it",
    "404": "there is no such thing here",
    "405": "another method",
    "408": "the body did not come",
    "413": "too large, or too many",
    "415": "a body of another type",
    "421": "a host that is no name of this gateway",
    "422": "records with mistakes: which, where, and what is allowed",
    "429": "too many requests of this caller",
    "503": "not now: Retry-After says when to come again",
}
_STAND: dict[str, Any] = {
    "type": "object",
    "properties": {"partition": {"type": "integer"}, "offset": {"type": "integer"}},
    "required": ["partition", "offset"],
}
_REF = "#/components/schemas/"


_SENDING = (
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        "description": "the same request with the same key writes nothing twice",
    },
    {
        "name": "atomic",
        "in": "query",
        "schema": {"type": "boolean"},
        "description": "all records of the request, or none",
    },
    {
        "name": "answer",
        "in": "query",
        "schema": {"enum": ["each", "summary"]},
        "description": "of lines: an answer for each, or for those with mistakes alone",
    },
)


def openapi_document(graph: Graph, gateway: Gateway, *, secured: bool) -> dict[str, Any]:
    """Return the document; ``secured``: callers need a token."""
    paths: dict[str, Any] = {"/v1/health": {"get": _health()}}
    schemas: dict[str, Any] = {"Problem": _problem(), "Stand": _STAND}
    for stream in gateway.takes:
        schemas[stream.name] = schema_document(stream.record.schema)
        paths[f"/v1/streams/{stream.name}/records"] = {"post": _post(stream)}
    for table in gateway.tables:
        schemas[table.name] = schema_document(table.record.schema, closed=False)
        paths |= _table_paths(table)
    for service in gateway.services:
        paths |= _state_paths(service)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": f"{graph.app}: {gateway.name}", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if secured:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _health() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"healthy": {"type": "boolean"}}}
    return {
        "operationId": "health",
        "summary": "Whether the gateway is well, and if not, why",
        "security": [],
        "responses": {
            "200": {"description": "it is", "content": {JSON: {"schema": schema}}},
            "503": {"description": "it is not", "content": {JSON: {"schema": schema}}},
            **_problems("405", "421", "429"),
        },
    }


def _post(stream: Stream[Any]) -> dict[str, Any]:
    record = {"$ref": f"{_REF}{stream.name}"}
    one = {"$ref": f"{_REF}Stand"}
    listed = {
        "type": "object",
        "properties": {
            "accepted": {"type": "integer"},
            "refused": {"type": "integer"},
            "records": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["accepted", "refused", "records"],
    }
    return {
        "operationId": f"post_{stream.name}",
        "summary": f"Put records on the stream {stream.name}",
        "parameters": [*_SENDING],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"anyOf": [record, {"type": "array", "items": record}]}},
                NDJSON: {"schema": record},
            },
        },
        "responses": {
            "200": {
                "description": "lines: where each record stands, or its mistake",
                "content": {NDJSON: {"schema": {"type": "object"}}},
            },
            "201": {
                "description": "all records are on the log",
                "content": {JSON: {"schema": {"anyOf": [one, listed]}}},
            },
            "207": {
                "description": "some records are on the log, the others have mistakes",
                "content": {JSON: {"schema": listed}},
            },
            **_problems(
                *("400", "401", "403", "405", "408", "413"),
                *("415", "421", "422", "429", "503"),
            ),
        },
    }


def _table_paths(table: Table[Any]) -> dict[str, Any]:
    base = f"/v1/tables/{table.name}/rows"
    row = {"$ref": f"{_REF}{table.name}"}
    return {
        f"/v1/tables/{table.name}/changes": {"get": _changes(table)},
        f"{base}/{{key}}": {"get": _get(f"row_{table.name}", f"A row of {table.name}", row)},
        base: {"get": _scan(f"rows_{table.name}", f"Rows of {table.name}, by key", row)},
    }


def _changes(table: Table[Any]) -> dict[str, Any]:
    texts = [("key", "only this key"), ("prefix", "only keys that begin so")]
    return {
        "operationId": f"changes_{table.name}",
        "summary": f"Rows of {table.name}, and then what changes in them, as server-sent events",
        "parameters": [
            *(
                {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
                for name, text in texts
            ),
            {
                "name": "Last-Event-ID",
                "in": "header",
                "schema": {"type": "string"},
                "description": "go on behind this event",
            },
        ],
        "responses": {
            "200": {
                "description": "events: row, ready, change, behind",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **_problems("401", "403", "404", "405", "413", "421", "429", "503"),
        },
    }


def _state_paths(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (state.name for state in service.states):
        base = f"/v1/states/{service.name}/{name}/values"
        found[f"{base}/{{key}}"] = {
            "get": _get(f"value_{service.name}_{name}", f"{name} of a key of {service.name}", {})
        }
        found[base] = {
            "get": _scan(f"values_{service.name}_{name}", f"{name} of {service.name}, by key", {})
        }
    return found


_ABOUT = {
    "positions": {"type": "object"},
    "stale_seconds": {"type": "number"},
}


def _get(operation: str, summary: str, value: dict[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"key": {"type": "string"}, "value": value, **_ABOUT},
        "required": ["key", "value", "positions", "stale_seconds"],
    }
    return {
        "operationId": operation,
        "summary": summary,
        "parameters": [
            {
                "name": "key",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
            },
            *_FRESHNESS,
        ],
        "responses": {
            "200": {"description": "what it has", "content": {JSON: {"schema": schema}}},
            **_problems("400", "401", "403", "404", "405", "421", "429", "503"),
        },
    }


def _scan(operation: str, summary: str, value: dict[str, Any]) -> dict[str, Any]:
    row = {"type": "object", "properties": {"key": {"type": "string"}, "value": value}}
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": row},
            "next": {"type": ["string", "null"]},
            **_ABOUT,
        },
        "required": ["rows", "next", "positions", "stale_seconds"],
    }
    texts = [("prefix", "keys that begin so"), ("from", "this key and those behind it")]
    texts += [("to", "only keys before this one"), ("after", "`next` of the answer before")]
    return {
        "operationId": operation,
        "summary": summary,
        "parameters": [
            *(
                {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
                for name, text in texts
            ),
            {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}},
            *_FRESHNESS,
        ],
        "responses": {
            "200": {"description": "the rows, by key", "content": {JSON: {"schema": schema}}},
            **_problems("400", "401", "403", "404", "405", "421", "429", "503"),
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


def _problems(*codes: str) -> dict[str, Any]:
    content = {CONTENT_TYPE: {"schema": {"$ref": f"{_REF}Problem"}}}
    return {code: {"description": _PROBLEMS[code], "content": content} for code in codes}


def _problem() -> dict[str, Any]:
    return {
        "type": "object",
        "description": "problem details, RFC 9457",
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string"},
            "detail": {"type": "string"},
            "path": {"type": "string"},
            "allowed": {"type": "string"},
            "errors": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["type", "title", "status", "code", "detail"],
    }
