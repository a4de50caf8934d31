"""Services under faults: killed, stopped, moved, cut off. The answer is exact every time."""

import random
import signal
import time

import pytest

from penstock.backbone.client.admin import topic_partitions
from penstock.backbone.log.positions import memberless
from penstock.backbone.log.transactions import TransactionalProducer

from . import service_worker as kit


@pytest.fixture
def app(kafka, topic):
    return kit.declared(topic.name("app"), kafka)


def random_words(seed, count):
    chance = random.Random(seed)
    return [f"w{chance.randrange(200)}" for _ in range(count)]


def check(kafka, app):
    kit.all_counted(kafka, app)
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []


@pytest.mark.parametrize("seed", [7])
def test_a_worker_killed_again_and_again_counts_every_word_once(kafka, app, seed):
    chance = random.Random(seed)
    for round_ in range(4):
        before = kit.committed_records(kafka, app.counts.topic.name)
        kit.send_words(kafka, app, random_words(seed + round_, 12_500))
        with kit.InProcess(kafka, app, "count") as worker:
            moment = before + chance.randrange(200, 9_000)
            kit.eventually(
                lambda at=moment: kit.committed_records(kafka, app.counts.topic.name) > at,
                what=f"{moment} counts before the kill",
            )
            worker.kill()
    with kit.InProcess(kafka, app, "count"):
        check(kafka, app)


def test_a_stopped_worker_leaves_nothing_to_be_done_again(kafka, app):
    received = 0
    for round_ in range(2):
        kit.send_words(kafka, app, random_words(round_, 10_000))
        with kit.InProcess(kafka, app, "count") as worker:
            if round_ == 0:
                before = kit.committed_records(kafka, app.counts.topic.name)
                kit.eventually(
                    lambda at=before: kit.committed_records(kafka, app.counts.topic.name) > at,
                    what="the first counts",
                )
            else:
                check(kafka, app)
            assert worker.terminate() == 0
        final = worker.reports[-1]
        assert (final.state, final.counts.in_flight) == ("stopped", 0)
        received += final.counts.received
    assert received == 20_000


def test_a_second_worker_takes_its_share_and_gives_it_back(kafka, app):
    kit.send_words(kafka, app, random_words(1, 5_000))
    with kit.InProcess(kafka, app, "count") as first:
        kit.all_counted(kafka, app)
        with kit.InProcess(kafka, app, "count") as second:
            kit.eventually(
                lambda: second.reports and second.reports[-1].detail["partitions"] != "none",
                what="the second worker has a partition",
            )
            kit.send_words(kafka, app, random_words(2, 5_000))
            kit.all_counted(kafka, app)
            assert second.terminate() == 0
        assert second.reports[-1].counts.received > 0
        kit.send_words(kafka, app, random_words(3, 5_000))
        check(kafka, app)
        assert first.terminate() == 0
    assert sum(worker.reports[-1].counts.received for worker in (first, second)) == 15_000


def test_a_worker_asleep_for_too_long_is_fenced_and_changes_nothing(kafka, app):
    kit.send_words(kafka, app, random_words(1, 5_000))
    with kit.InProcess(kafka, app, "count") as zombie:
        kit.all_counted(kafka, app)
        zombie.process.send_signal(signal.SIGSTOP)
        kit.send_words(kafka, app, random_words(2, 5_000))
        with kit.InProcess(kafka, app, "count"):
            kit.all_counted(kafka, app)
            zombie.process.send_signal(signal.SIGCONT)
            kit.send_words(kafka, app, random_words(3, 5_000))
            check(kafka, app)


def test_a_broker_killed_and_started_again_is_waited_for(mortal_broker):
    kafka = mortal_broker.connection
    app = kit.declared("outage", kafka)
    kit.send_words(kafka, app, random_words(1, 20_000))
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(
            lambda: kit.committed_records(kafka, app.counts.topic.name) > 100,
            what="the first counts",
        )
        mortal_broker.kill()
        kit.eventually(lambda: running.state("count") == "degraded", what="it says it is degraded")
        assert running.last("count").reason
        mortal_broker.ensure()
        kit.send_words(kafka, app, random_words(2, 5_000))
        check(kafka, app)
        kit.eventually(lambda: running.state("count") == "running", what="it says it runs again")
    assert running.error is None


def test_a_service_stops_in_time_while_its_broker_is_away(mortal_broker):
    kafka = mortal_broker.connection
    app = kit.declared("away", kafka)
    kit.send_words(kafka, app, random_words(1, 1_000))
    with kit.InProcess(kafka, app, "count") as worker:
        kit.all_counted(kafka, app)
        mortal_broker.kill()
        kit.eventually(
            lambda: worker.reports and worker.reports[-1].state == "degraded",
            what="it says it is degraded",
        )
        worker.process.terminate()
        assert worker.process.wait(kit.SETTINGS.services.stop_timeout.total_seconds()) == 0


def test_offsets_that_a_dead_worker_left_half_committed_hold_nobody_up(kafka, app):
    """Killed between handing in its offsets and the commit: the group waits for neither."""
    kit.send_words(kafka, app, ["a", "b"] * 50)
    timeout = kit.SETTINGS.services.transaction_timeout
    for partition in (0, 1):
        dead = TransactionalProducer(kafka, f"{app.name}.count.{partition}", timeout=timeout)
        dead.begin()
        dead.send(app.counts.topic.name, key=b"a", value=b'{"word":"a","count":999}')
        dead._sender.client.send_offsets_to_transaction(
            topic_partitions({(app.words.topic.name, partition): 1}),
            memberless(f"{app.name}.count").metadata,
            10,
        )
    began = time.monotonic()
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=100), what="all words counted")
        assert time.monotonic() - began < timeout.total_seconds() / 2
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []


def test_a_changelog_is_restored_however_it_ends(kafka, app):
    """Empty, ending in the marks of transactions, or in records that were taken back."""
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.state("count") == "running", what="an empty one restored")
    kit.send_words(kafka, app, ["a"] * 10)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=10), what="all words counted")
    with TransactionalProducer(kafka, f"{app.name}.other") as other:
        other.begin()
        for partition in (0, 1):
            other.send(app.changelog, key=b"total\x00a", value=b"999", partition=partition)
        other.abort()
    kit.send_words(kafka, app, ["a"] * 10)
    with kit.InThread(kafka, app, "count") as running:
        check(kafka, app)
    assert running.error is None
