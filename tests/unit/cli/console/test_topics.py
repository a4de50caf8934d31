"""Topics and groups as JSON, with readers, lag and rates; also where there are many."""

from dataclasses import replace

import pytest
from tests.manytopics import Given, many

from penstock.cli.console.topics import (
    group_document,
    groups_document,
    topic_document,
    topics_document,
)
from penstock.errors import ConfigurationError


def test_a_topic_stands_with_its_size_rate_retention_and_readers():
    sizes = {"topic-000": {0: 10, 1: 20}, "topic-001": {2: 12}}
    watcher = Given(replace(many(topics=2, partitions=3, groups=1), sizes=sizes))
    found = topics_document(watcher, lambda: None)["topics"]
    assert found[0] == {
        "topic": "topic-000",
        "is": "",
        "partitions": 3,
        "replication": 1,
        "records": 100 + 101 + 102,
        "bytes": 30,
        "rate": 6.0,
        "kept_bytes": None,
        "kept": "7d",
        "compacted": False,
        "readers": [{"group": "group-0", "state": "stable", "lag": 33, "worst": 12}],
    }
    one = topic_document(watcher, lambda: None, "topic-001")
    assert one["by_partition"][2] == {
        "partition": 2,
        "first": 10,
        "next": 112,
        "records": 102,
        "bytes": 12,
        "rate": 2.0,
        "lags": {"group-0": 12},
    }


def test_a_group_stands_with_its_lag_by_partition_and_who_has_each():
    watcher = Given(many(topics=1, partitions=2, groups=1))
    (row,) = groups_document(watcher)["groups"]
    assert (row["lag"], row["worst"], row["members"], row["partitions"]) == (21, 11, 1, 2)
    found = group_document(watcher, "group-0")
    assert [each["member"] for each in found["partitions"]] == ["member-0", None]
    assert [each["lag"] for each in found["partitions"]] == [10, 11]


def test_many_topics_and_partitions_are_told_whole():
    watcher = Given(many())
    found = topics_document(watcher, lambda: None)["topics"]
    assert len(found) == 200
    assert sum(each["partitions"] for each in found) == 20_000
    assert sum(len(each["readers"]) for each in found) == 200
    assert len(groups_document(watcher)["groups"]) == 20


@pytest.mark.parametrize(
    "ask", [lambda w: topic_document(w, lambda: None, "x"), lambda w: group_document(w, "x")]
)
def test_what_is_not_there_is_said(ask):
    with pytest.raises(ConfigurationError, match="there is no"):
        ask(Given(many(topics=1, groups=1)))
