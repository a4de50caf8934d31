"""Questions that are asked again and again, for all who watch them."""

import asyncio

import pytest

from penstock.errors import TransientError
from penstock.serving.relations.watching import (
    MOST_WAITING,
    Question,
    Round,
    TooManyRowsError,
    Watches,
)


class Answers:
    """A question whose answer the test sets."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = [("a", 1)]
        self.error: Exception | None = None
        self.asked = 0
        self.version: int | None = None

    async def ask(self) -> Round:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return Round(rows=list(self.rows), about={"at": self.asked}, more=len(self.rows) > 5000)

    async def probe(self) -> int | None:
        return self.version

    @property
    def question(self) -> Question:
        return Question(ask=self.ask, probe=self.probe, identity=(0,))


async def told(watcher, count):
    """Return the next changes, as before and after, with their numbers."""
    found = []
    while len(found) < count:
        coming = await watcher.next(seconds=30)
        found += [(each.number, each.changed.before, each.changed.after) for each in coming[0]]
    return found


def test_all_who_watch_one_question_are_told_of_one_round():
    async def run():
        answers, watches = Answers(), Watches(most=2, interval=0.001)
        watched = watches.watched("q", answers.question)
        assert watches.watched("q", answers.question) is watched
        one, two = await watched.watch(""), await watched.watch("")
        assert one.rows == two.rows == [("a", 1)]
        answers.rows = [("a", 2), ("b", 1)]
        for each in (one, two):
            assert await told(each, 2) == [(1, ("a", 1), ("a", 2)), (2, None, ("b", 1))]
        back = await watched.watch(watched.mark(1))
        assert (back.resumed, [each.number for each in back.missed]) == (True, [2])
        for unknown in (watched.mark(99), "x-1", "", "0"):
            assert not (await watched.watch(unknown)).resumed
        watches.watched("r", answers.question)
        with pytest.raises(TransientError, match="are watched"):
            watches.watched("s", answers.question)
        await watches.close()
        assert len(watches) == 0

    asyncio.run(run())


def test_while_nothing_is_committed_nothing_is_asked():
    async def run():
        answers, watches = Answers(), Watches(most=2, interval=0.001)
        answers.version = 1
        watcher = await watches.watched("q", answers.question).watch("")
        answers.rows = [("a", 2)]
        assert await watcher.next(seconds=0.05) == ([], {})
        assert answers.asked == 1
        answers.version = 2
        assert await told(watcher, 1) == [(1, ("a", 1), ("a", 2))]
        await watches.close()

    asyncio.run(run())


def test_while_there_is_no_answer_what_was_told_stands():
    async def run():
        answers, watches = Answers(), Watches(most=2, interval=0.001)
        watcher = await watches.watched("q", answers.question).watch("")
        answers.error = TransientError("it moves", code="state.moving")
        assert await watcher.next(seconds=30) == (
            [],
            {"code": "state.moving", "detail": "it moves"},
        )
        answers.error, answers.rows = None, [("a", 3)]
        assert await told(watcher, 1) == [(1, ("a", 1), ("a", 3))]
        answers.error = ValueError("a mistake of ours")
        assert await watcher.next(seconds=30) is None
        assert watcher.error is not None
        assert watcher.error.code == "watch.failed"
        await watches.close()

    asyncio.run(run())


def test_what_is_too_large_and_who_does_not_keep_up_is_let_go():
    async def run():
        answers, watches = Answers(), Watches(most=2, interval=0.001)
        watcher = await watches.watched("q", answers.question).watch("")
        answers.rows = [(f"k{number}", 1) for number in range(MOST_WAITING + 1)]
        assert await watcher.next(seconds=30) is None
        assert watcher.behind
        answers.rows = [(f"k{number}", 1) for number in range(5001)]
        large = watches.watched("large", answers.question)
        with pytest.raises(TooManyRowsError):
            await large.watch("")
        await watches.close()

    asyncio.run(run())
