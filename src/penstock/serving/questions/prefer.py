"""How long a caller waits for an answer, and what they get then: ``Prefer`` (RFC 7240)."""

from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

from starlette.requests import Request

from penstock.core.units import UnitError, duration
from penstock.serving.http.asked import read_query
from penstock.serving.http.problems import Problem

__all__ = ["Preference", "read_preference", "read_wait"]

_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Preference:
    """``later``: where the answer is not there in time, a ticket is what was asked for."""

    wait_seconds: float
    later: bool


def read_preference(request: Request, *, most: timedelta) -> Preference:
    """Return what a request prefers; what is not understood is left out, as the RFC says.

    Without a preference the answer is waited for as long as it may be.
    """
    found: dict[str, str] = {}
    for header in request.headers.getlist("prefer"):
        for piece in header.split(","):
            name, _, value = piece.partition(";")[0].partition("=")
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    later = "respond-async" in found
    longest = most.total_seconds()
    text = found.get("wait", "")
    if text.isascii() and text.isdecimal():
        return Preference(min(float(text[:_MOST_DIGITS]), longest), later)
    return Preference(0.0 if later else longest, later)


def read_wait(request: Request, *, most: timedelta) -> float:
    """Return for how many seconds the answer of a ticket is waited for; Problem ``query.value``."""
    text = read_query(request).get("wait")
    if text is None:
        return 0.0
    try:
        return min(max(timedelta(), duration(text)), most).total_seconds()
    except UnitError as error:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "query.value",
            f"wait: {error}",
            path="wait",
            allowed="500ms, 2s",
        ) from error
