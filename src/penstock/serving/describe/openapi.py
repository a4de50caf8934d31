"""The OpenAPI 3.1 document of a gateway, from what its rooms say of their paths."""

from collections.abc import Mapping
from typing import Any

from penstock import __version__
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import CONTENT_TYPE

__all__ = ["SPAN", "openapi_document", "problems", "reference"]

_PROBLEMS = {
    "400": "what was sent is not what is meant, as the document says",
    "401": "no token, or one that nobody has",
    "403": "no role of the caller may use it",
    "404": "there is no such thing here",
    "405": "another method",
    "406": "no answer of a type that is accepted",
    "408": "the body did not come",
    "410": "the ticket has expired",
    "413": "too large, or too many",
    "415": "a body of another type",
    "421": "a host that is no name of this gateway",
    "422": "records with mistakes: which, where, and what is allowed",
    "429": "too many requests of this caller",
    "504": "nobody has answered yet: the ticket is good for the answer",
    "503": "not now: Retry-After says when to come again",
}
SPAN: dict[str, Any] = {"type": "string", "pattern": r"^[0-9]{1,6}(\.[0-9]{1,6})?(ms|s|m|h|d)$"}
"""The schema of a time span."""
_REF = "#/components/schemas/"


def openapi_document(
    graph: Graph,
    gateway: Gateway,
    *,
    paths: Mapping[str, Any],
    schemas: Mapping[str, Any],
    secured: bool,
) -> dict[str, Any]:
    """Return the document; ``secured``: callers need a token."""
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": f"{graph.app}: {gateway.name}", "version": __version__},
        "paths": {"/v1/health": {"get": _health()}, **paths},
        "components": {"schemas": {"Problem": _problem(), **schemas}},
    }
    if secured:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def reference(schema: str) -> dict[str, Any]:
    """Return what stands for a schema of the document."""
    return {"$ref": f"{_REF}{schema}"}


def problems(*codes: str) -> dict[str, Any]:
    """Return what the document says of refusals: the responses of some codes."""
    content = {CONTENT_TYPE: {"schema": reference("Problem")}}
    return {code: {"description": _PROBLEMS[code], "content": content} for code in codes}


def _health() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"healthy": {"type": "boolean"}}}
    return {
        "operationId": "health",
        "summary": "Whether the gateway is well, and if not, why",
        "security": [],
        "responses": {
            "200": {"description": "it is", "content": {JSON: {"schema": schema}}},
            "503": {"description": "it is not", "content": {JSON: {"schema": schema}}},
            **problems("405", "421", "429"),
        },
    }


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
