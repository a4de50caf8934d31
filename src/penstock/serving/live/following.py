"""Live queries as one process of a gateway follows them, for all its connections.

Each query is followed once, whoever asks. Its news are read by a thread, some at a time, and taken
in by the event loop. A query is asked for when the first client follows it, and again and again
while there is one, so that the services keep it open; it is remembered for a minute after the last.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from http import HTTPStatus
from time import monotonic

from penstock.backbone.client.connection import Connection
from penstock.backbone.client.logrecord import RawRecord
from penstock.backbone.log.follower import Follower, attempts
from penstock.core.feeds.feed import Feed
from penstock.core.feeds.shared import SharedQuery
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.grid.messages import Asked, News
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError, PenstockError
from penstock.serving.fixture import Fixture, Trouble
from penstock.serving.http.problems import Problem
from penstock.serving.writing.intake import Intake, Writing
from penstock.serving.writing.parsing import Taken

__all__ = ["LINGERS_SECONDS", "MOST_QUERIES", "Following", "Wake"]

LOG = logging.getLogger("penstock.serving")

MOST_QUERIES = 100_000
"""So many different queries are followed; further ones are refused."""
LINGERS_SECONDS = 60.0
"""How long a query is remembered when nobody follows it any more."""
_RENEWED_IN_LEASE = 3
_UNANSWERED_SECONDS = 10.0
"""How long a whole result may take before it is asked for again; twice as long each time."""
_UNWRITTEN_SECONDS = 1.0
_TAKE_SECONDS = 0.1
_AT_ONCE = 1000
_TAKEN_AT_ONCE = 32
"""So many news are taken in before what they say is sent."""

Wake = Callable[[], None]
"""Hears that there may be something to tell; it must be quick."""


class _Held:
    """One query that is followed."""

    __slots__ = (
        "bytes",
        "due_at",
        "feed",
        "followers",
        "generation",
        "key",
        "left_at",
        "patience",
        "record",
    )

    def __init__(self, feed: Feed, key: bytes, record: Callable[..., Taken]) -> None:
        self.feed = feed
        self.key = key
        self.record = record
        self.followers: dict[Wake, None] = {}
        self.generation = feed.generation
        self.left_at: float | None = None
        self.patience = _UNANSWERED_SECONDS
        self.due_at = 0.0
        self.bytes = 0

    @property
    def is_settled(self) -> bool:
        """Whether its result is known, or will not be followed."""
        return self.feed.ready or self.feed.too_large


class Following(Fixture):
    """The queries of one declaration that somebody follows; for the event loop."""

    def __init__(
        self, live: LiveQueries, connection: Connection, intake: Intake, *, most_bytes: int
    ) -> None:
        self.live = live
        self._most_bytes = most_bytes
        self._bytes = 0
        self._connection = connection
        self._intake = intake
        self._loop = asyncio.get_running_loop()
        self._asking: JsonCodec[Asked] = JsonCodec(live.asked.record)
        self._reading: JsonCodec[News] = JsonCodec(live.news.record)
        self._renew_seconds = live.lease.total_seconds() / _RENEWED_IN_LEASE
        self._held: dict[bytes, _Held] = {}
        self._due: list[tuple[float, bytes]] = []
        self._current_at: float | None = None
        self._listening = False
        self._waiting: list[_Held] = []
        self._positions: dict[int, int] | None = None
        self._stop = threading.Event()
        self._trouble = Trouble(f"{live.name} is not heard yet", beginning=True)
        self._well = False
        self._thread = threading.Thread(target=self._run, name=f"live-{live.name}", daemon=True)
        self._thread.start()

    @property
    def stale_seconds(self) -> float | None:
        """How long ago nothing newer was there than what was taken in; None: not known."""
        return None if self._current_at is None else max(0.0, monotonic() - self._current_at)

    def join(self, query: SharedQuery, wake: Wake) -> Feed:
        """Follow a query; ``wake`` hears of what is new. A Problem where there are too many."""
        key = self._key(query)
        held = self._held.get(key)
        if held is None:
            text = ""
            if len(self._held) >= MOST_QUERIES:
                text = f"this gateway follows {MOST_QUERIES:,} different queries already"
            elif self._bytes >= self._most_bytes:
                text = "the results that this gateway follows take all memory that they may"
            if text:
                unavailable = HTTPStatus.SERVICE_UNAVAILABLE
                raise Problem(unavailable, "live.too-many", text, retry_after=1)
            held = self._hold(query, key)
        held.followers[wake] = None
        held.left_at = None
        return held.feed

    def leave(self, feed: Feed, wake: Wake) -> None:
        """Follow a query no more."""
        held = self._held.get(feed.name.encode())
        if held is None or held.feed is not feed:
            return
        held.followers.pop(wake, None)
        if not held.followers:
            held.left_at = monotonic()

    async def look(self) -> Trouble | None:
        """Renew the queries that are due, forget those that nobody follows; say what is wrong."""
        now = monotonic()
        several: list[_Held] = []
        while self._due and self._due[0][0] <= now:
            due_at, key = heappop(self._due)
            if (held := self._held.get(key)) is None or held.due_at != due_at:
                continue
            if held.left_at is not None and now - held.left_at >= LINGERS_SECONDS:
                del self._held[key]
                self._bytes -= held.bytes
                continue
            several.append(held)
            if len(several) == _AT_ONCE:
                self._ask(several)
                several = []
                await asyncio.sleep(0)
        self._ask(several)
        return None if self._well else self._trouble

    async def close(self) -> None:
        """End."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join)

    def _key(self, query: SharedQuery) -> bytes:
        return query.name.encode()

    def _hold(self, query: SharedQuery, key: bytes) -> _Held:
        def record(*, again: bool) -> Taken:
            asked = Asked(id=query.name, query=query.text, again=again)
            return Taken(self._asking.key(asked), self._asking.encode(asked))

        most = self.live.asked.topic.max_record_bytes
        if len(record(again=True).value) > most:
            raise DataError(
                f"the query is too long: as JSON it may have {most:,} bytes",
                code="query.refused",
                hint="ask for fewer values",
            )
        held = _Held(Feed(query.name, ordered=query.ordered), key, record)
        self._held[key] = held
        if self._listening:
            self._ask([held])
        else:
            self._waiting.append(held)
        return held

    def _ask(self, several: Sequence[_Held]) -> None:
        """Say that queries are followed; those without a result want it."""
        if not several:
            return
        now = monotonic()
        for held in several:
            if held.is_settled:
                held.patience = _UNANSWERED_SECONDS
                seconds = self._renew_seconds
            else:
                seconds = min(held.patience, self._renew_seconds)
                held.patience *= 2
            self._come_back(held, now + seconds)
        records = [
            held.record(again=not (held.feed.ready or held.feed.too_large)) for held in several
        ]
        writing = self._intake.send(self.live.asked, records)
        if not writing.done.done():
            writing.done.add_done_callback(lambda _: self._asked(several, writing))
        else:
            self._asked(several, writing)

    def _asked(self, several: Sequence[_Held], writing: Writing) -> None:
        """Ask again soon for what did not reach the log."""
        soon = monotonic() + _UNWRITTEN_SECONDS
        for held, outcome in zip(several, writing.outcomes, strict=True):
            if isinstance(outcome, PenstockError):
                self._come_back(held, soon)

    def _come_back(self, held: _Held, at: float) -> None:
        held.due_at = at
        heappush(self._due, (at, held.key))

    def _began(self) -> None:
        self._listening, waiting, self._waiting = True, self._waiting, []
        self._ask(waiting)

    async def _hear(self, several: Sequence[News], current_at: float | None) -> None:
        """Take in what is new, and tell those who follow, some at a time.

        So whoever reads as fast as a result changes has read before the feed forgets.
        """
        for first in range(0, len(several), _TAKEN_AT_ONCE):
            if first:
                await asyncio.sleep(0)  # the messages of what was taken are made,
                await asyncio.sleep(0)  # and sent
            self._take(several[first : first + _TAKEN_AT_ONCE])
        self._current_at = current_at

    def _take(self, several: Sequence[News]) -> None:
        changed: dict[_Held, None] = {}
        lost: dict[_Held, None] = {}
        for news in several:
            held = self._held.get(news.id.encode())
            if held is None:
                continue
            if held.feed.take(news):
                changed[held] = None
            size = held.feed.held_bytes
            self._bytes += size - held.bytes
            held.bytes = size
            if held.feed.generation != held.generation:
                held.generation = held.feed.generation
                if news.what != "begin":
                    lost[held] = None
        self._ask([*lost])
        for held in changed:
            for wake in held.followers:
                wake()

    def _run(self) -> None:
        for _ in attempts(self._stop):
            try:
                self._follow()
            except PenstockError as error:
                self._well, self._trouble = False, Trouble(f"{self.live.name}: {error.message}")
                LOG.info("the news of %s are followed anew: %s", self.live.name, error.message)
            except Exception:  # a mistake of ours: it is said, and others go on
                self._well, self._trouble = False, Trouble(f"{self.live.name}: the gateway failed")
                LOG.exception("the news of %s are followed anew", self.live.name)

    def _follow(self) -> None:
        """Hand over what is new until the end, or until something fails."""
        follower = Follower(
            self._connection,
            self.live.news.topic.name,
            from_end=self._positions is None,
            starts=self._positions,
        )
        try:
            self._positions = dict(follower.positions)
            # Only now: what is asked from here on is answered behind this position.
            self._loop.call_soon_threadsafe(self._began)
            while not self._stop.is_set():
                records = follower.take(_TAKE_SECONDS)
                found = [
                    news
                    for record in records
                    if record.key() in self._held and (news := self._read(record)) is not None
                ]
                if found or follower.current_at != self._current_at:
                    self._hand_over(found, follower.current_at)
                self._positions = dict(follower.positions)
                away = follower.trouble()
                self._well = away is None
                if away is not None:
                    self._trouble = Trouble(f"{self.live.name}: {away}")
        finally:
            follower.close()

    def _read(self, record: RawRecord) -> News | None:
        """Return what a record says; None: a stranger wrote it, and what is missing is noticed."""
        try:
            return self._reading.accept(record.key(), record.value())
        except DataError as error:
            LOG.warning("the news of %s cannot be read: %s", self.live.name, error.message)
            return None

    def _hand_over(self, found: Sequence[News], current_at: float | None) -> None:
        taken = asyncio.run_coroutine_threadsafe(self._hear(found, current_at), self._loop)
        # What the loop has not taken in is not read on: so what waits for it is bounded.
        while not self._stop.is_set():
            with suppress(TimeoutError):
                taken.result(_TAKE_SECONDS)
                return
        taken.cancel()
