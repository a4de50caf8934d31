"""Transactions on a real broker: all or nothing, and one producer for an id."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from penstock.backbone.client.admin import topic_partitions
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.positions import (
    PositionReader,
    PositionStore,
    memberless,
    position_group,
)
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.sending import SendLimits
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError, DataError, FencedError, TransientError


def values(kafka, topic):
    """Read when all transactions of the topic have been marked as ended."""
    topics = Topics(kafka)
    while topics.ends(topic, committed=True) != topics.ends(topic):
        pass
    return [record.value for record in LogReader(kafka).read(topic)]


@pytest.fixture
def name(topic):
    return topic(partitions=1)


@pytest.fixture
def producer(kafka, name):
    with TransactionalProducer(kafka, name) as own:
        yield own


@pytest.fixture
def positions(kafka):
    return PositionStore(kafka)


def test_nothing_is_read_before_the_commit_and_all_of_it_after(kafka, name, producer):
    producer.begin()
    for value in (b"a", b"b"):
        producer.send(name, key=b"k", value=value)
    producer._sender.flush()
    assert list(LogReader(kafka).read(name)) == []
    producer.commit()
    assert values(kafka, name) == [b"a", b"b"]


def test_nothing_aborted_is_ever_read(kafka, name, producer):
    producer.begin()
    producer.send(name, key=b"k", value=b"aborted")
    producer._sender.flush()
    producer.abort()
    producer.begin()
    producer.send(name, key=b"k", value=b"kept")
    producer.commit()
    assert values(kafka, name) == [b"kept"]


def test_a_position_moves_with_the_records_or_not_at_all(kafka, name, producer, positions):
    producer.begin()
    producer.send(name, key=b"k", value=b"1")
    producer.commit({(name, 0): 7}, group=position_group(name))
    assert positions.read(name) == {(name, 0): 7}

    producer.begin()
    producer.send(name, key=b"k", value=b"2")
    producer.abort()
    assert positions.read(name) == {(name, 0): 7}
    assert values(kafka, name) == [b"1"]


def test_a_position_that_was_never_kept_is_empty(positions):
    assert positions.read("never kept") == {}


def test_a_position_can_be_moved_and_forgotten_by_hand(name, positions):
    positions.move(name, {(name, 0): 3})
    assert positions.read(name) == {(name, 0): 3}
    positions.forget(name)
    assert positions.read(name) == {}
    positions.forget(name)


def test_a_later_producer_fences_the_earlier_one(kafka, name, producer):
    producer.begin()
    producer.send(name, key=b"k", value=b"zombie")
    producer._sender.flush()
    with TransactionalProducer(kafka, name) as later:
        with pytest.raises(FencedError):
            producer.commit()
        assert producer.dead
        later.begin()
        later.send(name, key=b"k", value=b"alive")
        later.commit()
    assert values(kafka, name) == [b"alive"]


def test_a_later_producer_ends_what_a_killed_one_left_open(kafka, name, positions):
    killed = TransactionalProducer(kafka, name)
    killed.begin()
    killed.send(name, key=b"k", value=b"never")
    killed._sender.flush()
    del killed
    with TransactionalProducer(kafka, name) as later:
        later.begin()
        later.send(name, key=b"k", value=b"now")
        later.commit({(name, 0): 1}, group=position_group(name))
    assert values(kafka, name) == [b"now"]
    assert positions.read(name) == {(name, 0): 1}


def test_a_dead_producer_is_not_used_again(kafka, name, producer):
    producer.close()
    for call in (producer.begin, producer.commit):
        with pytest.raises(TransientError) as caught:
            call()
        assert caught.value.code == "transaction.dead"


def test_calls_out_of_order_are_mistakes_of_the_program(name, producer):
    with pytest.raises(RuntimeError, match="no transaction is open"):
        producer.send(name, key=b"k", value=b"")
    producer.begin()
    with pytest.raises(RuntimeError, match="is open"):
        producer.begin()
    with pytest.raises(ValueError, match="for a group"):
        producer.commit({(name, 0): 1})
    producer.abort()
    producer.abort()


def test_a_record_that_the_broker_refuses_aborts_and_says_which(kafka, topic, producer):
    compacted = topic("compacted", partitions=1, compacted=True)
    producer.begin()
    producer.send(compacted, key=b"k", value=b"good")
    producer.send(compacted, key=None, value=b"a compacted topic wants a key")
    with pytest.raises(DataError) as caught:
        producer.commit()
    assert caught.value.code == "data.refused"
    assert compacted in caught.value.message
    assert producer.dead
    with TransactionalProducer(kafka, producer.transactional_id) as later:
        later.begin()
        later.send(compacted, key=b"k", value=b"again")
        later.commit()
    assert values(kafka, compacted) == [b"again"]


def test_a_record_too_large_for_the_client_leaves_the_transaction_open(kafka, name, producer):
    producer.begin()
    with pytest.raises(DataError):
        producer.send(name, key=b"k", value=b"x" * (33 << 20))
    producer.send(name, key=b"k", value=b"small")
    producer.commit()
    assert values(kafka, name) == [b"small"]


def test_offsets_of_a_topic_that_does_not_exist_are_refused(kafka, topic, name):
    with TransactionalProducer(kafka, name, timeout=timedelta(seconds=3)) as producer:
        producer.begin()
        with pytest.raises(ConfigurationError) as caught:
            producer.commit({(topic.name("missing"), 0): 1}, group=position_group(name))
    assert caught.value.code == "topic.missing"


def test_the_offsets_of_a_consumer_group_are_committed_by_its_member(kafka, name, topic, producer):
    source = topic("source", partitions=1)
    with TransactionalProducer(kafka, source) as other:
        other.begin()
        other.send(source, key=b"k", value=b"in")
        other.commit()
    with Consumer(kafka, group=name, topics=[source]) as consumer:
        records = []
        while not records:
            records = consumer.consume(10, 1.0)
        producer.begin()
        producer.send(name, key=b"k", value=b"out")
        producer.commit({(source, 0): 1}, group=consumer.group)
        left_behind = consumer.group
    committed = Groups(kafka)
    while committed.lag(name)[source, 0].committed != 1:
        pass
    producer.begin()
    producer.send(name, key=b"k", value=b"zombie")
    with pytest.raises(TransientError) as caught:
        producer.commit({(source, 0): 9}, group=left_behind)
    assert caught.value.code == "kafka.rebalanced"
    assert committed.lag(name)[source, 0].committed == 1
    assert values(kafka, name) == [b"out"]


def test_many_records_sent_at_once_keep_their_order_and_are_bounded(kafka, name):
    limits = SendLimits(records=50)
    with TransactionalProducer(kafka, name, limits=limits) as producer:
        producer.begin()
        producer.send_all(name, [(b"k", str(number).encode()) for number in range(500)])
        producer.commit()
    assert values(kafka, name) == [str(number).encode() for number in range(500)]


def test_one_too_large_among_many_is_refused_by_name_and_the_rest_can_be_aborted(
    kafka, name, producer
):
    producer.begin()
    large = b"x" * (kafka.settings.max_message_bytes + 1)
    with pytest.raises(DataError) as caught:
        producer.send_all(name, [(b"a", b"1"), (b"big", large), (b"b", b"2")])
    assert caught.value.code == "data.too-large"
    assert "'big'" in caught.value.message
    producer.abort()
    assert values(kafka, name) == []


@pytest.fixture
def reader(kafka, name):
    with closing(PositionReader(kafka, name)) as own:
        yield own


def test_a_reader_of_a_position_sees_every_commit(name, producer, reader):
    assert reader.read((name, 0)) == -1
    for number in (1, 2):
        producer.begin()
        producer.commit({(name, 0): number}, group=position_group(name))
        assert reader.read((name, 0)) == number


def test_a_reader_of_a_position_waits_for_the_transaction_that_is_moving_it(
    kafka, name, producer, reader
):
    producer.begin()
    metadata = memberless(position_group(name)).metadata
    producer._sender.client.send_offsets_to_transaction(
        topic_partitions({(name, 0): 7}), metadata, 10
    )
    with ThreadPoolExecutor(1) as executor:
        reading = executor.submit(reader.read, (name, 0))
        with pytest.raises(TimeoutError):
            reading.result(0.3)
        TransactionalProducer(kafka, name).close()
        assert reading.result(10) == -1
    with pytest.raises(FencedError):
        producer.commit()
