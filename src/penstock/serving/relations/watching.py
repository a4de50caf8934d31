"""Questions that are asked again and again, for all who watch them: what changed in the answer.

One round serves everybody who watches the same question. A round is skipped where nothing was
committed since the last one, and takes at most a share of the time. Changes are numbered, and the
last ones are kept for those who come back.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from penstock.core.sql.differences import Changed, Differences
from penstock.errors import PenstockError, TransientError

__all__ = [
    "KEPT_CHANGES",
    "LINGER_SECONDS",
    "Numbered",
    "Question",
    "Round",
    "TooManyRowsError",
    "Watched",
    "Watcher",
    "Watches",
]

KEPT_CHANGES = 10_000
"""So many changes of one question are kept for those who come back."""
LINGER_SECONDS = 30.0
"""How long a question that nobody watches any more is asked on, for those who come back."""
MOST_WAITING = 1000
"""So many changes may wait for one who watches."""
LOG = logging.getLogger("penstock.serving")
_SHARE = 4
"""A round that took a second is followed by a pause of so many."""
_MOST_MARK = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """An answer: its rows, and what is told with it. ``more``: there are too many to watch."""

    rows: Sequence[tuple[Any, ...]]
    about: dict[str, Any]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Numbered:
    """A change with its number, which goes on without a gap."""

    number: int
    changed: Changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How a question is asked: the whole answer, and what says that it would be the same."""

    ask: Callable[[], Awaitable[Round]]
    probe: Callable[[], Awaitable[Any]]
    """Gives a value that is equal as long as nothing was committed; None: not known."""
    identity: Sequence[int]


@dataclass(slots=True, eq=False)
class Watcher:
    """One who watches: first the rows or the changes that were missed, then what is told."""

    resumed: bool
    rows: list[tuple[Any, ...]]
    missed: list[Numbered]
    number: int
    about: dict[str, Any]
    queue: asyncio.Queue[tuple[list[Numbered], dict[str, Any]] | None] = field(
        default_factory=asyncio.Queue
    )
    waiting: int = 0
    behind: bool = False
    error: PenstockError | None = None
    """Why it is over, where it did not keep up or the question cannot be answered any more."""

    async def next(self, *, seconds: float) -> tuple[list[Numbered], dict[str, Any]] | None:
        """Return the next changes and what is told with them; None: it is over.

        Without changes: none came; or, with a reason, there is no answer at the moment.
        """
        try:
            async with asyncio.timeout(seconds):
                found = await self.queue.get()
        except TimeoutError:
            return [], {}
        if found is not None:
            self.waiting -= len(found[0])
        return found

    def tell(self, changes: list[Numbered], about: dict[str, Any]) -> bool:
        """Take changes; return whether it watches on."""
        self.waiting += len(changes)
        if self.waiting > MOST_WAITING:
            self.behind = True
            self.queue.put_nowait(None)
            return False
        self.queue.put_nowait((changes, about))
        return True

    def end(self, error: PenstockError | None = None) -> None:
        """Hear that nothing more will come."""
        self.error = error
        self.queue.put_nowait(None)


