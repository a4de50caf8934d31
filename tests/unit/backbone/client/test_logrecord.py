"""Records as values."""

from datetime import UTC, datetime

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from penstock.backbone.client.logrecord import LogRecord, log_record


def test_a_message_of_the_client_becomes_a_value():
    raw = Message(
        topic="words",
        partition=3,
        offset=42,
        key=b"k",
        value=b"v",
        headers=[("a", b"1"), ("b", None)],
        timestamp=(TIMESTAMP_CREATE_TIME, 1500),
    )
    assert log_record(raw) == LogRecord(
        topic="words",
        partition=3,
        offset=42,
        timestamp_at=datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        key=b"k",
        value=b"v",
        headers=(("a", b"1"), ("b", None)),
    )


def test_what_a_message_lacks_is_none_or_empty():
    raw = Message(topic="words", partition=0, offset=0, timestamp=(TIMESTAMP_NOT_AVAILABLE, -1))
    record = log_record(raw)
    assert (record.key, record.value, record.headers, record.timestamp_at) == (None, None, (), None)
