"""What one client is told of one query.

It holds no messages: what the client has not been told is a place in what the feed remembers, or,
while the first result is read, a list of documents that others hold too.
"""

from collections import deque
from typing import Any, Literal

import msgspec

from penstock.core.feeds.feed import Feed
from penstock.core.feeds.messages import (
    Begin,
    Changes,
    Failed,
    First,
    MustRefetch,
    Ready,
    ResultMessage,
    Resumed,
    encoded,
)

__all__ = ["FIRST_DOCUMENTS", "LONGEST_RESULT", "Face", "Subscription", "refusal"]

FIRST_DOCUMENTS = 500
"""So many documents of the first result are in one message."""
LONGEST_RESULT = 1000
"""A result may have so many documents to be sent as a whole after each change."""

_UNPROCESSABLE, _TOO_LARGE, _CONFLICT = 422, 413, 409
_TITLES = {
    _UNPROCESSABLE: "Unprocessable Entity",
    _TOO_LARGE: "Request Entity Too Large",
    _CONFLICT: "Conflict",
}

Face = Literal["events", "results"]


def refusal(code: str, detail: str, *, status: int = _UNPROCESSABLE, **more: Any) -> dict[str, Any]:
    """Return a problem document."""
    return {
        "type": f"urn:penstock:problem:{code}",
        "title": _TITLES[status],
        "status": status,
        "code": code,
        "detail": detail,
        **{name: value for name, value in more.items() if value},
    }


class Subscription:
    """One subscription of a connection; ``pull`` gives the next message where there is one."""

    def __init__(
        self, name: str, feed: Feed, *, face: Face = "events", squash: float = 0.0, resume: str = ""
    ) -> None:
        self.name = name
        self.feed = feed
        self.ended = False
        """Whether an error has ended it."""
        self.due_at = 0.0
        """Before this, nothing is told: changes are collected."""
        self._face = face
        self._squash = squash
        self._resume = resume
        self._generation = feed.generation
        self._told = 0
        self._sent = 0
        """The number that the client has: a change that changes nothing is not sent."""
        self._begun = False
        self._resumed = False
        self._had = bool(resume)
        """Whether the client has a copy."""
        self._first: deque[msgspec.Raw] | None = None
        self._waiting: deque[bytes] = deque()
        self._result: tuple[int, dict[str, int]] = (0, {})

    def move(self, feed: Feed, reason: str) -> None:
        """Follow another query from now on, because the caller may see other rows."""
        self.feed = feed
        self._generation = feed.generation
        self._restart(reason)

    @property
    def token(self) -> str | None:
        """Where the client stands, if it has been sent everything that there is."""
        feed = self.feed
        done = self._begun and self._first is None and not self._waiting and not self.ended
        if not done or not feed.ready or self._generation != feed.generation:
            return None
        return feed.token(self._told) if self._told == feed.number else None

    def pull(self, now: float) -> bytes | None:  # noqa: PLR0911 - one for each state
        """Return the next message; None: there is none now."""
        if self.ended:
            return None
        feed = self.feed
        if self._generation != feed.generation:
            self._generation = feed.generation
            self._restart(feed.lost)
        if self._waiting:
            return self._waiting.popleft()
        if feed.too_large:
            return self._end("live.too-large", "the result is too large to be followed", _TOO_LARGE)
        if not feed.ready:
            return None
        if not self._begun:
            return self._begin()
        if self._first is not None:
            return self._next_first()
        if self._told == feed.number or now < self.due_at:
            return None
        self.due_at = now + self._squash
        if self._face == "results":
            return self._whole()
        return self._changes()

    def _restart(self, reason: str) -> None:
        self._first = None
        self._waiting.clear()
        if self._begun:
            self._had = True
        self._begun = False
        if self._had and self._face == "events":
            self._resume = ""
            self._had = False
            self._waiting.append(encoded(MustRefetch(self.name, reason)))

    def _begin(self) -> bytes | None:
        feed = self.feed
        self._begun = True
        if self._face == "results":
            return self._whole()
        if self._resume:
            place = feed.place_of(self._resume)
            self._resume = ""
            if place is not None:
                self._told = self._sent = place
                self._resumed = place != feed.number
                return encoded(Resumed(self.name, place))
            self._waiting.append(encoded(Begin(self.name, feed.ordered)))
            self._snapshot()
            return encoded(MustRefetch(self.name, "the gateway does not remember what came since"))
        self._snapshot()
        return encoded(Begin(self.name, feed.ordered))

    def _snapshot(self) -> None:
        """Keep the result as it is until the client has read it."""
        feed = self.feed
        self._first = deque(feed.documents())
        self._told = self._sent = feed.number
        self._result = (feed.number, dict(feed.positions))

    def _next_first(self) -> bytes:
        first = self._first or deque()
        if first:
            count = min(FIRST_DOCUMENTS, len(first))
            return encoded(First(self.name, _listed([first.popleft() for _ in range(count)])))
        self._first = None
        number, positions = self._result
        return encoded(Ready(self.name, number, positions, self.feed.token(number)))

    def _changes(self) -> bytes | None:
        feed, told, squashed = self.feed, self._told, None
        if self._squash or self._resumed:
            self._resumed = False
            squashed = feed.squashed_after(told)
            if squashed is None:
                return self._behind()
            self._told = feed.number
            if squashed.empty:
                return None
            events, positions = squashed.encoded, squashed.positions
        else:
            change = feed.change_after(told)
            if change is None:
                return self._behind()
            self._told = change.number
            if not change.events:
                return self._changes() if self._told != feed.number else None
            events, positions = change.encoded, change.positions
        after, self._sent = self._sent, self._told
        return encoded(
            Changes(
                id=self.name,
                events=events,
                after=after,
                number=self._told,
                positions=positions,
                token=feed.token(self._told),
                squashed=squashed is not None,
            )
        )

    def _whole(self) -> bytes:
        feed = self.feed
        documents = feed.documents()
        if len(documents) > LONGEST_RESULT:
            detail = f"a result of more than {LONGEST_RESULT:,} documents is told by its events"
            return self._end("live.too-large", detail, _TOO_LARGE)
        self._told = feed.number
        return encoded(
            ResultMessage(
                id=self.name,
                documents=_listed(documents),
                number=feed.number,
                positions=dict(feed.positions),
                token=feed.token(feed.number),
            )
        )

    def _behind(self) -> bytes:
        detail = "the client reads slower than the result changes; ask with squash"
        return self._end("live.behind", detail, _CONFLICT)

    def _end(self, code: str, detail: str, status: int) -> bytes:
        self.ended = True
        self._first = None
        return encoded(Failed(refusal(code, detail, status=status), self.name))


def _listed(documents: list[msgspec.Raw]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(documents))
