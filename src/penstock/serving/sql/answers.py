"""Rows of an answer in the form that the caller accepts: JSON, lines of JSON, or Arrow."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from penstock.serving.http.asked import lists
from penstock.serving.http.bodies import JSON, NDJSON
from penstock.serving.http.problems import Problem
from penstock.serving.relations.running import Found

__all__ = ["ARROW", "about", "chosen_form", "row_objects"]

ARROW = "application/vnd.apache.arrow.stream"
_ENCODER = msgspec.json.Encoder()
_ANY = frozenset({"", "*/*", "application/*"})

Form = Callable[[Found], Response]


def chosen_form(request: Request) -> Form:
    """Return what makes the answer: the first of the types that the caller accepts."""
    accepted = request.headers.get("accept", "")
    for each in accepted.split(","):
        kind = each.partition(";")[0].strip().lower()
        if kind == JSON or kind in _ANY:
            return as_json
        if kind == NDJSON:
            return as_lines
        if kind == ARROW:
            return _arrow()
    raise Problem(
        HTTPStatus.NOT_ACCEPTABLE,
        "answer.type",
        f"there is no answer of the type {accepted[:100]!r}",
        allowed=f"{JSON}, {NDJSON} or {ARROW}",
    )


def about(found: Found) -> dict[str, Any]:
    """Return what an answer says besides its rows."""
    return {
        "columns": [{"name": column.name, "type": str(column.type)} for column in found.columns],
        "more": found.more,
        "stale_seconds": found.stale_seconds,
        **_stale(any(each.standby for each in found.relations.values())),
        "relations": {
            name: {
                "positions": lists(each.positions),
                "stale_seconds": each.stale_seconds,
                **_stale(each.standby),
                "left_out": each.left_out,
            }
            for name, each in found.relations.items()
        },
    }


def _stale(standby: bool) -> dict[str, Any]:
    return {"stale": True} if standby else {}


def row_objects(found: Found) -> list[dict[str, Any]]:
    """Return the rows by the names of their columns."""
    names = [column.name for column in found.columns]
    return [dict(zip(names, row, strict=True)) for row in found.rows]


def as_json(found: Found) -> Response:
    """Answer with one document."""
    return Response(_ENCODER.encode({"rows": row_objects(found), **about(found)}), media_type=JSON)


def as_lines(found: Found) -> Response:
    """Answer with lines: the first is about the answer, each of the others is a row."""
    lines = [_ENCODER.encode(each) for each in (about(found), *row_objects(found))]
    return Response(b"\n".join(lines) + b"\n", media_type=NDJSON)


def _arrow() -> Form:
    try:
        from penstock.serving.sql.arrow import arrow_stream
    except ImportError:
        raise Problem(
            HTTPStatus.NOT_ACCEPTABLE,
            "answer.type",
            "this gateway has no Arrow: pyarrow is not installed there",
            allowed=f"{JSON} or {NDJSON}",
        ) from None
    return lambda found: Response(arrow_stream(found, about(found)), media_type=ARROW)
