"""A task whose time is up: it stops between two calls, and what it did can be committed."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest

from penstock import App, Timer, Timers, record
from penstock.core.graph.parts import Service
from penstock.core.wiring.lookup import find_part
from penstock.services.task.task import Task
from penstock.testing.memorylog import MemoryDelivery, MemoryLog

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WORDS = ("words", 0)
PAST = 0.0


@record(key="word", time="at")
class Word:
    word: str
    at: datetime


class Bench:
    """A service of two kinds, which notes its calls; and its task."""

    def __init__(self, *, kind="sync", delivery="exactly_once"):
        self.app = App("demo")
        words = self.app.stream("words", Word, partitions=1)
        out = self.app.stream("out", Word, partitions=1)
        self.calls, self.now_at = [], NOON

        def note(word):
            self.calls.append(word.word)
            return word

        def copy(word: Word) -> Word:
            return note(word)

        async def ask(word: Word) -> Word:
            return note(word)

        class Wait:
            def process(inner, word: Word, timers: Timers) -> Word:  # noqa: N805
                timers.set("end", at=word.at + timedelta(minutes=1))
                timers.set("clock", after="1m", time="processing")
                return note(word)

            def on_timer(inner, timer: Timer) -> None:  # noqa: N805
                self.calls.append(f"{timer.name} {timer.key}")

        made = {"sync": copy, "async": ask, "timed": Wait}[kind]
        self.service = self.app.service(reads=words, writes=out, name="s", delivery=delivery)(made)
        self.log = MemoryLog(self.app.graph.topics(), clock=lambda: NOON)
        self.task = self.make()

    def make(self):
        offset = self.log.committed("demo.s").get(WORDS, 0)
        task = Task(
            self.app.graph,
            self.service if hasattr(self.service, "reads") else self.app.graph.part("s"),
            number=0,
            starts={WORDS: offset},
            delivery=MemoryDelivery(
                self.log, group="demo.s", delivery=find_part(self.app.graph, "s", Service).delivery
            ),
            clock=lambda: self.now_at,
        )
        task.open()
        return task

    def fill(self, *words, minutes=0):
        at = (NOON + timedelta(minutes=minutes)).isoformat().encode()
        for word in words:
            value = b'{"word":"%s","at":"%s"}' % (word.encode(), at)
            self.log.append("words", key=word.encode(), value=value, partition=0)

    def turn(self):
        """Handle what there is as the worker does, the time always being up."""
        self.task.release()
        records = self.log.read(WORDS, self.task.positions[WORDS])
        if records:
            self.task.handle(WORDS, records, deadline=PAST)
        self.task.commit()


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once", "at_most_once"])
def test_a_task_out_of_time_handles_one_record_and_leaves_the_rest_for_later(kind, delivery):
    bench = Bench(kind=kind, delivery=delivery)
    bench.fill(*"abc")
    for done in (1, 2, 3):
        bench.turn()
        assert bench.calls == list("abc")[:done]
        assert bench.log.committed("demo.s") == {WORDS: done}
        assert len(bench.log.read(("out", 0))) == done
    assert bench.task.step.tally.counts().balanced


def test_records_that_do_not_decode_take_their_time_too():
    bench = Bench()
    for _ in range(2):
        bench.log.append("words", key=b"k", value=b"no json", partition=0)
    bench.fill("a")
    bench.turn()
    assert bench.log.committed("demo.s") == {WORDS: 1}
    bench.turn()
    bench.turn()
    assert bench.calls == ["a"]


def test_what_was_left_is_not_done_twice_when_the_task_is_made_anew():
    bench = Bench()
    bench.fill(*"abc")
    bench.turn()
    bench.task.close()
    bench.task = bench.make()
    bench.turn()
    bench.turn()
    assert bench.calls == list("abc")


def test_timers_that_a_record_makes_due_go_off_before_it_however_little_time_there_is():
    bench = Bench(kind="timed")
    bench.fill("a", "b")
    bench.fill("c", minutes=10)
    for _ in range(5):
        bench.turn()
    assert bench.calls == ["a", "b", "end a", "end b", "c"]


def test_timers_of_the_clock_go_off_one_by_one_and_none_is_left_out():
    bench = Bench(kind="timed")
    bench.fill(*"abc")
    bench.task.handle(WORDS, bench.log.read(WORDS))
    bench.task.commit()
    bench.now_at += timedelta(minutes=1)
    for done in (1, 2, 3):
        assert bench.task.tick(deadline=PAST)
        bench.task.commit()
        assert bench.calls[3:] == ["clock a", "clock b", "clock c"][:done]
    assert not bench.task.tick(deadline=PAST)


def test_the_record_in_hand_is_known_while_it_is_handled():
    bench = Bench()
    seen = []
    bench.calls = SimpleNamespace(
        append=lambda word: seen.append((word, [raw.offset() for raw in bench.task.in_hand()]))
    )
    bench.fill(*"abc")
    bench.task.handle(WORDS, bench.log.read(WORDS))
    assert seen == [("a", [0]), ("b", [1]), ("c", [2])]
    assert bench.task.in_hand() == ()


def test_a_partition_without_time_is_read_again_from_where_it_stands():
    bench = Bench()
    bench.task.postpone(WORDS)
    assert bench.task.handle(WORDS, []) == 0
    assert bench.task.release() == [WORDS]
    assert not bench.task.dirty


class NotedDelivery(MemoryDelivery):
    """Notes when a transaction would begin on a broker, and when it ends."""

    def __init__(self, log, notes):
        super().__init__(log, group="demo.s")
        self._notes = notes

    def send(self, topic, /, **record):
        self._notes.append("sent")
        super().send(topic, **record)

    def commit(self, offsets):
        self._notes.append("committed")
        return super().commit(offsets)


def alone(timer_after, *, kind):
    """Return what is called, sent and committed where the time is always up, in order."""
    app, notes = App("demo"), []
    words = app.stream("words", Word, partitions=1)
    out = app.stream("out", Word, partitions=1)

    def take(word, timers):
        notes.append(word.word)
        timers.set("end", at=word.at + timer_after)
        return word

    def end(timer):
        notes.append(f"end {timer.key}")
        return Word(timer.key, timer.due_at)

    class Sync:
        def process(self, word: Word, timers: Timers) -> Word:
            return take(word, timers)

        def on_timer(self, timer: Timer) -> Word:
            return end(timer)

    class Async:
        async def process(self, word: Word, timers: Timers) -> Word:
            return take(word, timers)

        async def on_timer(self, timer: Timer) -> Word:
            return end(timer)

    app.service(reads=words, writes=out, name="s")(Sync if kind == "sync" else Async)
    log = MemoryLog(app.graph.topics(), clock=lambda: NOON)
    delivery = NotedDelivery(log, notes)
    starts = {WORDS: 0}
    service = app.graph.part("s")
    task = Task(app.graph, service, number=0, starts=starts, delivery=delivery, clock=lambda: NOON)
    for word, minutes in (("a", 0), ("b", 10), ("c", 20)):
        at = (NOON + timedelta(minutes=minutes)).isoformat().encode()
        value = b'{"word":"%s","at":"%s"}' % (word.encode(), at)
        log.append("words", key=word.encode(), value=value, partition=0)
    while records := log.read(WORDS, task.positions[WORDS]):
        task.release()
        task.handle(WORDS, records, deadline=PAST)
        task.commit()
        task.tick(deadline=PAST)
        task.commit()
    return notes


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("minutes", [5, -5])
def test_no_call_waits_in_the_transaction_of_another_where_the_time_is_up(kind, minutes):
    # A call that is longer than a transaction's time-out would never be through otherwise.
    notes = alone(timedelta(minutes=minutes), kind=kind)
    calls = [note for note in notes if note not in {"sent", "committed"}]
    expected = ["a", "end a", "b", "end b", "c"]
    assert calls == (expected if minutes > 0 else [*expected, "end c"])
    for before, after in pairwise(notes):
        assert before != "sent" or after in {"sent", "committed"}
