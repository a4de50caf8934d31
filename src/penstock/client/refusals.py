"""Problem documents (RFC 9457) as errors of Penstock, in families by who must act."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec

from penstock.core.printable import printable
from penstock.errors import ConfigurationError, DataError, PenstockError, TransientError

__all__ = ["REPEATABLE", "error_of", "mistake_of", "read_json", "retry_after"]

T = TypeVar("T")

REPEATABLE = frozenset({408, 425, 429, 502, 503, 504})
"""What may pass: the same request may succeed later."""
_DATA = frozenset({400, 409, 410, 412, 413, 422})
_LISTED = 5
"""So many mistakes of one request are shown."""
_CHARACTERS = 500
_PASSING = "try again later; `penstock status` and the gateway's /v1/health say what is wrong"
_HINTS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "give the client a token that the gateway knows: token=...",
    HTTPStatus.FORBIDDEN: "the operator gives the caller a role that may (docs/serving.md)",
    HTTPStatus.NOT_FOUND: "is it the right gateway? its /v1/openapi.json tells what it has",
    HTTPStatus.MISDIRECTED_REQUEST: "name the gateway as serving.names or a loopback name",
}


def error_of(status: int, body: bytes) -> PenstockError:
    """Return the error that an answer is; its code is that of the problem document."""
    document = _document(body)
    code = document.get("code")
    named = isinstance(code, str) and 0 < len(code) <= _CHARACTERS
    text = document.get("detail")
    message = text if isinstance(text, str) and text else f"the gateway answered {status}"
    family = _family(status)
    return family(
        printable(message, most=_CHARACTERS),
        code=printable(str(code)) if named else f"http.{status}",
        detail=_detail(document),
        hint=_PASSING if family is TransientError else _HINTS.get(status, ""),
    )


def mistake_of(document: Any) -> PenstockError:
    """Return what is wrong with one record of several, from its entry in the answer."""
    found = document if isinstance(document, dict) else {}
    code, text = str(found.get("code", "data.refused")), str(found.get("detail", "refused"))
    # What a gateway finds wrong with a record is its data; all else may pass.
    family = DataError if code.startswith("data.") else TransientError
    message = printable(text, most=_CHARACTERS)
    return family(message, code=printable(code), detail=_detail(found))


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float:
    """Return the seconds that an answer asks to wait; 0: it says nothing that can be read."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return 0.0
    here = now or datetime.now(UTC)
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - here).total_seconds())


def read_json(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Return what an answer says; TransientError ``client.answer``: it is not what was meant."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TransientError(
            "the answer cannot be read",
            code="client.answer",
            detail=str(error),
            hint="is there a gateway at this address, and is it of the same version?",
        ) from error


def _family(status: int) -> type[ConfigurationError | DataError | TransientError]:
    if status in _DATA:
        return DataError
    if status in REPEATABLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return TransientError
    return ConfigurationError


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _detail(document: Mapping[str, Any]) -> str:
    """Return the place of a mistake and what is allowed there; of several, those of the first."""
    errors = document.get("errors")
    listed = errors[:_LISTED] if isinstance(errors, list) else []
    lines = [_place(document)] + [
        f"{_which(each)}: {each.get('detail')} {_place(each)}"
        for each in listed
        if isinstance(each, dict)
    ]
    return "\n  ".join(printable(line.strip(), most=_CHARACTERS) for line in lines if line.strip())


def _which(entry: Mapping[str, Any]) -> str:
    """Return which of several records a mistake is in, or where in a query."""
    if "column" in entry:
        return f"line {entry.get('line')}, column {entry.get('column')}"
    return f"record {entry.get('index')}"


def _place(document: Mapping[str, Any]) -> str:
    path, allowed = document.get("path"), document.get("allowed")
    words = [f"at {path}"] if path else []
    return "; ".join([*words, f"allowed: {allowed}"] if allowed else words)
