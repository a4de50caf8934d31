"""Records posted to a URL: batches of JSON, signed, tried again until they are taken."""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from penstock.connectors.connector import BatchLimits, Row
from penstock.connectors.http.exchange import Answer, Endpoint, Exchange, read_endpoint
from penstock.connectors.http.halves import Halves
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, reference
from penstock.core.graph.parts import Sink, Source
from penstock.errors import ConfigurationError, Problem

__all__ = ["Webhook", "WebhookWriter", "webhook"]

_REFUSED = (400, 406, 409, 410, 413, 415, 422)
"""Answers that speak of what was sent; all others that are no success are a person's business."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A URL that takes records; :func:`webhook` makes it."""

    endpoint: Endpoint
    secret: Reference | None
    limits: BatchLimits
    problems: tuple[Problem, ...] = field(default=(), compare=False, repr=False)
    delivery: Literal["at_least_once"] = field(default="at_least_once", init=False)

    def describe(self) -> str:
        """Return where it writes, for people."""
        return f"POST to {self.endpoint.shown}"

    def open(self, sink: Sink) -> "WebhookWriter":
        """Read the secret; the connection is opened by the first request."""
        key = None if self.secret is None else self.secret.read().encode()
        return WebhookWriter(Exchange(self.endpoint), topic=sink.reads.topic.name, key=key)

    def attempt(self, part: Sink | Source) -> str:
        """Ask for the options of the URL, which changes nothing there."""
        exchange = Exchange(self.endpoint)
        try:
            answer = exchange.ask("OPTIONS")
        finally:
            exchange.close()
        return f"it answers {part.name} with HTTP {answer.status}"


class WebhookWriter:
    """Posts batches for one sink."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        topic: str,
        key: bytes | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._exchange, self._topic, self._key, self._clock = exchange, topic, key, clock
        self._halves = Halves(self._post)

    def positions(self) -> dict[int, int]:
        """Return nothing: who takes records keeps no positions."""
        return {}

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Post rows; those that are refused are found by halves, and the others are posted once."""
        del position
        self._halves.write(partition, rows)

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    def _post(self, partition: int, rows: Sequence[Row]) -> str | Mapping[int, str]:
        answer = self._ask(partition, rows)
        if 200 <= answer.status < 300:  # noqa: PLR2004 - as everybody knows them
            return {}
        if answer.status not in _REFUSED:
            raise ConfigurationError(
                f"the URL does not take records: {answer.words}",
                code="connector.refused",
                hint="look at the URL and at the headers; a redirection is not followed",
            )
        return answer.words

    def _ask(self, partition: int, rows: Sequence[Row]) -> Answer:
        body = b"[" + b",".join(row.value for row in rows) + b"]"
        name = f"{self._topic}-{partition}-{rows[0].offset}-{rows[-1].offset + 1}"
        stamp = str(int(self._clock()))
        headers = {
            "Content-Type": "application/json",
            "webhook-id": name,
            "webhook-timestamp": stamp,
            "Idempotency-Key": name,
        }
        if self._key is not None:
            signed = hmac.digest(self._key, f"{name}.{stamp}.".encode() + body, hashlib.sha256)
            headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode()}"
        return self._exchange.ask("POST", body=body, headers=headers)


def webhook(
    url: str,
    *,
    secret: str | None = None,
    headers: dict[str, str] | None = None,
    rows: int = 100,
    size: str | int = "1MiB",
    every: str | timedelta = "1s",
    timeout: str | timedelta = "10s",
) -> Webhook:
    """Post the records of a stream to a URL, at least once.

    A request has a batch of records of one partition, a JSON array in their order. Its
    ``webhook-id`` (also ``Idempotency-Key``) is the same for the same records, so that the receiver
    can leave out what it has. It is tried again as long as the server is away or says later (408,
    425, 429, 5xx). Records that it refuses (400, 406, 409, 410, 413, 415, 422) become dead letters
    with its words. Redirections are not followed.

    Args:
        url: Where to, or a reference to it.
        secret: Where the secret is that requests are signed with, as Standard Webhooks say:
            ``env:NAME`` or ``file:PATH``. The header ``webhook-signature`` has ``v1,`` and the
            HMAC-SHA256 of ``id.timestamp.body``, in base64.
        headers: More headers; a value may be a reference, and one that is a secret must be.
        rows: How many records a request has at most.
        size: How large the records of a request are at most.
        every: How long the first record of a request waits for others.
        timeout: How long the server may be silent.

    Examples:
        >>> hook = webhook("https://example.org/alarms", secret="env:HOOK_SECRET", rows=1)
        >>> app.sink("hook", hook, reads=alarms).summary
        'sink, at least once, POST to example.org'
    """
    problems: list[Problem] = []
    options = ConnectorOptions("webhook", problems)
    return Webhook(
        endpoint=read_endpoint(options, url, headers, timeout),
        secret=reference(options, "secret", secret),
        limits=BatchLimits(
            rows=options.whole("rows", rows, 100, least=1, most=10_000),
            size=options.size("size", size, 1 << 20),
            span=options.positive_span("every", every, timedelta(seconds=1)),
        ),
        problems=tuple(problems),
    )
