"""The configuration of a group's member, without a broker."""

from datetime import timedelta

import pytest

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.membership import Membership, consumer_config
from penstock.backbone.log.positions import memberless, position_group
from penstock.core.settings.settings import KafkaSettings, ServiceSettings


def config(membership=None, **settings):
    return consumer_config(
        Connection("127.0.0.1:1", KafkaSettings()),
        group="app.count",
        settings=ServiceSettings(**settings),
        membership=membership or Membership(),
    )


def test_a_member_commits_nothing_by_itself_and_reads_what_is_committed():
    found = config()
    assert found["group.id"] == "app.count"
    assert found["enable.auto.commit"] is False
    assert found["enable.auto.offset.store"] is False
    assert found["isolation.level"] == "read_committed"
    assert found["auto.offset.reset"] == "error"


@pytest.mark.parametrize(
    ("strategy", "name"), [("cooperative", "cooperative-sticky"), ("range", "range")]
)
def test_the_strategy_is_named_as_kafka_does(strategy, name):
    found = config(Membership(strategy=strategy))
    assert found["partition.assignment.strategy"] == name


def test_what_is_fetched_ahead_is_bounded_but_the_largest_record_still_fits():
    found = config(queued_bytes=1 << 20)
    assert found["queued.max.messages.kbytes"] == 1024
    assert found["fetch.message.max.bytes"] == 1 << 20
    assert found["fetch.max.bytes"] >= KafkaSettings().max_message_bytes
    assert found["receive.message.max.bytes"] >= found["fetch.max.bytes"] + 512


def test_a_poll_interval_is_never_shorter_than_the_session():
    short = Membership(poll_interval=timedelta(seconds=1))
    found = config(short, session_timeout=timedelta(seconds=10))
    assert found["session.timeout.ms"] == 10_000
    assert found["max.poll.interval.ms"] == 10_000


def test_only_a_static_member_has_an_instance_id():
    assert "group.instance.id" not in config()
    assert config(Membership(instance_id="one"))["group.instance.id"] == "one"


def test_a_position_is_a_group_without_members():
    group = memberless(position_group("copy"))
    assert group.name == "penstock.position.copy"
    assert b"penstock.position.copy" in group.metadata
    assert "metadata" not in repr(group)
    assert memberless(position_group("copy")) == group
