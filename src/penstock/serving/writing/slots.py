"""Requests that are done once: all of their records or none, and not again when they are repeated.

The records of such a request and the answer to it are one transaction. The answer stands on a
partition of the gateway's topic ``requests``, chosen by the idempotency key: its **slot**. Whoever
writes to a slot holds its transactional id. Taking it over fences the former holder and ends what
that left open; then the slot is read to its end. So what is known of a slot is complete for as long
as its producer is not fenced, and a commit that succeeds proves that it was. It does not matter
when a gateway is killed: either the answer is on the log with the records, or neither is.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.errors import FencedError, PenstockError, TransientError
from penstock.serving.http.problems import Problem
from penstock.serving.writing.intake import Stand
from penstock.serving.writing.parsing import Taken

__all__ = ["Once", "Slot", "Target", "Written", "digest_of"]

_ATTEMPTS = 3
"""Another gateway may take a slot over, and a transaction may fail, so often for one request."""
_KEPT_ANSWERS = 1000
"""So many answers of a slot are in memory; older ones are read from the log."""
_READ_LIMIT = timedelta(seconds=20)
_MARK = b""
"""The key of what a holder writes when it takes a slot over: it reads up to there."""


class _Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What the log keeps of a request."""

    request: str
    stands: list[tuple[int, int]]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where the records of a request go; ``partitions`` counts those that go round."""

    topic: str
    partitions: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """One request that is to be done once: its idempotency key, and what tells it from others."""

    key: bytes
    request: str
    note: str = ""
    """What is to be remembered with it: whoever repeats the request gets that of the first."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a request: where its records stand."""

    stands: list[Stand]
    before: bool = False
    """Whether it had been done before."""
    note: str = ""


def digest_of(parts: Iterable[bytes]) -> str:
    """Return what tells one request from another: a digest of its parts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8))
        found.update(part)
    return found.hexdigest()


class Slot:
    """One slot, or (without a number) a way to write atomically that remembers nothing.

    Not for several threads at once. Every call may take as long as Kafka's requests may.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        topic: str,
        number: int | None,
        transactional_id: str,
        timeout: timedelta,
        most: int,
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._number = number
        self._id = transactional_id
        self._timeout = timeout
        self._most = most
        self._producer: TransactionalProducer | None = None
        self._known: dict[bytes, int] = {}
        self._answers: OrderedDict[bytes, _Remembered] = OrderedDict()
        self._position = 0
        self._turn = 0

    def write(
        self, target: Target, records: Sequence[Taken], *, once: Once | None = None
    ) -> Written:
        """Write all records or none, unless the request was done before.

        Problem ``idempotency.reused``: the key was used for another request. TransientError: it is
        not known whether it was done; the same request with the same key may be sent again.
        """
        for attempt in range(_ATTEMPTS):
            try:
                return self._try(target, records, once)
            # The client raises SystemError where it hears of a fence while it takes a record.
            except (FencedError, TransientError, SystemError) as error:
                self._let_go()
                # Without a key nobody could tell whether it was done: that is the caller's to know.
                undone = once is not None or isinstance(error, FencedError)
                if attempt + 1 == _ATTEMPTS or not undone:
                    raise
            except Problem:
                raise
            except BaseException:
                # Whatever it was: the next request must not find a transaction of this one.
                self._let_go()
                raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Give the slot up."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _try(self, target: Target, records: Sequence[Taken], once: Once | None) -> Written:
        producer = self._producer
        if producer is None or producer.dead:
            producer = self._take_over()
        if once is not None and (found := self._recall(once)) is not None:
            return found
        if once is not None and len(self._known) >= self._most:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "idempotency.full",
                "too many requests with an Idempotency-Key are remembered",
                retry_after=60,
            )
        producer.begin()
        placed = [
            producer.place(
                target.topic,
                key=each.key,
                value=each.value,
                headers=each.headers,
                partition=self._next(target),
            )
            for each in records
        ]
        producer.settle()
        stands = [Stand(*place) for place in placed]
        if once is not None:
            remembered = _Remembered(
                request=once.request,
                stands=[(each.partition, each.offset) for each in stands],
                note=once.note,
            )
            place = producer.place(
                self._topic,
                key=once.key,
                value=msgspec.json.encode(remembered),
                partition=self._number,
            )
            producer.settle()
            producer.commit()
            self._learn(once.key, place[1], remembered)
        else:
            producer.commit()
        return Written(stands, note=once.note if once is not None else "")

    def _recall(self, once: Once) -> Written | None:
        """Return what became of a request that was done; None: it was not."""
        offset = self._known.get(_short(once.key))
        if offset is None:
            return None
        remembered = self._answers.get(once.key)
        if remembered is None:
            remembered = next(
                (found for key, at, found in self._read(offset, offset + 1) if key == once.key),
                None,
            )
        if remembered is None:
            return None
        if remembered.request != once.request:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "idempotency.reused",
                "this Idempotency-Key was used for another request",
            )
        stands = [Stand(*each) for each in remembered.stands]
        return Written(stands, before=True, note=remembered.note)

    def _take_over(self) -> TransactionalProducer:
        """Fence the former holder, and learn all that it and its forerunners have done."""
        self._producer = producer = TransactionalProducer(
            self._connection, self._id, timeout=self._timeout, tells=True
        )
        if self._number is None:
            return producer
        producer.begin()
        place = producer.place(self._topic, key=_MARK, value=b"{}", partition=self._number)
        producer.settle()
        producer.commit()
        low = Topics(self._connection).ends(self._topic)[self._number][0]
        start, end = max(low, self._position), place[1] + 1
        for key, offset, remembered in self._read(start, end):
            self._learn(key, offset, remembered)
        self._position = end
        self._known = {key: at for key, at in self._known.items() if at >= low}
        return producer

    def _read(self, start: int, end: int) -> Iterable[tuple[bytes, int, _Remembered]]:
        number, stop = self._number or 0, threading.Event()
        timer = threading.Timer(_READ_LIMIT.total_seconds(), stop.set)
        timer.daemon = True
        timer.start()
        try:
            for record in LogReader(self._connection).read(
                self._topic,
                start=Offset({number: start}),
                end=Offset({number: end}),
                partitions=[number],
                follow=True,
                stop=stop,
                when_trimmed="skip",
            ):
                if record.key and record.value:
                    yield (
                        record.key,
                        record.offset,
                        msgspec.json.decode(record.value, type=_Remembered),
                    )
        finally:
            timer.cancel()
        if stop.is_set():
            raise TransientError(
                f"{self._topic}[{number}] could not be read up to {end}", code="idempotency.unread"
            )

    def _learn(self, key: bytes, offset: int, remembered: _Remembered) -> None:
        self._known[_short(key)] = offset
        self._answers[key] = remembered
        while len(self._answers) > _KEPT_ANSWERS:
            self._answers.popitem(last=False)
        self._position = max(self._position, offset + 1)

    def _next(self, target: Target) -> int | None:
        if target.partitions is None:
            return None
        self._turn += 1
        return self._turn % target.partitions

    def _let_go(self) -> None:
        """Use the producer no more: what it left open ends when the slot is taken over."""
        producer, self._producer = self._producer, None
        if producer is not None and not producer.dead:
            with suppress(PenstockError, SystemError):
                producer.__exit__(Exception, None, None)


def _short(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:16]
