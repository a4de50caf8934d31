"""A webhook as a sink: each record is sent to a URL, as JSON.

It is sent at least once. Its ``Idempotency-Key`` names its place on the log, so whoever receives it
takes it once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from penstock.connectors import BatchLimits, Row
from penstock.errors import ConfigurationError, Problem, TransientError

__all__ = ["Webhook"]

ANSWER_SECONDS = 10.0
_WAITING = frozenset({408, 425, 429})
"""Refusals that mean: later."""
_SERVER = 500


@dataclass(frozen=True, slots=True)
class Webhook:
    """A URL that takes each record of a stream with a POST."""

    url: str
    delivery: Literal["at_least_once"] = field(default="at_least_once", init=False)
    limits: BatchLimits = field(default_factory=lambda: BatchLimits(rows=1), compare=False)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return what is wrong with the URL."""
        if urlsplit(self.url).scheme in {"http", "https"}:
            return ()
        return (Problem("connector.option", "the webhook is no URL", "http://... or https://..."),)

    def describe(self) -> str:
        """Return where it writes, without what may be secret in a URL."""
        return f"a webhook at {urlsplit(self.url).hostname}"

    def open(self, sink: object) -> Webhook:  # noqa: ARG002 - the protocol gives it
        """Return the webhook: it keeps nothing open."""
        return self

    def positions(self) -> dict[int, int]:
        """Return nothing: the group of the sink knows how far it is."""
        return {}

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:  # noqa: ARG002
        """Send each record, and wait until it is taken."""
        for row in rows:
            self._post(row.value, f"{partition}-{row.offset}")

    def _post(self, body: bytes, key: str) -> None:
        headers = {"content-type": "application/json", "idempotency-key": key}
        request = Request(self.url, data=body, headers=headers, method="POST")  # noqa: S310
        try:
            with urlopen(request, timeout=ANSWER_SECONDS) as answer:  # noqa: S310 - see problems
                answer.read(1)
        except HTTPError as error:
            if error.code in _WAITING or error.code >= _SERVER:
                raise _away(f"it says {error.code}") from error
            text = f"the webhook refuses a notice: {error.code}"
            raise ConfigurationError(
                text, code="webhook.refused", hint="mend ANOMALY_WEBHOOK, or who listens there"
            ) from error
        except (URLError, OSError) as error:
            raise _away(str(error)) from error

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _away(why: str) -> TransientError:
    return TransientError(f"the webhook is away: {why}", code="webhook.away")
