"""What the OpenAPI document says of records in."""

from typing import Any

from penstock.core.graph.data import Stream
from penstock.core.graph.gateway import Gateway
from penstock.serving.describe.jsonschema import schema_document
from penstock.serving.describe.openapi import problems, reference
from penstock.serving.http.bodies import JSON, NDJSON

__all__ = ["record_paths", "record_schemas"]

_STAND: dict[str, Any] = {
    "type": "object",
    "properties": {"partition": {"type": "integer"}, "offset": {"type": "integer"}},
    "required": ["partition", "offset"],
}
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


def record_schemas(gateway: Gateway) -> dict[str, Any]:
    """Return the record types of the streams that it takes records for."""
    streams = {stream.name: schema_document(stream.record.schema) for stream in gateway.takes}
    return {"Stand": _STAND, **streams}


def record_paths(gateway: Gateway) -> dict[str, Any]:
    """Return the paths that take records."""
    return {
        f"/v1/streams/{stream.name}/records": {"post": _post(stream)} for stream in gateway.takes
    }


def _post(stream: Stream[Any]) -> dict[str, Any]:
    record = reference(stream.name)
    one = reference("Stand")
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
        "description": f"Or over a WebSocket: /v1/streams/{stream.name}/socket",
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
            **problems(
                *("400", "401", "403", "405", "408", "413"),
                *("415", "421", "422", "429", "503"),
            ),
        },
    }
