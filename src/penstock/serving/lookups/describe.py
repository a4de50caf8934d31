"""What the OpenAPI document says of look-ups."""

from typing import Any

from penstock.core.graph.data import Table
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.parts import Service
from penstock.serving.describe.jsonschema import schema_document
from penstock.serving.describe.openapi import SPAN, problems, reference
from penstock.serving.http.bodies import JSON
from penstock.serving.lookups.push import EVENTS

__all__ = ["lookup_paths", "lookup_schemas"]


def lookup_schemas(gateway: Gateway) -> dict[str, Any]:
    """Return the record types of the tables that it shows."""
    return {
        table.name: schema_document(table.record.schema, closed=False) for table in gateway.tables
    }


def lookup_paths(gateway: Gateway) -> dict[str, Any]:
    """Return the paths that answer for tables and states."""
    paths: dict[str, Any] = {}
    for table in gateway.tables:
        paths |= _table_paths(table)
    for service in gateway.services:
        paths |= _state_paths(service)
    return paths


def _table_paths(table: Table[Any]) -> dict[str, Any]:
    base = f"/v1/tables/{table.name}/rows"
    row = reference(table.name)
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
                "content": {EVENTS: {}},
            },
            **problems("400", "401", "403", "404", "405", "413", "421", "429", "503"),
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
    "stale_seconds": {"type": ["number", "null"]},
    "stale": {"const": True, "description": "a standby answered: the owner is away"},
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
            **problems("400", "401", "403", "404", "405", "421", "429", "503"),
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
            **problems("400", "401", "403", "404", "405", "421", "429", "503"),
        },
    }


_FRESHNESS = (
    {
        "name": "at_least",
        "in": "query",
        "schema": {"type": "string", "pattern": r"^([^:,]+:[0-9]{1,18}:[0-9]{1,18}(,|$))*$"},
        "description": "wait for these offsets: TOPIC:PARTITION:OFFSET, several with commas",
    },
    {
        "name": "max_stale",
        "in": "query",
        "schema": SPAN,
        "description": "refuse an answer that is staler than this: 500ms, 2s",
    },
    {
        "name": "wait",
        "in": "query",
        "schema": SPAN,
        "description": "wait so long for the offsets of at_least",
    },
)
