"""One query as a gateway follows it: its result now, and its last changes.

News come in the order of the log. Whole results that somebody else asked for say nothing new here.
News that were given before are known by their number; where one is missing, the feed is **lost**
until the whole result comes again.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter

import msgspec

from penstock.core.feeds.changes import FeedChange, FeedEvent, encode_events, squash
from penstock.core.feeds.token import Token, read_token
from penstock.core.grid.messages import News

__all__ = ["KEPT_BYTES", "KEPT_CHANGES", "MOST_DOCUMENTS", "Feed", "Squashed"]

KEPT_CHANGES = 1000
"""So many changes of a query are remembered, for clients that come back or are slow."""
KEPT_BYTES = 1 << 20
"""So many bytes of them at most."""
MOST_DOCUMENTS = 50_000
"""So many documents may a result have."""
MOST_DOCUMENT_BYTES = 64 << 20

LOST_LEASE = "the services have closed the query: nobody renewed it in time"
LOST_NEWS = "news of the query are missing"
LOST_LIFE = "the services have opened the query anew"


class _Identified(msgspec.Struct, rename={"identity": "_id"}):
    identity: msgspec.Raw


_IDENTITY = msgspec.json.Decoder(_Identified)
_NUMBER = attrgetter("number")


class Squashed:
    """Several changes as one: the events as JSON, and the offsets of the writes."""

    def __init__(self, events: Sequence[FeedEvent], positions: Mapping[str, int]) -> None:
        self.empty = not events
        self.encoded = encode_events(events)
        self.positions = positions


class Feed:
    """The result of one query, as its news say."""

    def __init__(self, name: str, *, ordered: bool) -> None:
        self.name = name
        self.ordered = ordered
        self.ready = False
        self.generation = 0
        """Grows when the result has to be fetched again."""
        self.lost = ""
        """Why it had to be, the last time."""
        self.too_large = False
        self.number = 0
        self.positions: dict[str, int] = {}
        self.size = 0
        """How many bytes its documents have."""
        self._life = -1
        self._seen = 0
        self._restating = False
        self._oldest = 0
        self._keys: list[bytes] = []
        self._documents: dict[bytes, msgspec.Raw] = {}
        self._changes: deque[FeedChange] = deque()
        self._changes_size = 0
        self._partly: list[tuple[bytes, FeedEvent]] = []
        self._squashed: dict[int, Squashed] = {}
        self._places: dict[bytes, int] | None = None

    def take(self, news: News) -> bool:  # noqa: PLR0911 - one for each kind of news
        """Take what is new; return whether there is something to tell."""
        if news.life < self._life or (news.life == self._life and news.number <= self._seen):
            return False
        if news.what == "begin":
            return self._begin(news)
        if news.life > self._life or news.number != self._seen + 1:
            return self._lose(LOST_NEWS if news.life == self._life else LOST_LIFE)
        self._seen = news.number
        if news.what == "end":
            return self._lose(LOST_LEASE)
        if self._restating:
            self._restating = news.what != "ready"
            return False
        if news.what == "first":
            return self._first(news)
        if news.what == "ready":
            return self._complete(news)
        return self._event(news) if self.ready else False

    @property
    def held_bytes(self) -> int:
        """How much memory its documents and changes take, roughly."""
        return self.size + self._changes_size

    def token(self, number: int) -> str:
        """Return where a client stands that was told everything up to a number."""
        return str(Token(self._life, number, self.name[-12:]))

    def place_of(self, text: str) -> int | None:
        """Return the number that a token stands for; None: what came since is not remembered."""
        token = read_token(text)
        if token is None or token.query != self.name[-12:] or token.life != self._life:
            return None
        return token.number if self._oldest <= token.number <= self.number else None

    def documents(self) -> list[msgspec.Raw]:
        """Return the result as it is."""
        if self.ordered:
            return [self._documents[key] for key in self._keys]
        return list(self._documents.values())

    def change_after(self, number: int) -> FeedChange | None:
        """Return the change that follows a number; None: it is forgotten."""
        if number < self._oldest:
            return None
        last = self._changes[-1]
        if last.after == number:
            return last
        return self._changes[bisect_right(self._changes, number, key=_NUMBER)]

    def squashed_after(self, number: int) -> Squashed | None:
        """Return all changes that follow a number as one; None: they are forgotten."""
        if number < self._oldest:
            return None
        if (found := self._squashed.get(number)) is None:
            first = bisect_right(self._changes, number, key=_NUMBER)
            changes = list(islice(self._changes, first, None))
            positions: dict[str, int] = {}
            for change in changes:
                positions |= change.positions
            events = squash(changes, place=self._place)
            found = self._squashed[number] = Squashed(events, positions)
        return found

    def _begin(self, news: News) -> bool:
        if self.ready and news.life == self._life and news.number == self._seen + 1:
            self._restating, self._seen = True, news.number
            return False
        told = self.ready and self._lose(LOST_LIFE if news.life > self._life else LOST_NEWS)
        self._life, self._seen = news.life, news.number
        # Whoever was told everything before this result has it already.
        self._oldest = news.number - 1
        self._forget()
        return told

    def _first(self, news: News) -> bool:
        if self.too_large:
            return False
        key, document = _read(news.document)
        self._put(key, document)
        if self.ordered:
            self._keys.append(key)
        return self._is_too_large()

    def _complete(self, news: News) -> bool:
        self.positions = dict(news.positions)
        self.number = news.number
        self._changes.append(FeedChange(self._oldest, news.number, (), {}))
        self._changes_size = self._changes[-1].size
        self.ready = not self.too_large
        return True

    def _event(self, news: News) -> bool:
        key, document = _read(news.document)
        self._partly.append((key, _event_of(news, key, document)))
        if news.more:
            return False
        for each, event in self._partly:
            if not self._apply(each, event):
                self._partly = []
                return self._lose(LOST_NEWS)
        change = FeedChange(self.number, news.number, tuple(self._partly), dict(news.positions))
        self._partly = []
        self.number = news.number
        self.positions |= change.positions
        self._remember(change)
        return True

    def _apply(self, key: bytes, event: FeedEvent) -> bool:
        """Do what an event says; return whether it can be done."""
        there = key in self._documents
        if there == (event.what == "add"):
            return False
        if event.what in ("remove", "changeIndex") and self.ordered:
            self._keys.remove(key)
        if event.what == "remove":
            self.size -= len(memoryview(self._documents.pop(key)))
            return True
        self._put(key, event.document)
        if event.what != "change" and self.ordered:
            self._keys.insert(event.index or 0, key)
        return not self._is_too_large()

    def _put(self, key: bytes, document: msgspec.Raw) -> None:
        if (before := self._documents.get(key)) is not None:
            self.size -= len(memoryview(before))
        self.size += len(memoryview(document))
        self._documents[key] = document

    def _remember(self, change: FeedChange) -> None:
        self._squashed.clear()
        self._places = None
        self._changes.append(change)
        self._changes_size += change.size
        while len(self._changes) > 1 and (
            len(self._changes) > KEPT_CHANGES or self._changes_size > KEPT_BYTES
        ):
            forgotten = self._changes.popleft()
            self._changes_size -= forgotten.size
            self._oldest = forgotten.number

    def _place(self, key: bytes) -> int | None:
        if not self.ordered:
            return None
        if self._places is None:
            self._places = {each: index for index, each in enumerate(self._keys)}
        return self._places.get(key)

    def _is_too_large(self) -> bool:
        if len(self._documents) > MOST_DOCUMENTS or self.size > MOST_DOCUMENT_BYTES:
            self.too_large, self.ready = True, False
            self._forget()
        return self.too_large

    def _lose(self, reason: str) -> bool:
        if not self.ready and not self._documents:
            self._restating = False
            return False
        self.ready, self._restating = False, False
        self.generation += 1
        self.lost = reason
        self._forget()
        return True

    def _forget(self) -> None:
        self._keys, self._documents, self._partly = [], {}, []
        self._changes.clear()
        self._squashed.clear()
        self._places = None
        self._changes_size = self.size = 0


def _read(text: str) -> tuple[bytes, msgspec.Raw]:
    """Return the identity of a document, and the document."""
    document = text.encode()
    return bytes(_IDENTITY.decode(document).identity), msgspec.Raw(document)


def _event_of(news: News, key: bytes, document: msgspec.Raw) -> FeedEvent:
    if news.what == "remove":
        # What it is now may be for others to see.
        document = msgspec.Raw(b'{"_id":%b}' % key)
    return FeedEvent(news.what, document, news.operation, news.index)
