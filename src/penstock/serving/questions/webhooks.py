"""Answers to webhooks: signed, sent again until they are taken, and given up in time.

The URL of an answer stands in its key on the log, behind the question's id. The processes of a
gateway are a consumer group: each answer is for one of them, and its offset is committed when it
was taken, or is a dead letter. So whoever dies, another process sends what was not sent, perhaps
twice. A dead letter that is given back to its stream is sent again.

Signed as https://www.standardwebhooks.com says; redirects are not followed.
"""

import base64
import hmac
import http.client
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import Partition, RawRecord
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.membership import Listener
from penstock.backbone.log.producer import Producer
from penstock.core.backoff import Backoff
from penstock.core.graph.questions import ReplyTo, failure_in
from penstock.core.graph.webhooks import is_webhook
from penstock.core.printable import printable
from penstock.core.records.deadletter import Coordinates, dead_letter_headers
from penstock.core.settings.settings import ServiceSettings
from penstock.errors import DataError, PenstockError, TransientError
from penstock.serving.http.bodies import JSON
from penstock.serving.http.problems import CONTENT_TYPE
from penstock.serving.questions.ticket import ID_BYTES
from penstock.serving.questions.window import Failure

__all__ = ["Delivery", "Posting", "Webhooks", "deliver", "signed"]

LOG = logging.getLogger("penstock.serving")
_AT_ONCE = 32
"""So many answers are sent at a time; the next ones wait for all of them."""
_TAKE_SECONDS = 0.2
_ANSWER_SECONDS = 10.0
"""How long a receiver may take to connect, and to answer."""
LONGEST_PATIENCE = timedelta(minutes=2)
"""A gateway that waited longer would be taken for dead by its group."""
_WAITS = Backoff(timedelta(milliseconds=500), timedelta(seconds=15))
_READ_ANEW = Backoff(timedelta(milliseconds=500), timedelta(seconds=10))
_FLUSH = timedelta(seconds=10)
_WHY_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Delivery:
    """An answer that is to be sent."""

    id: str
    url: str
    body: bytes
    kind: str = JSON
    """Its media type."""


def signed(delivery: Delivery, secret: bytes, *, at: int) -> dict[str, str]:
    """Return the headers of an answer; its signature is over id, instant and body."""
    told = b"%s.%d.%s" % (delivery.id.encode(), at, delivery.body)
    signature = base64.b64encode(hmac.digest(secret, told, "sha256")).decode()
    return {
        "Content-Type": delivery.kind,
        "User-Agent": "penstock",
        "webhook-id": delivery.id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{signature}",
    }


