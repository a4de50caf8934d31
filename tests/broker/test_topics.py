"""Topics on a real broker: declared, compared, changed, looked at."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from penstock.backbone.log.producer import Producer
from penstock.backbone.topics.topics import TopicChange, Topics
from penstock.core.topic import TopicSpec
from penstock.errors import ConfigurationError


@pytest.fixture
def topics(kafka):
    return Topics(kafka)


def test_a_declared_topic_is_made_as_declared(topics, topic):
    spec = TopicSpec(
        name=topic.name(),
        partitions=3,
        retention=timedelta(days=1),
        retention_bytes=1 << 20,
        compacted=True,
    )
    assert topics.declare([spec]) == [TopicChange(topic=spec.name, action="created")]
    state = topics.describe(spec.name)
    assert (state.partitions, state.replication, state.internal) == (3, 1, False)
    assert state.config["cleanup.policy"] == "compact"
    assert state.config["retention.ms"] == "86400000"
    assert state.config["retention.bytes"] == "1048576"


def test_declaring_again_changes_nothing(topics, topic):
    specs = [TopicSpec(name=topic.name()), TopicSpec(name=topic.name(), compacted=True)]
    topics.declare(specs)
    assert topics.declare(specs) == []


def test_the_same_topic_declared_twice_alike_is_one_topic(topics, topic):
    spec = TopicSpec(name=topic.name())
    assert len(topics.declare([spec, spec])) == 1


def test_the_same_topic_declared_in_two_ways_is_an_error(topics, topic):
    name = topic.name()
    with pytest.raises(ConfigurationError) as caught:
        topics.declare([TopicSpec(name=name), TopicSpec(name=name, partitions=9)])
    assert caught.value.code == "topic.declared-twice"


def test_a_contradiction_shows_both_sides_of_every_topic_and_does_nothing(topics, topic):
    first, second, third = topic.name("first"), topic.name("second"), topic.name("third")
    topics.declare([TopicSpec(name=first), TopicSpec(name=second)])
    with pytest.raises(ConfigurationError) as caught:
        topics.declare(
            [
                TopicSpec(name=first, retention=timedelta(hours=1)),
                TopicSpec(name=second, compacted=True),
                TopicSpec(name=third),
            ]
        )
    error = caught.value
    assert error.code == "topic.contradiction"
    assert f"{first}: retention.ms declared 1h, existing 7d" in error.detail
    assert f"{second}: cleanup.policy declared compact, existing delete" in error.detail
    assert error.hint == "penstock topics apply APP --change"
    assert not topics.exists(third)


def test_a_change_is_applied_when_asked_for(topics, topic):
    name = topic.name()
    topics.declare([TopicSpec(name=name, partitioning="round_robin")])
    wanted = TopicSpec(
        name=name, partitioning="round_robin", partitions=4, retention=timedelta(hours=2)
    )
    changes = topics.declare([wanted], change=True)
    assert [(each.setting, each.before, each.after) for each in changes] == [
        ("partitions", "2", "4"),
        ("retention.ms", "604800000", "7200000"),
    ]
    assert topics.declare([wanted]) == []


def test_a_keyed_topic_gets_partitions_only_when_that_is_asked_for_by_name(topics, topic):
    name = topic.name()
    topics.declare([TopicSpec(name=name)])
    wanted = TopicSpec(name=name, partitions=4)
    with pytest.raises(ConfigurationError, match="a key moves to another one"):
        topics.declare([wanted], change=True)
    assert topics.describe(name).partitions == 2
    topics.declare([wanted], change=True, repartition=True)
    assert topics.describe(name).partitions == 4


def test_partitions_and_copies_that_cannot_change_say_why(topics, topic):
    name = topic.name()
    topics.declare([TopicSpec(name=name, partitions=3)])
    with pytest.raises(ConfigurationError) as caught:
        topics.declare(
            [TopicSpec(name=name, partitions=2, replication=3)], change=True, repartition=True
        )
    assert "cannot remove partitions" in caught.value.detail
    assert "replication declared 3, existing 1" in caught.value.detail
    assert "--change" not in caught.value.hint


def test_processes_that_declare_the_same_at_once_all_succeed(kafka, topic):
    specs = [TopicSpec(name=topic.name(str(number))) for number in range(5)]
    together = threading.Barrier(4)

    def declare():
        own = Topics(kafka)
        own.list()
        together.wait()
        return own.declare(specs)

    with ThreadPoolExecutor(4) as pool:
        done = [future.result() for future in [pool.submit(declare) for _ in range(4)]]
    created = [change.topic for changes in done for change in changes]
    assert sorted(created) == sorted(spec.name for spec in specs)


def test_more_copies_than_brokers_are_refused_with_the_brokers_reason(topics, topic):
    with pytest.raises(ConfigurationError) as caught:
        topics.declare([TopicSpec(name=topic.name(), replication=3)])
    assert caught.value.code == "kafka.refused"
    assert "eplication" in caught.value.detail


def test_a_missing_topic_is_named_with_the_nearest_one(topics, topic):
    name = topic("orders")
    with pytest.raises(ConfigurationError) as caught:
        topics.describe(name + "x")
    assert caught.value.code == "topic.missing"
    assert repr(name) in caught.value.detail


def test_internal_topics_are_listed_only_when_asked_for(topics, topic):
    topics.declare([TopicSpec(name="_penstock.listed", partitions=1)])
    name = topic()
    plain = {state.name for state in topics.list()}
    assert name in plain
    assert "_penstock.listed" not in plain
    assert {"_penstock.listed", name} <= {state.name for state in topics.list(internal=True)}


def test_a_deleted_topic_can_be_made_again_at_once(topics, topic):
    spec = TopicSpec(name=topic.name(), partitions=1)
    topics.declare([spec])
    topics.delete([spec.name])
    assert not topics.exists(spec.name)
    topics.declare([spec])
    assert topics.ends(spec.name) == {0: (0, 0)}


def test_deleting_a_missing_topic_is_an_error(topics, topic):
    with pytest.raises(ConfigurationError) as caught:
        topics.delete([topic.name()])
    assert caught.value.code == "topic.missing"


def test_ends_move_with_records_and_with_trimming(kafka, topics, topic):
    name = topic(partitions=2)
    with Producer(kafka) as producer:
        for number in range(10):
            producer.send(name, key=None, value=b"x", partition=number % 2)
    assert topics.ends(name) == {0: (0, 5), 1: (0, 5)}
    topics.trim(name, {1: 3})
    assert topics.ends(name) == {0: (0, 5), 1: (3, 5)}


def test_offsets_at_an_instant_are_those_of_the_first_record_not_before_it(kafka, topics, topic):
    name = topic(partitions=2, retention=None)
    base_at = datetime(2024, 5, 1, tzinfo=UTC)
    with Producer(kafka) as producer:
        for minute in range(5):
            at = base_at + timedelta(minutes=minute)
            producer.send(name, key=None, value=b"x", partition=0, timestamp_at=at)
    assert topics.offsets_at(name, base_at) == {0: 0, 1: 0}
    assert topics.offsets_at(name, base_at + timedelta(seconds=90)) == {0: 2, 1: 0}
    assert topics.offsets_at(name, base_at + timedelta(days=1)) == {0: 5, 1: 0}
