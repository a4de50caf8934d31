"""Choosing partitions and keeping failures, without a broker."""

from confluent_kafka import KafkaError, Message

from penstock.backbone.log.roundrobin import RoundRobin
from penstock.backbone.log.sending import Deliveries
from penstock.errors import ConfigurationError, DataError, TransientError


def message(key=b"k", value=b"v"):
    return Message(topic="words", key=key, value=value)


def test_round_robin_gives_each_topics_partitions_in_turn():
    chooser = RoundRobin({"two": 2, "three": 3}.__getitem__)
    assert [chooser.choose("two") for _ in range(5)] == [0, 1, 0, 1, 0]
    assert [chooser.choose("three") for _ in range(4)] == [0, 1, 2, 0]
    assert chooser.choose("two") == 1


def test_round_robin_finds_added_partitions_when_its_count_is_old():
    now = [0.0]
    partitions = {"words": 1}
    asked = []

    def count(topic):
        asked.append(topic)
        return partitions[topic]

    chooser = RoundRobin(count, clock=lambda: now[0], fresh_seconds=60.0)
    assert [chooser.choose("words") for _ in range(3)] == [0, 0, 0]
    partitions["words"] = 3
    now[0] = 59.0
    assert chooser.choose("words") == 0
    now[0] = 60.0
    assert {chooser.choose("words") for _ in range(3)} == {0, 1, 2}
    assert asked == ["words", "words"]


def test_deliveries_that_succeeded_leave_nothing():
    deliveries = Deliveries("host:9092")
    deliveries.report(None, message())
    assert deliveries.failure() is None


def test_a_failed_delivery_is_told_once_with_topic_key_and_size():
    deliveries = Deliveries("host:9092")
    deliveries.report(
        KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), message(key=b"abc", value=b"12345")
    )
    error = deliveries.failure()
    assert isinstance(error, DataError)
    assert "sending 5 bytes to words with key 'abc'" in error.message
    assert deliveries.failure() is None


def test_a_long_or_binary_key_is_shown_short_and_readable():
    deliveries = Deliveries("host:9092")
    deliveries.report(KafkaError(KafkaError.INVALID_RECORD), message(key=b"\xff" + b"x" * 500))
    text = deliveries.failure().message
    assert "\\xff" in text
    assert len(text) < 250


def test_a_record_without_a_key_says_so():
    deliveries = Deliveries("host:9092")
    deliveries.report(KafkaError(KafkaError.INVALID_RECORD), message(key=None, value=None))
    assert "sending 0 bytes to words without a key" in deliveries.failure().message


def test_what_stops_the_worker_goes_before_what_condemns_a_record():
    deliveries = Deliveries("host:9092")
    deliveries.report(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), message(key=b"big"))
    deliveries.report(KafkaError(KafkaError._MSG_TIMED_OUT), message(key=b"late"))
    error = deliveries.failure()
    assert isinstance(error, TransientError)
    assert error.code == "kafka.unreachable"
    assert "'big'" in error.detail


def test_many_failures_are_counted_and_few_are_shown():
    deliveries = Deliveries("host:9092")
    for number in range(1000):
        deliveries.report(KafkaError(KafkaError._UNKNOWN_TOPIC), message(key=b"%d" % number))
    error = deliveries.failure()
    assert isinstance(error, ConfigurationError)
    assert error.code == "topic.missing"
    assert error.detail.endswith("and 996 more records")
    assert len(error.detail.splitlines()) == 5


def test_records_that_were_thrown_away_on_purpose_are_no_failures():
    deliveries = Deliveries("host:9092")
    deliveries.report(KafkaError(KafkaError._PURGE_QUEUE), message())
    deliveries.report(KafkaError(KafkaError._PURGE_INFLIGHT), message())
    assert deliveries.failure() is None
