from datetime import UTC, datetime

import pytest

from penstock.core.topic import TopicSpec
from penstock.testing.memorylog import MemoryDelivery, MemoryLog

NOW_AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def log():
    return MemoryLog([TopicSpec(name="words", partitions=3)], clock=lambda: NOW_AT)


def keys(log):
    return [[raw.key() for raw in log.read(at)] for at in log.partitions("words")]


def test_a_key_always_goes_to_the_same_partition(log):
    for key in [b"a", b"b", b"c", b"a", b"b", b"c"]:
        log.append("words", key=key, value=b"")
    assert all(found == found[: len(found) // 2] * 2 for found in keys(log))


def test_records_without_a_key_or_by_turns_go_round(log):
    for _ in range(3):
        log.append("words", key=None, value=b"")
    for _ in range(3):
        log.append("words", key=b"k", value=b"", partition="round_robin")
    assert keys(log) == [[None, b"k"]] * 3


def test_offsets_count_up_in_each_partition(log):
    for number in (1, 1, 2):
        log.append("words", key=b"", value=b"", partition=number)
    assert [raw.offset() for raw in log.read(("words", 1))] == [0, 1]
    assert [raw.offset() for raw in log.read(("words", 1), 1)] == [1]
    assert log.read(("words", 2))[0].timestamp() == (1, round(NOW_AT.timestamp() * 1000))


def test_a_transaction_is_seen_whole_or_not_at_all(log):
    delivery = MemoryDelivery(log, group="g", delivery="exactly_once")
    delivery.begin()
    delivery.send("words", key=b"a", value=b"1")
    assert keys(log) == [[], [], []]
    delivery.commit({("words", 0): 1})
    assert sum(map(len, keys(log))) == 1
    delivery.begin()
    delivery.send("words", key=b"b", value=b"2")
    delivery.close()
    delivery.commit({})
    assert sum(map(len, keys(log))) == 1
    assert log.committed("g") == {("words", 0): 1}


def test_without_transactions_records_are_seen_at_once(log):
    delivery = MemoryDelivery(log, group="g", delivery="at_least_once")
    delivery.send("words", key=b"a", value=b"1")
    delivery.close()
    assert sum(map(len, keys(log))) == 1
    assert log.committed("g") == {}
