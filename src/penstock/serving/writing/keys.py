"""The idempotency key of a request: what a caller repeats so that it is done once."""

from http import HTTPStatus

import msgspec
from starlette.requests import Request

from penstock.serving.http.bodies import single_header
from penstock.serving.http.guard import caller_of
from penstock.serving.http.problems import Problem

__all__ = ["IDEMPOTENCY_KEY", "KEY_CHARACTERS", "IdempotencyKey", "idempotency_key"]

IDEMPOTENCY_KEY = "Idempotency-Key"
KEY_CHARACTERS = 255


class IdempotencyKey:
    """An idempotency key, as one caller gave it: another caller's is another one.

    Problem ``idempotency.key``: it is empty, or too long.
    """

    def __init__(self, text: str, caller: str) -> None:
        if not text.strip() or len(text) > KEY_CHARACTERS:
            raise Problem(
                HTTPStatus.BAD_REQUEST,
                "idempotency.key",
                f"the {IDEMPOTENCY_KEY} has {len(text)} characters",
                allowed=f"1 to {KEY_CHARACTERS} characters, such as a UUID",
            )
        self._text = text
        self._caller = caller

    def scoped(self, topic: str) -> bytes:
        """Return the key as the log has it."""
        return msgspec.json.encode([topic, self._caller, self._text])


def idempotency_key(request: Request) -> IdempotencyKey | None:
    """Return the key of a request; None: it has none."""
    text = single_header(request, IDEMPOTENCY_KEY)
    return None if text is None else IdempotencyKey(text, caller_of(request.scope).name)