class Watched:
    """One question that is watched; for one event loop."""

    def __init__(self, question: Question, *, interval: float, over: Callable[[], None]) -> None:
        self._question = question
        self._interval = interval
        self._over = over
        self._differences = Differences(question.identity)
        self._epoch = secrets.token_hex(8)
        self._number = 0
        self._kept: deque[Numbered] = deque(maxlen=KEPT_CHANGES)
        self._about: dict[str, Any] = {}
        self._probed: Any = None
        self._watchers: list[Watcher] = []
        self._left_at = monotonic()
        self._waiting = self._ended = False
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    def mark(self, number: int) -> str:
        """Return a number as the id of an event."""
        return f"{self._epoch}-{number}"

    async def watch(self, last: str) -> Watcher:
        """Begin to watch, behind the event ``last`` where that is known; leave with ``leave``.

        Raises what the first round raises.
        """
        self._left_at = monotonic()
        await asyncio.shield(self._first)
        if self._ended:
            raise TransientError("it has just ended", code="watch.ended", hint="ask again")
        number = self._number_of(last)
        missed = None if number is None else self._since(number)
        watcher = Watcher(
            resumed=missed is not None,
            rows=[] if missed is not None else self._differences.rows,
            missed=missed or [],
            number=self._number,
            about=self._about,
        )
        self._watchers.append(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Tell one nothing more."""
        self._watchers = [each for each in self._watchers if each is not watcher]
        self._left_at = monotonic()

    async def close(self) -> None:
        """End."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def _number_of(self, last: str) -> int | None:
        epoch, _, number = last.partition("-")
        known = epoch == self._epoch and number.isdecimal() and len(last) <= _MOST_MARK
        return int(number) if known and int(number) <= self._number else None

    def _since(self, number: int) -> list[Numbered] | None:
        """Return the changes behind one; None: they are not kept any more."""
        found = [each for each in self._kept if each.number > number]
        return found if len(found) == self._number - number else None

    async def _run(self) -> None:
        error: PenstockError | None = None
        try:
            while self._watchers or monotonic() < self._left_at + LINGER_SECONDS:
                began = monotonic()
                await self._round()
                await asyncio.sleep(max(self._interval, _SHARE * (monotonic() - began)))
        except PenstockError as found:
            error = found
        except Exception as found:
            LOG.exception("a watched question failed")
            error = TransientError(type(found).__name__, code="watch.failed")
        finally:
            self._ended = True
            self._over()
            if not self._first.done():
                if error is not None:
                    self._first.set_exception(error)
                    self._first.exception()  # whoever waits for it has it
                else:
                    self._first.cancel()
            for watcher in self._watchers:
                watcher.end(error)
            self._watchers = []

    async def _round(self) -> None:
        try:
            probed = await self._question.probe()
            if probed is not None and probed == self._probed and self._first.done():
                return
            found = await self._question.ask()
        except TransientError as error:
            if not self._first.done():
                raise
            # What was told stands until there is an answer again.
            if not self._waiting:
                self._waiting = True
                self._spread([], {"code": error.code, "detail": error.message})
            return
        self._waiting = False
        if found.more:
            text = "the answer has too many rows to be watched"
            raise TooManyRowsError(text, code="changes.too-many", hint="select fewer")
        self._probed = probed
        self._tell(found)

    def _tell(self, found: Round) -> None:
        changes = []
        for changed in self._differences.next(found.rows):
            self._number += 1
            changes.append(Numbered(self._number, changed))
        self._about = found.about
        if not self._first.done():  # the rows that it begins with are no changes
            self._number = 0
            self._first.set_result(None)
            return
        self._kept.extend(changes)
        if changes:
            self._spread(changes, found.about)

    def _spread(self, changes: list[Numbered], about: dict[str, Any]) -> None:
        self._watchers = [each for each in self._watchers if each.tell(changes, about)]


class TooManyRowsError(PenstockError):
    """An answer that is too large to be watched."""


class Watches:
    """The questions that are watched, by what they ask; for one event loop."""

    def __init__(self, *, most: int, interval: float) -> None:
        self._most = most
        self._interval = interval
        self._watched: dict[str, Watched] = {}

    def __len__(self) -> int:
        """Return how many questions are watched."""
        return len(self._watched)

    def watched(self, name: str, question: Question) -> Watched:
        """Return the question of this name, asked from now on where it was not before.

        TransientError ``watch.too-many``: so many others are.
        """
        found = self._watched.get(name)
        if found is None:
            if len(self._watched) >= self._most:
                raise TransientError(
                    f"{self._most} questions are watched", code="watch.too-many", hint="ask again"
                )
            found = Watched(
                question,
                interval=self._interval,
                over=lambda: self._forget(name),
            )
            self._watched[name] = found
        return found

    def _forget(self, name: str) -> None:
        self._watched.pop(name, None)

    async def close(self) -> None:
        """End all."""
        for each in list(self._watched.values()):
            await each.close()