def deliver(delivery: Delivery, secret: bytes) -> str:
    """Send an answer once; return why it was not taken, empty: it was."""
    parts = urlsplit(delivery.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    headers = signed(delivery, secret, at=int(time.time()))
    try:
        with closing(kind(parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS)) as connection:
            connection.request("POST", path, delivery.body, headers)
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    taken = HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES
    return "" if taken else f"it was answered with {status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Which answers a gateway sends, where they may go, and what becomes of the others."""

    part: str
    """The gateway."""
    asker: str
    topics: Sequence[str]
    allowed: Sequence[str]
    secret: bytes
    patience: timedelta
    dead_letters: str


class Webhooks:
    """Sends the answers of some topics to those who want them, from threads of its own.

    ``buried`` hears from one of them how many answers have become dead letters, and of the last
    one in words.
    """

    def __init__(
        self,
        connection: Connection,
        posting: Posting,
        *,
        settings: ServiceSettings,
        buried: Callable[[int, str], None],
    ) -> None:
        self._connection = connection
        self._posting = posting
        # What is not kept any more has expired: nobody waits for it.
        self._settings = replace(settings, on_trimmed="skip")
        self._buried = buried
        self._patience = min(posting.patience, LONGEST_PATIENCE).total_seconds()
        self._stop = threading.Event()
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="webhook")
        self._failed = ""
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Return why no answers are sent; empty: they are."""
        ended = not self._thread.is_alive() and not self._stop.is_set()
        return "no answers are sent to webhooks any more: see the log" if ended else self._failed

    def close(self) -> None:
        """End; what was not taken yet is for another process, or for later."""
        self._stop.set()
        self._thread.join()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        delays = _READ_ANEW.delays()
        while not self._stop.is_set():
            try:
                self._follow()
            except PenstockError as error:
                self._failed = f"answers to webhooks: {error.message}"
                LOG.info("%s", self._failed)
                self._stop.wait(next(delays))

    def _follow(self) -> None:
        with (
            Producer(self._connection) as letters,
            Consumer(
                self._connection,
                group=f"{self._posting.asker}.webhooks",
                topics=self._posting.topics,
                settings=self._settings,
                listener=Listener(on_skipped=_log_skipped),
            ) as consumer,
        ):
            while not self._stop.is_set():
                records = consumer.consume(_AT_ONCE, _TAKE_SECONDS)
                self._failed = ""
                wanted = [
                    (record, each)
                    for record in records
                    if (each := self._wanted(record)) is not None
                ]
                outcomes = list(self._threads.map(self._send, [each for _, each in wanted]))
                if any(outcome is None for outcome in outcomes):
                    return  # it is to stop, and not all were taken
                untaken = [
                    (record, error)
                    for (record, _), error in zip(wanted, outcomes, strict=True)
                    if isinstance(error, PenstockError)
                ]
                self._bury(untaken, letters)
                ends: dict[Partition, int] = {}
                for record in records:
                    place = (record.topic() or "", record.partition() or 0)
                    ends[place] = (record.offset() or 0) + 1
                consumer.commit(ends)

    def _bury(self, untaken: Sequence[tuple[RawRecord, PenstockError]], letters: Producer) -> None:
        """Make dead letters of answers, and wait until they are on the log."""
        told = ""
        for record, error in untaken:
            place = Coordinates(record.topic() or "", record.partition() or 0, record.offset() or 0)
            marks = dead_letter_headers(error, place, part=self._posting.part, at=datetime.now(UTC))
            letters.send(
                self._posting.dead_letters,
                key=record.key(),
                value=record.value(),
                headers=[*(record.headers() or ()), *marks],
            )
            told = f"{place}: {error.message} [{error.code}]"
        if untaken:
            letters.flush(_FLUSH)
            self._buried(len(untaken), told)

    def _wanted(self, record: RawRecord) -> Delivery | None:
        """Return what is to be sent; None: nothing, or it is for somebody else."""
        key, value = record.key() or b"", record.value()
        headers = {name: each or b"" for name, each in record.headers() or ()}
        reply_to = ReplyTo.read(headers)
        url = key[ID_BYTES:].decode("utf-8", "replace")
        kind = JSON
        if value is None and (code := failure_in(headers)) is not None:
            kind = CONTENT_TYPE
            value = msgspec.json.encode(Failure(code.encode()).problem().document())
        if value is None or not url or reply_to is None or reply_to.asker != self._posting.asker:
            return None
        return Delivery(key[:ID_BYTES].hex(), url, value, kind)

    def _send(self, delivery: Delivery) -> PenstockError | bool | None:
        """Send an answer; True: it was taken. Else why it is given up; None: it is to stop."""
        if not is_webhook(delivery.url, self._posting.allowed):
            # It was allowed when it was asked.
            return DataError(
                "the application does not allow this webhook any more", code="webhook.not-allowed"
            )
        began, delays = time.monotonic(), _WAITS.delays()
        while why := deliver(delivery, self._posting.secret):
            wait = next(delays)
            if time.monotonic() + wait > began + self._patience:
                told = printable(why, most=_WHY_CHARACTERS)
                LOG.warning("the answer %s is given up: %s", delivery.id, told)
                return TransientError(
                    f"the webhook did not take the answer within {self._patience:g}s: {told}",
                    code="webhook.untaken",
                )
            if self._stop.wait(wait):
                return None
        return True


def _log_skipped(partition: Partition, wanted: int, low: int) -> None:
    LOG.warning("%s[%s]: %d answers were not kept until they were sent", *partition, low - wanted)
