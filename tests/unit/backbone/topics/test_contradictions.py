"""Declarations against topics as they are, without a broker."""

from dataclasses import replace
from datetime import timedelta

from penstock.backbone.topics.contradictions import TopicState, contradiction, differences
from penstock.core.topic import TopicSpec

SPEC = TopicSpec(name="words", partitions=2)
STATE = TopicState(name="words", partitions=2, replication=1, config=SPEC.config())


def test_a_topic_as_declared_has_no_differences():
    assert differences(SPEC, STATE) == []


def test_every_setting_that_differs_is_found():
    spec = replace(
        SPEC,
        partitions=4,
        replication=3,
        retention=None,
        retention_bytes=1 << 30,
        compacted=True,
    )
    found = {each.setting: str(each) for each in differences(spec, STATE)}
    assert set(found) == {
        "partitions",
        "replication",
        "cleanup.policy",
        "retention.ms",
        "retention.bytes",
    }
    assert found["retention.ms"] == "words: retention.ms declared no limit, existing 7d"
    assert found["retention.bytes"] == "words: retention.bytes declared 1GiB, existing no limit"
    assert found["cleanup.policy"] == "words: cleanup.policy declared compact, existing delete"


def test_a_declaration_that_leaves_the_copies_to_the_cluster_agrees_with_any():
    assert differences(SPEC, replace(STATE, replication=3)) == []


def test_cleanup_policies_are_compared_as_sets():
    both = replace(STATE, config={**STATE.config, "cleanup.policy": "delete,compact"})
    (found,) = differences(SPEC, both)
    assert (found.setting, found.existing) == ("cleanup.policy", "delete,compact")


def test_settings_that_nobody_declares_are_not_compared():
    tuned = replace(STATE, config={**STATE.config, "segment.bytes": "1"})
    assert differences(SPEC, tuned) == []


def test_more_partitions_for_keys_have_an_obstacle_that_can_be_accepted():
    more = replace(SPEC, partitions=4)
    assert "a key moves to another one" in differences(more, STATE)[0].obstacle
    assert differences(more, STATE, repartition=True)[0].obstacle == ""
    spread = replace(more, partitioning="round_robin")
    assert differences(spread, STATE)[0].obstacle == ""


def test_fewer_partitions_have_an_obstacle_that_nothing_removes():
    fewer = replace(SPEC, partitions=1, partitioning="round_robin")
    assert "cannot remove" in differences(fewer, STATE, repartition=True)[0].obstacle


def test_the_error_names_all_topics_and_both_sides_of_each_difference():
    other = replace(STATE, name="counts")
    found = [
        *differences(replace(SPEC, retention=timedelta(hours=1)), STATE),
        *differences(replace(SPEC, name="counts", compacted=True), other),
    ]
    error = contradiction(found)
    assert error.code == "topic.contradiction"
    assert "counts, words" in error.message
    assert error.detail.splitlines() == [
        "words: retention.ms declared 1h, existing 7d",
        "  counts: cleanup.policy declared compact, existing delete",
    ]
    assert error.hint == "penstock topics apply APP --change"


def test_what_cannot_be_changed_is_not_answered_with_a_change():
    error = contradiction(differences(replace(SPEC, replication=3), STATE))
    assert "--change" not in error.hint
    assert "Kafka's own tools" in error.detail
