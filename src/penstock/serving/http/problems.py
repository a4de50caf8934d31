"""Refusals, as problem details (RFC 9457): each with a code, a place, and what is allowed.

A mistake of the caller is a 4xx, and never a 500. What is not available now is a 503 that says when
to come again.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from penstock.core.printable import printable
from penstock.errors import DataError, FencedError, PenstockError, TransientError

__all__ = ["CONTENT_TYPE", "Problem", "problem_of"]

CONTENT_TYPE = "application/problem+json"
_TYPE = "urn:penstock:problem:"
_DETAIL_CHARACTERS = 1000
_SOON_SECONDS = 1
"""When to come again, where nothing better is known."""


class Problem(Exception):  # noqa: N818 - RFC 9457 calls it a problem
    """What is raised to refuse a request; ``more`` are further members of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = printable(detail, most=_DETAIL_CHARACTERS)
        self.retry_after = retry_after
        self.headers = dict(headers or {})
        self.more = {name: value for name, value in more.items() if value not in (None, "")}

    def document(self) -> dict[str, Any]:
        """Return the problem as its members."""
        return {
            "type": f"{_TYPE}{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.more,
        }

    def response(self) -> Response:
        """Return the answer to send."""
        headers = dict(self.headers)
        if self.retry_after is not None:
            headers["Retry-After"] = str(self.retry_after)
        return Response(
            msgspec.json.encode(self.document()),
            status_code=self.status,
            media_type=CONTENT_TYPE,
            headers=headers,
        )


def problem_of(error: PenstockError) -> Problem:
    """Return what a caller is told of an error of Penstock."""
    if isinstance(error, DataError):
        large = error.code == "data.too-large"
        status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if large else HTTPStatus.UNPROCESSABLE_ENTITY
        return Problem(status, error.code, error.message)
    if isinstance(error, TransientError | FencedError):
        unavailable = HTTPStatus.SERVICE_UNAVAILABLE
        return Problem(unavailable, error.code, error.message, retry_after=_SOON_SECONDS)
    # The operator must act; the log has the whole of it.
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        error.code,
        "this cannot be done now, and the operator must see why",
        retry_after=30 * _SOON_SECONDS,
    )
