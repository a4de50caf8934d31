"""From what a caller sends to what stands on the log: strict, and exact about mistakes."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from penstock.core.graph.data import Stream
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_of
from penstock.core.records.schema import Field, FieldType, ListOf, MapOf, Nested, Schema
from penstock.errors import DataError
from penstock.serving.http.problems import Problem

__all__ = [
    "MISTAKES_LISTED",
    "MOST_COMMAS",
    "Mistake",
    "RecordReader",
    "Taken",
    "allowed_at",
    "parts_of",
    "refusal",
]

MISTAKES_LISTED = 20
"""So many mistakes of one request are told."""
MOST_COMMAS = 1_000_000
"""A list has at most one record more than it has commas: what bounds the memory to split it."""

_AT = re.compile(r" - at `([^`]*)`$")
_BYTE = re.compile(r"\(byte (\d+)\)")
_STEP = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


class Taken(msgspec.Struct, frozen=True, gc=False):
    """A record as it goes onto the log; made for every record, so it must be cheap to make."""

    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with one record, where in it, and what would be right there."""

    code: str
    detail: str
    path: str = ""
    allowed: str = ""

    def document(self) -> dict[str, Any]:
        """Return the mistake as members of a problem."""
        found = {"code": self.code, "detail": self.detail}
        if self.path:
            found["path"] = self.path
        if self.allowed:
            found["allowed"] = self.allowed
        return found


class RecordReader:
    """Reads the records of one stream from JSON.

    A field that nobody declared is refused: on a stream it would be ignored, and a caller who
    mistypes the name of an optional field would never hear of it.
    """

    def __init__(self, stream: Stream[Any]) -> None:
        self.stream = stream
        self._schema = stream.record.schema
        closed = record_of(self._schema, closed=True)
        self._restate = JsonCodec(closed, max_bytes=stream.topic.max_record_bytes).restate

    def read(self, raw: bytes) -> Taken | Mistake:
        """Return the record that some JSON is, or what is wrong with it."""
        try:
            return Taken(*self._restate(raw))
        except DataError as error:
            return self._mistake(error)

    def _mistake(self, error: DataError) -> Mistake:
        text, code = error.message, error.code
        found = _AT.search(text)
        path = "" if found is None else found[1]
        if path and not path.startswith("$"):
            path = f"$.{path}"
        detail = text[: found.start()] if found else text
        if "unknown field" in detail:
            code = "data.unknown-field"
        if not path and (byte := _BYTE.search(detail)):
            path = f"byte {byte[1]}"
        elif not path and code.startswith(("data.missing", "data.unknown", "data.wrong")):
            path = "$"
        return Mistake(code, detail, path, allowed_at(self._schema, path))


def parts_of(body: bytes, *, most: int) -> tuple[list[bytes], bool]:
    """Return the records in a body of JSON, each as it was sent, and whether it was a list."""
    if not body.lstrip(b" \t\r\n").startswith(b"["):
        return [body], False
    if body.count(b",") > MOST_COMMAS:
        raise _too_many(f"the list has more than {MOST_COMMAS} values", most)
    try:
        raws = _RAWS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        byte = _BYTE.search(str(error))
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "data.not-json",
            f"the body is not JSON: {error}",
            path=f"byte {byte[1]}" if byte else "",
        ) from error
    if len(raws) > most:
        raise _too_many(f"the list has {len(raws)} records", most)
    return [bytes(raw) for raw in raws], True


def refusal(mistake: Mistake) -> Problem:
    """Return the problem that a record by itself is refused with."""
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    if mistake.code in {"data.not-json", "data.too-deep"}:
        status = HTTPStatus.BAD_REQUEST
    elif mistake.code == "data.too-large":
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return Problem(status, mistake.code, mistake.detail, path=mistake.path, allowed=mistake.allowed)


def _too_many(text: str, most: int) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "request.too-many",
        text,
        allowed=f"{most} records at once, or any number as application/x-ndjson",
    )


def allowed_at(schema: Schema, path: str) -> str:
    """Return what a record may have at a path such as ``$.device``; empty: nothing to say."""
    if not path.startswith("$"):
        return ""
    kind: FieldType = Nested(schema)
    field: Field | None = None
    for step in _STEP.finditer(path):
        match kind, step[1]:
            case Nested(inner), str(name):
                field = inner.field(name)
                if field is None:
                    return ""
                kind = field.type
            case ((ListOf(item) | MapOf(item)), _):
                kind, field = item, None
            case _:
                return ""
    if field is not None:
        return str(field)
    return "; ".join(map(str, kind.schema.fields)) if isinstance(kind, Nested) else str(kind)
