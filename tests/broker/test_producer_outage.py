"""Clients while their broker is away: they say so, lose nothing, and go on."""

import os
import signal
import time
from datetime import timedelta

import pytest

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.membership import Listener
from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.core.settings.settings import KafkaSettings, ServiceSettings
from penstock.core.topic import TopicSpec
from penstock.errors import TransientError
from penstock.machine.ports import free_ports

PATIENCE = 30.0


@pytest.fixture
def nowhere():
    settings = KafkaSettings(request_timeout=timedelta(seconds=1))
    return Connection(f"127.0.0.1:{free_ports(1)[0]}", settings)


@pytest.fixture
def connection(mortal_broker):
    return mortal_broker.connection.within(timedelta(seconds=10))


def impatient(connection):
    return connection.within(timedelta(seconds=2))


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
    return found


@pytest.mark.parametrize(
    "call",
    [
        lambda connection: Topics(connection).list(),
        lambda connection: Topics(connection).declare([TopicSpec(name="words")]),
        lambda connection: Groups(connection).list(),
        lambda connection: Groups(connection).lag("any"),
        lambda connection: LogReader(connection).read("words"),
        lambda connection: TransactionalProducer(connection, "any"),
    ],
)
def test_every_call_ends_and_names_the_address_that_does_not_answer(nowhere, call, capfd):
    started = time.monotonic()
    with pytest.raises(TransientError) as caught:
        call(nowhere)
    assert time.monotonic() - started < 10
    error = caught.value
    assert nowhere.bootstrap in error.message
    assert error.hint == "penstock doctor"
    assert capfd.readouterr().err == ""


def test_records_that_wait_for_a_broker_are_not_lost_in_silence(nowhere):
    producer = Producer(nowhere)
    producer.send("words", key=b"k", value=b"v")
    with pytest.raises(TransientError) as caught:
        producer.flush()
    assert caught.value.code == "kafka.undelivered"
    assert nowhere.bootstrap in caught.value.message
    assert until(producer.trouble).startswith(f"no contact with Kafka at {nowhere.bootstrap}")
    producer.discard()


def test_a_full_queue_without_a_broker_ends_with_an_error(nowhere):
    producer = Producer(nowhere, limits=SendLimits(records=2))
    for _ in range(2):
        producer.send("words", key=b"k", value=b"v")
    with pytest.raises(TransientError) as caught:
        producer.send("words", key=b"k", value=b"v")
    assert caught.value.code == "kafka.queue-full"
    producer.discard()


def test_a_broker_that_dies_and_comes_back_costs_no_record(mortal_broker, connection):
    Topics(connection).declare([TopicSpec(name="outage", partitions=1)])
    # Long enough that the member outlives the outage and reads nothing twice.
    settings = ServiceSettings(session_timeout=timedelta(seconds=60))
    consumer = Consumer(connection, group="outage", topics=["outage"], settings=settings)
    producer = Producer(connection)
    read = []

    def step():
        read.extend(consumer.consume(1000, 0.1))
        return read

    for number in range(100):
        producer.send("outage", key=b"k", value=b"%d" % number)
    producer.flush()
    until(lambda: len(step()) == 100)

    mortal_broker.kill()
    for number in range(100, 200):
        producer.send("outage", key=b"k", value=b"%d" % number)
    assert until(lambda: step() and consumer.trouble())

    mortal_broker.ensure()
    producer.flush(timedelta(seconds=PATIENCE))
    until(lambda: len(step()) == 200)
    assert [int(record.value()) for record in read] == list(range(200))
    assert consumer.trouble() is None
    assert producer.trouble() is None
    consumer.commit(consumer.positions())
    consumer.close()
    assert Groups(connection).lag("outage")["outage", 0].lag == 0


def test_a_commit_that_gets_no_answer_ends_and_so_does_closing(mortal_broker, connection):
    connection = impatient(connection)
    Topics(connection).declare([TopicSpec(name="silent", partitions=1)])
    lost = []
    consumer = Consumer(
        connection, group="silent", topics=["silent"], listener=Listener(on_lost=lost.extend)
    )
    until(lambda: consumer.consume(1, 0.1) or consumer.assignment())
    (process,) = mortal_broker.pids
    os.kill(process, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(TransientError) as caught:
            until(lambda: consumer.commit({("silent", 0): 0}))
        assert caught.value.code == "kafka.unreachable"
        for call in (consumer.positions, lambda: consumer.consume(1, 0.1)):
            with pytest.raises(TransientError) as caught:
                call()
            assert caught.value.code == "consumer.dead"
        assert "did not answer a commit" in consumer.trouble()
        consumer.close()
        assert time.monotonic() - started < 10
    finally:
        os.kill(process, signal.SIGCONT)
    assert lost == [("silent", 0)]


def test_a_transaction_whose_broker_dies_leaves_a_dead_producer_and_no_record(
    mortal_broker, connection
):
    Topics(connection).declare([TopicSpec(name="cut", partitions=1)])
    producer = TransactionalProducer(impatient(connection), "cut", timeout=timedelta(seconds=3))
    producer.begin()
    producer.send("cut", key=b"k", value=b"half")
    mortal_broker.kill()
    with pytest.raises(TransientError):
        producer.commit()
    assert producer.dead
    mortal_broker.ensure()
    with TransactionalProducer(connection, "cut") as later:
        later.begin()
        later.send("cut", key=b"k", value=b"whole")
        later.commit()
    topics = Topics(connection)
    until(lambda: topics.ends("cut", committed=True) == topics.ends("cut"))
    assert [record.value for record in LogReader(connection).read("cut")] == [b"whole"]
