"""What one connection follows, whatever carries its messages.

``tell`` takes a message, and says whether there was room. Where there was none, nothing more is
taken from the feeds until ``go_on``: what is new waits where all who follow a query share it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from starlette.types import Scope

from penstock.core.feeds.messages import End, Failed, UpToDate, encoded
from penstock.core.feeds.requests import Followed, squash_seconds
from penstock.core.feeds.subscription import Subscription
from penstock.errors import PenstockError
from penstock.serving.http.problems import Problem, problem_of
from penstock.serving.live.following import Following, Wake
from penstock.serving.live.offered import Offered

__all__ = ["MOST_SUBSCRIPTIONS", "Session"]

MOST_SUBSCRIPTIONS = 1000
"""So many queries may one connection follow."""
_AT_ONCE = 100
"""So many messages of one connection are made before others have a turn."""
_COMPLETE = (b'{"type":"ready"', b'{"type":"resumed"')
_RESULTS = b'{"type":"results"'
_MOVED = "the rows that this caller may see have changed"


class _Subscribed:
    """One subscription of a connection."""

    __slots__ = ("following", "request", "subscription", "wake")

    def __init__(
        self, request: Followed, following: Following, subscription: Subscription, wake: Wake
    ) -> None:
        self.request = request
        self.following = following
        self.subscription = subscription
        self.wake = wake


class Session:
    """The subscriptions of one connection; for the event loop."""

    def __init__(
        self,
        offered: Offered,
        scope: Scope,
        tell: Callable[[bytes], bool],
        *,
        heartbeat_seconds: float,
        on_full: Callable[[], None],
    ) -> None:
        self._offered = offered
        self._scope = scope
        self._tell = tell
        self._on_full = on_full
        self._heartbeat = heartbeat_seconds
        self._loop = asyncio.get_running_loop()
        self._followed: dict[str, _Subscribed] = {}
        self._news: dict[str, None] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._beating: asyncio.TimerHandle | None = None
        self._unsent: deque[bytes] = deque()
        self._scheduled = False
        self._full = False
        self._fresh: set[str] = set()
        self._completed: set[str] = set()
        self._closed = False
        self._beats = False

    def __len__(self) -> int:
        """Return how many subscriptions there are."""
        return len(self._followed)

    def begin(self) -> None:
        """Begin to tell now and then how things stand."""
        self._beats = True
        self._beating = self._loop.call_later(self._heartbeat, self._beat)

    def subscribe(self, request: Followed) -> None:
        """Follow a query; what is wrong with it is told to the client."""
        if request.id in self._followed:
            raise Problem(
                HTTPStatus.CONFLICT,
                "live.message",
                f"there is a subscription {request.id!r} already",
                allowed="an id is used once at a time",
            )
        try:
            self._followed[request.id] = self._follow(request)
        except (Problem, PenstockError) as error:
            self.refuse(error, request.id)
        else:
            self._fresh.add(request.id)
            self.wake(request.id)

    def unsubscribe(self, name: str) -> None:
        """Follow it no more; the client is told when nothing more comes."""
        self._drop(name)
        self.say(encoded(End(name)))

    def move(self) -> None:
        """Look again at what the caller may see, and follow that."""
        for name, followed in [*self._followed.items()]:
            subscription = followed.subscription
            try:
                following = self._offered.find(followed.request.live, self._scope)
                query = self._offered.query(following, followed.request.query, self._scope)
                if query.name == subscription.feed.name:
                    continue
                feed = following.join(query, followed.wake)
            except (Problem, PenstockError) as error:
                self._drop(name)
                self.refuse(error, name)
                continue
            following.leave(subscription.feed, followed.wake)
            subscription.move(feed, _MOVED)
            self.wake(name)

    def refuse(self, error: Problem | PenstockError, name: str = "") -> None:
        """Tell the client what is wrong, with a subscription or with the connection."""
        problem = error if isinstance(error, Problem) else problem_of(error)
        self.say(encoded(Failed(problem.document(), name)))

    def say(self, message: bytes) -> None:
        """Send a message; while there is no room it waits, and so must who asks for more."""
        if self._full:
            self._unsent.append(message)
        else:
            self._send(message)

    def wake(self, name: str) -> None:
        """Hear that a subscription may have something to tell."""
        self._news[name] = None
        if not self._scheduled and not self._full and not self._closed:
            self._scheduled = True
            self._loop.call_soon(self._pump)

    def go_on(self) -> None:
        """Hear that there is room again."""
        self._full = False
        while self._unsent and not self._full:
            if not self._tell(self._unsent[0]):
                self._full = True
                self._on_full()
                return
            self._unsent.popleft()
        if self._news:
            self.wake(next(iter(self._news)))

    @property
    def is_busy(self) -> bool:
        """Whether there may be something that can be said at once."""
        return bool(self._news) and not self._full

    @property
    def is_full(self) -> bool:
        """Whether the client must read before anything more is said."""
        return self._full

    @property
    def tokens(self) -> Mapping[str, str]:
        """Where the client stands in each query of which it has been sent everything."""
        found = ((name, each.subscription.token) for name, each in self._followed.items())
        return {name: token for name, token in found if token is not None}

    def up_to_date(self) -> bytes:
        """Return the message that says how things stand."""
        stale = self._offered.stale_seconds(
            {each.following.live.name for each in self._followed.values()}
        )
        return encoded(UpToDate(None if stale is None else round(stale, 3), self.tokens))

    def close(self) -> None:
        """End all subscriptions."""
        self._closed = True
        if self._beating is not None:
            self._beating.cancel()
        for name in [*self._followed]:
            self._drop(name)
        self._news.clear()

    def _follow(self, request: Followed) -> _Subscribed:
        if len(self._followed) >= MOST_SUBSCRIPTIONS:
            text = f"this connection follows {MOST_SUBSCRIPTIONS:,} queries already"
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "live.too-many", text)
        following = self._offered.find(request.live, self._scope)
        squash = squash_seconds(request.squash)
        query = self._offered.query(following, request.query, self._scope)
        wake = partial(self.wake, request.id)
        feed = following.join(query, wake)
        subscription = Subscription(
            request.id, feed, face=request.face, squash=squash, resume=request.resume
        )
        return _Subscribed(request, following, subscription, wake)

    def _drop(self, name: str) -> None:
        followed = self._followed.pop(name, None)
        self._news.pop(name, None)
        self._fresh.discard(name)
        self._completed.discard(name)
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()
        if followed is not None:
            followed.following.leave(followed.subscription.feed, followed.wake)

    def _pump(self) -> None:
        """Send what is new, as long as there is room and others need not wait."""
        self._scheduled = False
        now = self._loop.time()
        for _ in range(_AT_ONCE):
            if not self._news or self._full or self._closed:
                break
            name = next(iter(self._news))
            followed = self._followed.get(name)
            frame = None if followed is None else followed.subscription.pull(now)
            if followed is None or frame is None:
                del self._news[name]
                if followed is not None:
                    self._wait(name, followed.subscription, now)
                continue
            if followed.subscription.ended:
                self._drop(name)
            elif frame.startswith(_COMPLETE) or (
                name in self._fresh and frame.startswith(_RESULTS)
            ):
                self._fresh.discard(name)
                self._completed.add(name)
            self._send(frame)
        if self._news:
            self.wake(next(iter(self._news)))
        elif self._completed and not self._full:
            self._completed.clear()
            if self._beats:
                self._send(self.up_to_date())

    def _wait(self, name: str, subscription: Subscription, now: float) -> None:
        """Come back when changes have been collected for long enough."""
        if subscription.due_at > now and name not in self._timers:
            self._timers[name] = self._loop.call_at(subscription.due_at, self._due, name)

    def _due(self, name: str) -> None:
        self._timers.pop(name, None)
        self.wake(name)

    def _send(self, message: bytes) -> None:
        if not self._tell(message):
            self._unsent.append(message)
            self._full = True
            self._on_full()

    def _beat(self) -> None:
        self._beating = self._loop.call_later(self._heartbeat, self._beat)
        if not self._full:
            self._send(self.up_to_date())
