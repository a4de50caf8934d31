"""The answers to the questions of a gateway: they come to whoever waits, and are found again.

Every process of the gateway follows the answers from the moment it begins, and keeps the last ones.
A ticket says from where on its answer may stand, so one that is older than what is in memory is
looked for on the log, in one partition, between that place and the memory's beginning.
"""

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.log.follower import Follower, attempts
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.range import Offset
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.questions import ReplyTo, failure_in
from penstock.errors import PenstockError, TransientError
from penstock.serving.questions.ticket import ID_BYTES, Ticket
from penstock.serving.questions.window import ANSWER_BYTES, Failure, Window

__all__ = ["READING", "Answers"]

LOG = logging.getLogger("penstock.serving")
READING = "the answers are being looked for"
"""The trouble of answers that have only just begun to be followed."""
_TAKE_SECONDS = 0.1
_SEARCHES = 4
"""So many old answers are looked for on the log at a time."""
MOST_SEARCHING = 64
"""So many may wait for that; more are refused."""
_SEARCH_SECONDS = 10.0
_FOUND_BYTES = 8 << 20
"""The most memory for old answers that were looked for."""
_SEARCHED = 10_000
"""Of so many tickets it is known how far their answers were looked for."""


class Answers:
    """The answers of one topic to one asker; for one event loop, apart from its threads.

    ``trouble`` is why nothing is known of new answers; empty: they come.
    """

    def __init__(self, connection: Connection, topic: str, *, asker: str, most_bytes: int) -> None:
        self._connection = connection
        self._topic = topic
        self._asker = asker
        self._loop = asyncio.get_running_loop()
        self._window = Window(most=most_bytes)
        self._positions: dict[int, int] = {}
        self._waiting: dict[bytes, list[asyncio.Future[bytes]]] = {}
        self._found: OrderedDict[bytes, bytes] = OrderedDict()
        self._found_size = 0
        self._searched: OrderedDict[bytes, int] = OrderedDict()
        self._searching = 0
        self._threads = ThreadPoolExecutor(_SEARCHES, thread_name_prefix="old-answers")
        self._stop = threading.Event()
        self.trouble = READING
        self._thread = threading.Thread(target=self._run, name=f"answers-{topic}", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """End."""
        self._stop.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._thread.join)

    @property
    def partitions(self) -> int:
        """Return how many partitions there are; TransientError ``answers.unread``: not known."""
        self.require_begun()
        return len(self._positions)

    def position(self, partition: int) -> int:
        """Return where the next answer of a partition stands, or later."""
        return self._positions[partition]

    async def find(self, ticket: Ticket) -> bytes | None:
        """Return the answer, if there is one by now; TransientError: it is not to be known now."""
        self.require_begun()
        found = self._found.get(ticket.id)
        if found is not None:
            return found
        start = max(ticket.offset, self._searched.get(ticket.id, 0))
        if ticket.partition in self._positions and not self._window.covers(ticket.partition, start):
            found = await self._search(ticket, start)
            if found is not None:
                return found
        return self._window.get(ticket.id)

    async def wait(self, ticket: Ticket, *, seconds: float) -> bytes | None:
        """Return the answer as soon as there is one; None: there is none after so many seconds."""
        future: asyncio.Future[bytes] = self._loop.create_future()
        waiting = self._waiting.setdefault(ticket.id, [])
        waiting.append(future)
        try:
            found = await self.find(ticket)
            if found is not None:
                return found
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            waiting.remove(future)
            if not waiting:
                self._waiting.pop(ticket.id, None)

    def require_begun(self) -> None:
        """Raise TransientError ``answers.unread`` where nothing is known yet."""
        if not self._positions:
            raise TransientError(self.trouble or READING, code="answers.unread")

    async def _search(self, ticket: Ticket, start: int) -> bytes | None:
        """Look for an answer that stands before those in memory."""
        if self._searching >= MOST_SEARCHING:
            raise TransientError(
                f"{self._searching} old answers are being looked for", code="answers.busy"
            )
        end = self._window.floors[ticket.partition]
        self._searching += 1
        try:
            found = await self._loop.run_in_executor(self._threads, self._read, ticket, start, end)
        finally:
            self._searching -= 1
        if found is None:
            self._searched[ticket.id] = end
            if len(self._searched) > _SEARCHED:
                self._searched.popitem(last=False)
        elif ticket.id not in self._found:
            self._found[ticket.id] = found
            self._found_size += len(found) + ANSWER_BYTES
            while self._found_size > _FOUND_BYTES:
                self._found_size -= len(self._found.popitem(last=False)[1]) + ANSWER_BYTES
        return found

    def _read(self, ticket: Ticket, start: int, end: int) -> bytes | None:
        """Return the first answer to a question in a range; this is a thread."""
        number = ticket.partition
        deadline = monotonic() + _SEARCH_SECONDS
        low = Topics(self._connection).ends(self._topic)[number][0]
        batches = LogReader(self._connection).batches(
            self._topic,
            start=Offset({number: max(start, low)}),
            end=Offset({number: end}),
            partitions=[number],
            stop=self._stop,
            when_trimmed="skip",
        )
        for batch in batches:
            for record in batch:
                mine = self._mine(record)
                if mine is not None and mine[0] == ticket.id:
                    return mine[1]
            if monotonic() > deadline:
                raise TransientError("the answer is too far back", code="answers.busy")
        if self._stop.is_set():
            raise TransientError("the gateway is leaving", code="answers.busy")
        return None

    def _mine(self, record: RawRecord) -> tuple[bytes, bytes] | None:
        """Return the id and the value of an answer, or a Failure; None: it is for another."""
        value = record.value()
        headers = {name: each or b"" for name, each in record.headers() or ()}
        reply_to = ReplyTo.read(headers)
        if value is None and (code := failure_in(headers)) is not None:
            value = Failure(code.encode())
        if value is None or reply_to is None or reply_to.asker != self._asker:
            return None
        return (record.key() or b"")[:ID_BYTES], value

    # The thread that follows the answers.

    def _run(self) -> None:
        for _ in attempts(self._stop):
            try:
                self._follow()
            except PenstockError as error:
                self.trouble = error.message
                LOG.info("the answers on %s are read anew: %s", self._topic, error.message)

    def _follow(self) -> None:
        """Pass answers on until something fails; then they go on where they were."""
        starts = self._positions
        if not starts:
            ends = Topics(self._connection).ends(self._topic, committed=True)
            starts = {number: end for number, (_, end) in ends.items()}
            self._on_loop(self._begin, starts)
        follower = Follower(self._connection, self._topic, starts=starts)
        try:
            while not self._stop.is_set():
                records = follower.take(_TAKE_SECONDS)
                self.trouble = follower.trouble() or ""
                if records:
                    self._on_loop(self._take, self._sorted(records), dict(follower.positions))
        finally:
            follower.close()

    def _sorted(self, records: Sequence[RawRecord]) -> list[tuple[bytes, int, int, bytes]]:
        found = []
        for record in records:
            mine = self._mine(record)
            if mine is not None:
                found.append((mine[0], record.partition() or 0, record.offset() or 0, mine[1]))
        return found

    def _on_loop(self, call: Callable[..., None], *given: Any) -> None:
        """Call something in the event loop, and wait for it: no more is read meanwhile."""
        done = threading.Event()

        def called() -> None:
            call(*given)
            done.set()

        self._loop.call_soon_threadsafe(called)
        while not done.wait(_TAKE_SECONDS) and not self._stop.is_set():
            pass

    def _begin(self, positions: Mapping[int, int]) -> None:
        self._window.begin(positions)
        self._positions = dict(positions)

    def _take(
        self, answers: Sequence[tuple[bytes, int, int, bytes]], positions: Mapping[int, int]
    ) -> None:
        for id_, partition, offset, value in answers:
            if not self._window.add(id_, partition, offset, value):
                continue
            for future in self._waiting.get(id_, ()):
                if not future.done():
                    future.set_result(value)
        self._positions = dict(positions)
