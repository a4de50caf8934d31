"""What a request for records is answered: where each stands, or what is wrong with it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

import msgspec
from starlette.responses import Response

from penstock.errors import PenstockError, TransientError
from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import Problem
from penstock.serving.writing.intake import Outcome, Stand
from penstock.serving.writing.parsing import MISTAKES_LISTED, Mistake, refusal

__all__ = ["lines_of", "mistaken", "one_answer", "outcome_document", "several_answer", "too_long"]

_LINE = b'{"line":%d,"partition":%d,"offset":%d}'


def one_answer(outcome: Outcome) -> Response:
    """Return the answer for one record; raise what is wrong with it."""
    if isinstance(outcome, Stand):
        return _json(HTTPStatus.CREATED, _stand(outcome))
    if isinstance(outcome, Mistake):
        raise refusal(outcome)
    raise outcome


def several_answer(outcomes: Sequence[Outcome]) -> Response:
    """Return the answer for a list: where each record stands, or what is wrong with it."""
    accepted = sum(isinstance(each, Stand) for each in outcomes)
    status = HTTPStatus.CREATED if accepted == len(outcomes) else HTTPStatus.MULTI_STATUS
    headers = {}
    if outcomes and not accepted:
        failed = next((each for each in outcomes if isinstance(each, TransientError)), None)
        if failed is not None:
            raise failed
        mistakes = [(at, each) for at, each in enumerate(outcomes) if isinstance(each, Mistake)]
        raise mistaken(mistakes, of=len(outcomes))
    if any(isinstance(each, TransientError) for each in outcomes):
        headers["Retry-After"] = "1"
    document = {
        "accepted": accepted,
        "refused": len(outcomes) - accepted,
        "records": [outcome_document(each) for each in outcomes],
    }
    return _json(status, document, headers)


def mistaken(mistakes: Sequence[tuple[int, Mistake]], *, of: int) -> Problem:
    """Return the problem for a request of which nothing was written."""
    listed = [{"index": at, **each.document()} for at, each in mistakes[:MISTAKES_LISTED]]
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "request.mistakes",
        f"{len(mistakes)} of {of} records have mistakes, and none was written",
        errors=listed,
    )


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Return what became of a record: where it stands, what is wrong with it, or why not."""
    if isinstance(outcome, Stand):
        return _stand(outcome)
    if isinstance(outcome, Mistake):
        return {"error": outcome.document()}
    return {"error": {"code": outcome.code, "detail": outcome.message}}


def lines_of(
    numbers: Sequence[int], outcomes: Sequence[Outcome], *, each: bool
) -> tuple[list[bytes], int, int, PenstockError | None]:
    """Return the lines of an answer, how many were accepted and refused, and what ends it."""
    if Counter(map(type, outcomes))[Stand] == len(outcomes):
        told = zip(numbers, cast("Sequence[Stand]", outcomes), strict=True) if each else ()
        lines = [_LINE % (number, stand.partition, stand.offset) for number, stand in told]
        return lines, len(outcomes), 0, None
    lines = []
    accepted, failed = 0, None
    for number, outcome in zip(numbers, outcomes, strict=True):
        if isinstance(outcome, Stand):
            accepted += 1
            if each:
                place = (number, outcome.partition, outcome.offset)
                lines.append(_LINE % place)
            continue
        if isinstance(outcome, PenstockError):
            failed = outcome
        lines.append(msgspec.json.encode({"line": number, **outcome_document(outcome)}))
    return lines, accepted, len(outcomes) - accepted, failed


def too_long(most: int) -> Mistake:
    """Return the mistake that a line beyond the limit is."""
    return Mistake("data.too-large", f"the line has more than {most} bytes")


def _stand(stand: Stand) -> dict[str, int]:
    return {"partition": stand.partition, "offset": stand.offset}


def _json(status: int, document: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(document),
        status_code=status,
        media_type=JSON,
        headers=dict(headers or {}),
    )
