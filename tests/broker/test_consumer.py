"""Members of consumer groups on a real broker."""

import threading
import time
from typing import Any

import pytest

from penstock.backbone.client.logrecord import log_record
from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.membership import Listener, Membership
from penstock.backbone.log.producer import Producer
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError

PATIENCE = 20.0


@pytest.fixture(scope="module")
def producer(kafka):
    with Producer(kafka) as shared:
        yield shared


def write(producer, topic, count, *, first=0, partitions=1):
    for number in range(first, first + count):
        value = b"%d" % number
        producer.send(topic, key=value, value=value, partition=number % partitions)
    producer.flush()


def read(consumer, count):
    """Read until so many records have come."""
    records, deadline = [], time.monotonic() + PATIENCE
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records came"
        records += consumer.consume(2000, 0.2)
    return records


def read_until(condition, *consumers):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        for consumer in consumers:
            consumer.consume(2000, 0.1)


def values(records):
    return [int(record.value()) for record in records]


def test_a_new_group_reads_from_the_beginning(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 10)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        records = read(consumer, 10)
    assert values(records) == list(range(10))
    record = log_record(records[3])
    assert (record.topic, record.partition, record.offset, record.key) == (name, 0, 3, b"3")


def test_a_group_goes_on_from_what_it_committed_and_not_from_what_it_read(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 10)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read(consumer, 10)
        consumer.commit({(name, 0): 4})
        consumer.commit({})
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        assert values(read(consumer, 6)) == list(range(4, 10))


def test_a_group_that_starts_at_the_latest_record_keeps_that_start(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 5)
    latest = Membership(start="latest")
    with Consumer(kafka, group=name, topics=[name], membership=latest) as consumer:
        read_until(consumer.assignment, consumer)
    write(producer, name, 3, first=5)
    with Consumer(kafka, group=name, topics=[name], membership=latest) as consumer:
        assert values(read(consumer, 3)) == [5, 6, 7]


def test_an_empty_read_ends_with_its_timeout(kafka, topic):
    name = topic(partitions=1)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read_until(consumer.assignment, consumer)
        assert consumer.consume(10, 0.01) == []


def test_positions_pass_what_holds_no_records_so_that_no_lag_is_left(kafka, topic):
    name = topic(partitions=1)
    with TransactionalProducer(kafka, name) as transactions:
        for _ in range(3):
            transactions.begin()
            transactions.send(name, key=b"k", value=b"1")
            transactions.commit()
    end = 6  # three records, each followed by the marker of its transaction
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read(consumer, 3)
        read_until(lambda: consumer.positions() == {(name, 0): end}, consumer)
        consumer.commit(consumer.positions())
    assert Groups(kafka).lag(name)[name, 0].lag == 0


def test_positions_before_the_first_record_are_the_start(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 5)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read(consumer, 5)
        consumer.commit({(name, 0): 5})
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read_until(consumer.assignment, consumer)
        assert consumer.positions() == {(name, 0): 5}


def test_a_committed_offset_older_than_retention_stops_loudly(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 10)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read(consumer, 10)
        consumer.commit({(name, 0): 2})
    Topics(kafka).trim(name, {0: 6})
    consumer = Consumer(kafka, group=name, topics=[name])
    with pytest.raises(ConfigurationError) as caught:
        read(consumer, 1)
    consumer.close()
    assert caught.value.code == "offset.trimmed"
    assert f"{name}[0]" in caught.value.message
    assert f"group {name} stands at offset 2, the oldest left is 6" in caught.value.message
    assert "4 offsets" in caught.value.detail


def test_retention_that_overtakes_a_slow_reader_stops_loudly(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 10)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read(consumer, 10)
        Topics(kafka).trim(name, {0: 8})
        consumer.seek({(name, 0): 1})
        with pytest.raises(ConfigurationError) as caught:
            read(consumer, 1)
    assert caught.value.code == "offset.trimmed"


def test_a_group_ahead_of_a_topic_that_was_made_again_stops_loudly(kafka, topic, producer):
    name = topic(partitions=1)
    topics, groups = Topics(kafka), Groups(kafka)
    write(producer, name, 3)
    groups.reset(name, {(name, 0): 900})
    with (
        Consumer(kafka, group=name, topics=[name]) as consumer,
        pytest.raises(ConfigurationError) as caught,
    ):
        read(consumer, 1)
    assert caught.value.code == "offset.beyond-end"
    groups.reset(name, {(name, 0): topics.ends(name)[0][0]})
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        assert values(read(consumer, 3)) == [0, 1, 2]


def test_a_paused_partition_is_silent_until_resumed(kafka, topic, producer):
    name = topic(partitions=2)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read_until(lambda: len(consumer.assignment()) == 2, consumer)
        consumer.pause([(name, 0)])
        write(producer, name, 10, partitions=2)
        assert values(read(consumer, 5)) == [1, 3, 5, 7, 9]
        consumer.resume([(name, 0)])
        assert values(read(consumer, 5)) == [0, 2, 4, 6, 8]


def test_a_seek_reads_again(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 5)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read(consumer, 5)
        consumer.seek({(name, 0): 3})
        assert consumer.positions() == {(name, 0): 3}
        assert values(read(consumer, 2)) == [3, 4]


