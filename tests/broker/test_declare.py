from typing import Any

import pytest

from penstock import App, record
from penstock.backbone.declare import declare_application, schema_versions
from penstock.backbone.schemas import SchemaRegistry
from penstock.backbone.topics.topics import Topics
from penstock.core.graph.graph import Graph
from penstock.errors import ConfigurationError


@record(key="word")
class Word:
    word: str


def graph_of(name: str, cls: type[Any], *, partitions: int = 2) -> Graph:
    app = App(name)
    app.stream(name, cls, partitions=partitions)
    app.table(f"{name}.table", cls, partitions=partitions)
    return app.graph


def test_declaring_creates_topics_and_schemas_once(kafka, topic):
    name = topic.name()
    declared = declare_application(graph_of(name, Word), kafka)
    assert {change.topic for change in declared.topics} == {
        name,
        f"{name}.table",
        f"{name}.dead-letters",
    }
    assert declared.schemas == {name: 1, f"{name}.table": 1}
    assert declare_application(graph_of(name, Word), kafka).nothing


def test_a_compatible_type_becomes_the_next_version(kafka, topic):
    @record(key="word")
    class Wider:
        word: str
        language: str | None

    name = topic.name()
    declare_application(graph_of(name, Word), kafka)
    assert declare_application(graph_of(name, Wider), kafka).schemas[name] == 2
    versions = schema_versions(SchemaRegistry(kafka).get(name))
    assert [version.name for version in versions] == ["Word", "Wider"]
    # Back again: the field's records are still read, and no version is kept twice.
    assert declare_application(graph_of(name, Word), kafka).schemas[name] == 2


def test_every_refusal_of_every_topic_comes_at_once_and_nothing_is_done(kafka, topic):
    @record(key="word")
    class Number:
        word: int
        language: str

    name = topic.name()
    declare_application(graph_of(name, Word), kafka)
    app = App(name)
    app.stream(name, Number)
    app.stream(f"{name}.new", Word)
    app.table(f"{name}.table", Number)
    with pytest.raises(ConfigurationError) as caught:
        declare_application(app.graph, kafka)
    assert caught.value.code == "schema.refused"
    assert caught.value.detail.split("\n  ") == [
        f"{each}: {why} (version 1 of 1)"
        for each in (name, f"{name}.table")
        for why in (
            "word was text, is int",
            "language is new and required: records on the topic do not have it",
        )
    ]
    assert not Topics(kafka).exists(f"{name}.new")


def test_a_type_must_read_versions_older_than_the_last(kafka, topic):
    @record(key="word")
    class WithCount:
        word: str
        count: int

    @record(key="word")
    class WithoutCount:
        word: str

    @record(key="word")
    class OtherCount:
        word: str
        count: str | None

    name = topic.name()
    for cls in (WithCount, WithoutCount):
        declare_application(graph_of(name, cls), kafka)
    with pytest.raises(ConfigurationError, match=r"count was int, is text \(version 1 of 2\)"):
        declare_application(graph_of(name, OtherCount), kafka)


def test_a_topic_that_was_deleted_starts_afresh(kafka, topic):
    @record(key="number")
    class Number:
        number: int

    name = topic.name()
    declare_application(graph_of(name, Word), kafka)
    Topics(kafka).delete([name, f"{name}.table"])
    assert declare_application(graph_of(name, Number), kafka).schemas[name] == 1


def test_a_contradiction_of_topics_is_an_error_until_a_change_is_asked_for(kafka, topic):
    name = topic.name()
    declare_application(graph_of(name, Word), kafka)
    wider = graph_of(name, Word, partitions=3)
    with pytest.raises(ConfigurationError) as caught:
        declare_application(wider, kafka)
    assert caught.value.code == "topic.contradiction"
    declared = declare_application(wider, kafka, change=True, repartition=True)
    assert [(done.action, done.setting) for done in declared.topics] == [
        ("changed", "partitions")
    ] * 2
