"""Producing to a real broker."""

import time
from datetime import timedelta

import pytest
from confluent_kafka import murmur2

from penstock.backbone.log.producer import Producer, SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.core.partitioner import partition_of
from penstock.errors import ConfigurationError, DataError


def records(kafka, topic):
    return list(LogReader(kafka).read(topic))


def send_now(producer, topic, **options):
    producer.send(topic, key=None, value=b"", **options)
    producer.flush()


def test_records_arrive_in_order_of_sending_within_a_partition(kafka, topic):
    name = topic(partitions=1)
    with Producer(kafka) as producer:
        for number in range(1000):
            producer.send(name, key=b"k", value=b"%d" % number)
    assert [int(record.value) for record in records(kafka, name)] == list(range(1000))


def test_the_first_record_of_a_new_producer_does_not_wait_for_the_clients_turn(kafka, topic):
    """Left alone, the client asks for the id that it sends with half a second after its start."""
    name, seconds = topic(partitions=1), []
    for _ in range(5):
        began_at = time.monotonic()
        with Producer(kafka) as producer:
            producer.send(name, key=b"k", value=b"v")
        seconds.append(time.monotonic() - began_at)
    assert min(seconds) < 0.4
    assert len(records(kafka, name)) == 5


def test_keys_go_where_java_producers_put_them(kafka, topic):
    name = topic(partitions=3)
    keys = [b"%d" % number for number in range(50)]
    with Producer(kafka) as producer:
        for key in keys:
            producer.send(name, key=key, value=b"")
    found = {record.key: record.partition for record in records(kafka, name)}
    assert found == {key: murmur2(key, 3) for key in keys}
    assert found == {key: partition_of(key, 3) for key in keys}


def test_round_robin_spreads_records_evenly_and_keeps_their_keys(kafka, topic):
    name = topic(partitions=3, partitioning="round_robin")
    with Producer(kafka) as producer:
        for _ in range(9):
            producer.send(name, key=b"same", value=b"", partition="round_robin")
    found = records(kafka, name)
    assert sorted(record.partition for record in found) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert {record.key for record in found} == {b"same"}


def test_a_record_larger_than_the_client_takes_is_a_data_error_at_once(kafka, topic):
    name = topic(partitions=1)
    with Producer(kafka) as producer:
        with pytest.raises(DataError) as caught:
            producer.send(name, key=b"big", value=b"x" * (33 << 20))
        assert caught.value.code == "data.too-large"
        assert name in caught.value.message
        assert "'big'" in caught.value.message
        producer.send(name, key=b"small", value=b"x")
    assert [record.key for record in records(kafka, name)] == [b"small"]


def test_a_record_of_five_megabytes_passes(kafka, topic):
    name = topic(partitions=1)
    with Producer(kafka) as producer:
        producer.send(name, key=None, value=b"x" * (5 << 20))
    assert len(records(kafka, name)[0].value) == 5 << 20


def test_a_record_that_the_broker_refuses_is_a_data_error_of_the_next_call(kafka, topic):
    name = topic(partitions=1, compacted=True)
    producer = Producer(kafka)
    producer.send(name, key=None, value=b"a compacted topic wants a key")
    with pytest.raises(DataError) as caught:
        producer.flush()
    assert caught.value.code == "data.refused"
    assert "without a key" in caught.value.message
    producer.send(name, key=b"k", value=b"this one has it")
    producer.close()
    assert len(records(kafka, name)) == 1


def test_an_unknown_partition_is_named(kafka, topic):
    name = topic(partitions=1)
    producer = Producer(kafka)
    with pytest.raises(ConfigurationError) as caught:
        send_now(producer, name, partition=7)
    assert caught.value.code == "topic.missing"


def test_round_robin_on_a_missing_topic_is_an_error_at_once(kafka, topic):
    with Producer(kafka) as producer, pytest.raises(ConfigurationError) as caught:
        producer.send(topic.name(), key=None, value=b"", partition="round_robin")
    assert caught.value.code == "topic.missing"


def test_a_full_queue_slows_the_sender_and_loses_nothing(kafka, topic):
    name = topic(partitions=1)
    limits = SendLimits(records=10, linger=timedelta(0))
    with Producer(kafka, limits=limits) as producer:
        for number in range(500):
            producer.send(name, key=None, value=b"%d" % number)
    assert len(records(kafka, name)) == 500


def test_an_error_in_the_block_comes_out_and_what_was_sent_arrives(kafka, topic):
    name = topic(partitions=1)

    def fail_after_sending():
        with Producer(kafka) as producer:
            producer.send(name, key=None, value=b"before")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_sending()
    assert [record.value for record in records(kafka, name)] == [b"before"]


def test_a_producer_with_contact_has_no_trouble(kafka):
    assert Producer(kafka).trouble() is None