@pytest.mark.parametrize("strategy", ["cooperative", "range"])
def test_partitions_move_to_a_second_member_and_back(kafka, topic, producer, strategy):
    name = topic(partitions=4)
    write(producer, name, 8, partitions=4)
    told: list[Any] = []
    membership = Membership(strategy=strategy)
    listener = Listener(
        on_assign=lambda offsets: told.append(("assign", dict(offsets))),
        on_revoke=lambda partitions: told.append(("revoke", set(partitions))),
    )
    first = Consumer(kafka, group=name, topics=[name], membership=membership, listener=listener)
    read(first, 8)
    assert told[0] == ("assign", {(name, number): 0 for number in range(4)})
    first.commit(first.positions())
    with Consumer(kafka, group=name, topics=[name], membership=membership) as second:
        read_until(lambda: len(first.assignment()) == len(second.assignment()) == 2, first, second)
        assert not first.assignment() & second.assignment()
        assert second.positions() == dict.fromkeys(second.assignment(), 2)
    read_until(lambda: len(first.assignment()) == 4, first)
    revoked = next(what for kind, what in told if kind == "revoke")
    assert len(revoked) == (2 if strategy == "cooperative" else 4)
    first.close()
    assert told[-1] == ("revoke", {(name, number) for number in range(4)})
    assert first.assignment() == frozenset()


def test_range_gives_the_same_partition_numbers_of_all_topics(kafka, topic):
    left, right = topic("left", partitions=2), topic("right", partitions=2)
    joined = Membership(strategy="range")
    consumers = [
        Consumer(kafka, group=left, topics=[left, right], membership=joined) for _ in range(2)
    ]
    read_until(lambda: all(len(each.assignment()) == 2 for each in consumers), *consumers)
    for each in consumers:
        assert len({number for _, number in each.assignment()}) == 1
        each.close()


def test_offsets_can_be_committed_while_partitions_are_revoked(kafka, topic, producer):
    name = topic(partitions=1)
    write(producer, name, 5)
    consumer = Consumer(
        kafka,
        group=name,
        topics=[name],
        listener=Listener(on_revoke=lambda _: consumer.commit({(name, 0): 5})),
    )
    read(consumer, 5)
    consumer.close()
    assert Groups(kafka).lag(name)[name, 0].committed == 5


def test_an_error_of_the_listener_comes_out_of_the_read(kafka, topic):
    name = topic(partitions=1)

    def refuse(offsets):
        raise ZeroDivisionError

    consumer = Consumer(kafka, group=name, topics=[name], listener=Listener(on_assign=refuse))
    with pytest.raises(ZeroDivisionError):
        read(consumer, 1)
    consumer.close()


def test_a_static_member_that_restarts_keeps_its_partitions(kafka, topic, producer):
    name = topic(partitions=2)
    static = Membership(instance_id="one")
    with Consumer(kafka, group=name, topics=[name], membership=static) as consumer:
        read_until(lambda: len(consumer.assignment()) == 2, consumer)
        member = Groups(kafka).describe(name).members[0]
    assert member.instance_id == "one"
    assert Groups(kafka).describe(name).members != ()


def test_a_topic_that_does_not_exist_is_an_error(kafka, topic):
    name = topic.name()
    consumer = Consumer(kafka, group=name, topics=[name])
    with pytest.raises(ConfigurationError) as caught:
        read(consumer, 1)
    consumer.close()
    assert caught.value.code == "topic.missing"


def test_a_large_record_is_read_with_a_small_buffer(kafka, topic, producer):
    from penstock.core.settings.settings import ServiceSettings

    name = topic(partitions=1)
    producer.send(name, key=b"k", value=b"x" * (5 << 20))
    producer.send(name, key=b"k", value=b"after")
    producer.flush()
    settings = ServiceSettings(queued_bytes=1 << 20)
    with Consumer(kafka, group=name, topics=[name], settings=settings) as consumer:
        assert [len(record.value()) for record in read(consumer, 2)] == [5 << 20, 5]


def test_a_consumer_can_be_closed_from_a_thread_that_did_not_make_it(kafka, topic):
    name = topic(partitions=1)
    consumer = Consumer(kafka, group=name, topics=[name])
    read_until(consumer.assignment, consumer)
    thread = threading.Thread(target=consumer.close)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_partition_is_drained_at_its_end_and_again_after_seeking_there(kafka, topic, producer):
    name = topic(partitions=1)
    place = (name, 0)
    with Consumer(kafka, group=name, topics=[name]) as consumer:
        read_until(lambda: consumer.drained(place, 0), consumer)  # an empty one
        write(producer, name, 10)
        read(consumer, 10)
        read_until(lambda: consumer.drained(place, 10), consumer)
        consumer.seek({place: 4})
        assert not consumer.drained(place, 4)
        assert values(read(consumer, 6)) == [4, 5, 6, 7, 8, 9]
        read_until(lambda: consumer.drained(place, 10), consumer)
        consumer.seek({place: 10})
        read_until(lambda: consumer.drained(place, 10), consumer)
        consumer.pause([place])
        consumer.resume([place])
        assert consumer.drained(place, 10)
