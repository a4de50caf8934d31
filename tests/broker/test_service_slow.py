"""Services that are slower than the time-outs they work under: they get on, and say so.

A broker ends transactions that are too old every ten seconds: what is to outlive one takes longer.
All services run at the same time, so that the tests together take about as long as the slowest.
"""

import asyncio
import threading
import uuid
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from penstock import App, Timer, Timers
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics

from . import service_worker as kit

OUTLIVES = 13.0
"""Seconds after which the broker has ended a transaction with the time-out below."""
SETTINGS = replace(
    kit.SETTINGS,
    services=replace(
        kit.SETTINGS.services,
        transaction_timeout=timedelta(seconds=2.5),
        session_timeout=timedelta(seconds=5),
        poll_interval=timedelta(seconds=5),
        slow_call=timedelta(seconds=2),
    ),
)
PARTS = {"steady": 650, "sluggish": 65, "waiting": 300, "bells": 650, "single": 30}
"""The services, and how many words each is given."""


def take(seconds):
    threading.Event().wait(seconds)


class Slow:
    """An application of slow services, and what they were called with."""

    running: kit.InThread
    found: dict[str, list[str]]

    def __init__(self, name):
        self.app, self.name = App(name), name
        self.calls = Counter()
        streams = {
            part: (
                self.app.stream(f"{name}.{part}", kit.Word, partitions=1),
                self.app.stream(f"{name}.{part}.out", kit.Word, partitions=1),
            )
            for part in PARTS
        }

        def service(part, **options):
            words, out = streams[part]
            return self.app.service(reads=words, writes=out, name=part, **options)

        @service("steady")
        def steady(word: kit.Word) -> kit.Word:
            take(OUTLIVES / PARTS["steady"])
            return word

        @service("sluggish")
        def sluggish(word: kit.Word) -> kit.Word:
            take(OUTLIVES / PARTS["sluggish"])
            return word

        @service("waiting", concurrency=4)
        async def waiting(word: kit.Word) -> kit.Word:
            await asyncio.sleep(4 * OUTLIVES / PARTS["waiting"])
            return word

        @service("bells")
        class Bells:
            def process(self, _: kit.Word, timers: Timers) -> None:
                timers.set("end", after="1s", time="processing")

            def on_timer(self, timer: Timer) -> kit.Word:
                take(OUTLIVES / PARTS["bells"])
                return kit.Word(timer.key)

        @service("single")
        def single(word: kit.Word) -> kit.Word:
            self.calls[word.word] += 1
            if word.word == "w15":
                take(OUTLIVES)
            return word


@pytest.fixture(scope="module")
def run(kafka):
    slow = Slow(f"slow.{uuid.uuid4().hex[:8]}")
    Topics(kafka).declare(slow.app.graph.topics())
    for part, count in PARTS.items():
        words = SimpleNamespace(words=slow.app.graph.part(part).inputs[0])
        kit.send_words(kafka, words, [f"w{number}" for number in range(count)])
    with kit.InThread(kafka, slow, *PARTS, settings=SETTINGS) as running:
        for part, count in PARTS.items():
            kit.eventually(lambda p=part, n=count: running.has(p, written=n), what=part)
    slow.running = running
    slow.found = {
        part: [raw.key.decode() for raw in LogReader(kafka).read(f"{slow.name}.{part}.out")]
        for part in PARTS
    }
    return slow


@pytest.mark.parametrize("part", ["steady", "sluggish", "waiting", "bells"])
def test_a_slow_service_gets_to_the_end_of_a_batch_that_outlives_its_transaction(run, part):
    assert run.running.error is None
    assert sorted(run.found[part]) == sorted(f"w{number}" for number in range(PARTS[part]))


def test_what_is_done_of_a_batch_is_seen_before_the_batch_is_done(run):
    for part in ("steady", "sluggish", "waiting"):
        commits = run.running.last(part).metrics["commit_seconds_count"]
        assert commits > OUTLIVES, part


def test_a_call_longer_than_every_time_out_is_made_twice_and_then_goes_through(run):
    assert run.found["single"] == [f"w{number}" for number in range(PARTS["single"])]
    assert run.calls["w15"] >= 2  # more often only where the machine itself stood still
    assert run.running.last("single").metrics["restarts_total"] >= 1


def test_a_call_that_takes_long_is_told_with_its_record_and_its_line(run):
    told = [each.reason for each in run.running.reports if each.part == "single" and each.reason]
    in_hand = [each for each in told if f"with {run.name}.single[0] offset 15" in each]
    assert in_hand
    assert "test_service_slow.py" in in_hand[0]


def test_a_service_that_began_again_is_degraded_until_it_comes_further(run):
    told = [each for each in run.running.reports if each.part == "single" and each.reason]
    again = [each for each in told if "a call of single took" in each.reason]
    assert again
    assert {each.state for each in again} == {"degraded"}


def test_a_commit_interval_of_minutes_is_kept(kafka, topic):
    app = App(topic.name("app"))
    words = app.stream(f"{app.name}.words", kit.Word, partitions=1)

    @app.service(reads=words, delivery="at_least_once")
    def look(_: kit.Word) -> None: ...

    Topics(kafka).declare(app.graph.topics())
    wired = SimpleNamespace(app=app, words=words)
    seldom = replace(
        kit.SETTINGS.services,
        commit_interval=timedelta(hours=1),
        session_timeout=timedelta(minutes=1),
    )
    settings = replace(kit.SETTINGS, services=seldom)

    def waiting():
        """Send a word; return how many wait for their commit: the first does not."""
        kit.send_words(kafka, wired, ["a"])
        return (last := running.last("look")) and last.counts.in_flight

    with kit.InThread(kafka, wired, "look", settings=settings) as running:
        kit.eventually(waiting, what="words that wait")
        reports = len(running.reports)
        kit.eventually(lambda: len(running.reports) > reports + 3, what="some seconds")
        assert running.last("look").counts.in_flight
    assert running.last("look").counts.in_flight == 0
