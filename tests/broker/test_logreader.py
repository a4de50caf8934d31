"""Reading ranges of a real log: any start, an exact end, gaps and all."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.log.reader import LogReader
from penstock.backbone.log.transactions import TransactionalProducer
from penstock.backbone.topics.range import EARLIEST, LATEST, Instant, Last, Offset
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError

BASE_AT = datetime(2024, 5, 1, tzinfo=UTC)
"""Long ago: topics with such records are kept for ever, or retention takes the records away."""


@pytest.fixture
def reader(kafka):
    return LogReader(kafka)


@pytest.fixture(scope="module")
def producer(kafka):
    with Producer(kafka) as shared:
        yield shared


def write(producer, topic, values, *, partition=0, step=timedelta(minutes=1)):
    for number, value in enumerate(values):
        at = BASE_AT + number * step
        producer.send(topic, key=None, value=value, partition=partition, timestamp_at=at)
    producer.flush()


def values(records):
    return [record.value for record in records]


@pytest.fixture
def ten(producer, topic):
    name = topic(partitions=1, retention=None)
    write(producer, name, [b"%d" % number for number in range(10)])
    return name


def test_a_record_comes_back_whole(producer, reader, topic):
    name = topic(partitions=1, retention=None)
    producer.send(
        name,
        key=b"k",
        value=b"v",
        headers=[("a", b"1"), ("a", b"2"), ("empty", None)],
        timestamp_at=BASE_AT,
    )
    producer.send(name, key=None, value=None)
    producer.send(name, key=b"", value=b"")
    producer.flush()
    whole, null, empty = reader.read(name)
    assert (whole.topic, whole.partition, whole.offset) == (name, 0, 0)
    assert (whole.key, whole.value, whole.timestamp_at) == (b"k", b"v", BASE_AT)
    assert whole.headers == (("a", b"1"), ("a", b"2"), ("empty", None))
    assert (null.key, null.value, null.headers) == (None, None, ())
    assert (empty.key, empty.value) == (b"", b"")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (EARLIEST, None, range(10)),
        (LATEST, None, []),
        (Offset(7), None, range(7, 10)),
        (Offset({0: 10}), None, []),
        (Instant(BASE_AT + timedelta(seconds=150)), None, range(3, 10)),
        (Instant(BASE_AT + timedelta(days=1)), None, []),
        (Last(3), None, range(7, 10)),
        (Last(0), None, []),
        (Last(99), None, range(10)),
        (EARLIEST, Offset(4), range(4)),
        (Offset(4), Offset(4), []),
        (Offset(6), Offset(99), range(6, 10)),
        (EARLIEST, Instant(BASE_AT + timedelta(minutes=5)), range(5)),
        (EARLIEST, LATEST, range(10)),
    ],
)
def test_a_range_starts_and_ends_where_it_says(reader, ten, start, end, expected):
    found = reader.read(ten, start=start, end=end)
    assert values(found) == [b"%d" % number for number in expected]


def test_an_empty_topic_gives_nothing(reader, topic):
    assert list(reader.read(topic())) == []


def test_partitions_can_be_chosen(producer, reader, topic):
    name = topic(partitions=3, retention=None)
    for partition in range(3):
        write(producer, name, [b"%d" % partition] * 2, partition=partition)
    assert sorted(values(reader.read(name, partitions=[0, 2]))) == [b"0", b"0", b"2", b"2"]
    assert values(reader.read(name, start=Offset({1: 1}))) == [b"1"]
    with pytest.raises(ConfigurationError, match="has no partition 7"):
        reader.read(name, partitions=[1, 7])


def test_the_range_is_settled_by_the_call_and_later_records_are_outside(producer, reader, ten):
    past = reader.read(ten)
    future = reader.read(ten, start=LATEST, end=Offset(12), follow=True)
    write(producer, ten, [b"new", b"newer", b"newest"])
    assert len(values(past)) == 10
    assert values(future) == [b"new", b"newer"]


def test_following_goes_on_until_it_is_stopped(producer, reader, ten):
    stop = threading.Event()
    seen = []
    for record in reader.read(ten, start=Last(1), follow=True, stop=stop):
        seen.append(record.value)
        if record.value == b"9":
            write(producer, ten, [b"more"])
        else:
            stop.set()
    assert seen == [b"9", b"more"]


def test_a_reader_that_is_let_go_halfway_closes(reader, ten):
    records = reader.read(ten, follow=True)
    assert next(records).value == b"0"
    records.close()
    assert list(records) == []


def settle(kafka, topic):
    """Wait until all transactions of a topic have been marked as ended."""
    topics = Topics(kafka)
    while topics.ends(topic, committed=True) != topics.ends(topic):
        pass


def commit(producer, topic, value):
    producer.begin()
    producer.send(topic, key=b"k", value=value)
    producer.commit()


def abort(producer, topic, value):
    producer.begin()
    producer.send(topic, key=b"k", value=value)
    producer._sender.flush()
    producer.abort()


def test_a_log_that_ends_in_markers_and_aborted_records_still_ends(kafka, reader, topic):
    name = topic(partitions=1)
    with TransactionalProducer(kafka, name) as transactions:
        commit(transactions, name, b"kept")
        abort(transactions, name, b"aborted")
        abort(transactions, name, b"aborted too")
    settle(kafka, name)
    assert Topics(kafka).ends(name)[0][1] == 6
    assert values(reader.read(name)) == [b"kept"]
    assert values(reader.read(name, committed=False))[0] == b"kept"


def test_the_last_records_are_counted_as_records_not_as_offsets(kafka, reader, topic):
    name = topic(partitions=1)
    with TransactionalProducer(kafka, name) as transactions:
        for number in range(6):
            commit(transactions, name, b"%d" % number)
            abort(transactions, name, b"aborted")
    settle(kafka, name)
    assert values(reader.read(name, start=Last(4))) == [b"2", b"3", b"4", b"5"]


def test_an_open_transaction_ends_the_committed_range_before_it(kafka, reader, topic):
    name = topic(partitions=1)
    with TransactionalProducer(kafka, name) as transactions:
        commit(transactions, name, b"stable")
        settle(kafka, name)
        transactions.begin()
        transactions.send(name, key=b"k", value=b"open")
        transactions._sender.flush()
        assert values(reader.read(name)) == [b"stable"]
        assert values(reader.read(name, committed=False)) == [b"stable", b"open"]


def test_a_compacted_log_is_read_to_its_end(producer, reader, topic):
    name = topic(partitions=1, compacted=True)
    for number in range(100):
        producer.send(name, key=b"%d" % (number % 3), value=b"%d" % number)
    producer.flush()
    found = values(reader.read(name))
    assert found[-3:] == [b"97", b"98", b"99"]


def test_an_offset_that_was_trimmed_is_an_error_that_names_the_oldest(kafka, reader, ten):
    Topics(kafka).trim(ten, {0: 4})
    with pytest.raises(ConfigurationError) as caught:
        reader.read(ten, start=Offset(1))
    assert caught.value.code == "offset.trimmed"
    assert f"{ten}[0]" in caught.value.message
    assert "offset 1" in caught.value.message
    assert "oldest left is 4" in caught.value.message
    assert len(values(reader.read(ten))) == 6
    assert len(values(reader.read(ten, start=Offset(1), when_trimmed="skip"))) == 6


def test_a_topic_trimmed_to_its_end_gives_nothing(kafka, reader, ten):
    Topics(kafka).trim(ten, {0: 10})
    assert list(reader.read(ten)) == []
    assert list(reader.read(ten, start=Offset(3), when_trimmed="skip")) == []


def test_trimming_while_reading_stops_loudly_or_is_skipped(kafka, producer, reader, topic):
    name = topic(partitions=1, retention=None)
    write(producer, name, [b"x" * 1000] * 5000, step=timedelta())
    loud = reader.batches(name)
    quiet = reader.batches(name, when_trimmed="skip")
    Topics(kafka).trim(name, {0: 4990})
    with pytest.raises(ConfigurationError, match="trimmed"):
        list(loud)
    assert [record.offset() for batch in quiet for record in batch] == list(range(4990, 5000))


def test_an_offset_beyond_the_end_is_an_error(reader, ten):
    with pytest.raises(ConfigurationError) as caught:
        reader.read(ten, start=Offset(11))
    assert caught.value.code == "offset.beyond-end"


def test_a_missing_topic_is_an_error(reader, topic):
    with pytest.raises(ConfigurationError) as caught:
        reader.read(topic.name())
    assert caught.value.code == "topic.missing"


def test_a_range_that_ends_at_an_instant_cannot_be_followed(reader, ten):
    with pytest.raises(ConfigurationError, match="cannot follow a range"):
        reader.read(ten, end=Instant(BASE_AT), follow=True)


def test_reading_leaves_no_group_behind(kafka, reader, ten):
    from penstock.backbone.log.groups import Groups

    list(reader.read(ten))
    assert "penstock.reader" not in {group.name for group in Groups(kafka).list()}


def test_an_interleaved_read_of_many_records_is_complete_and_in_order(producer, reader, topic):
    name = topic(partitions=2)
    for number in range(20_000):
        producer.send(name, key=b"%d" % number, value=b"%d" % number)
    producer.flush()
    seen = {0: [], 1: []}
    for record in reader.read(name):
        seen[record.partition].append(record.offset)
    assert sum(map(len, seen.values())) == 20_000
    assert all(offsets == list(range(len(offsets))) for offsets in seen.values())
