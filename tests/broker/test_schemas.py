"""The schema registry on a real broker."""

from penstock.backbone.schemas import SCHEMA_TOPIC, SchemaRegistry
from penstock.backbone.topics.topics import Topics


def test_a_schema_that_was_put_is_seen_by_every_reader(kafka, topic):
    name = topic.name()
    schema = {"type": "record", "fields": [{"name": "wörd", "type": "string"}]}
    SchemaRegistry(kafka).put(name, schema)
    assert SchemaRegistry(kafka).get(name) == schema
    assert SchemaRegistry(kafka).all()[name] == schema


def test_the_last_schema_holds_until_it_is_removed(kafka, topic):
    name, other = topic.name("one"), topic.name("other")
    registry = SchemaRegistry(kafka)
    registry.put_all({name: {"version": 1}, other: {"version": 1}})
    registry.put(name, {"version": 2})
    assert registry.get(name) == {"version": 2}
    registry.remove(name)
    assert registry.get(name) is None
    assert registry.get(other) == {"version": 1}


def test_a_topic_that_was_never_declared_has_no_schema(kafka, topic):
    assert SchemaRegistry(kafka).get(topic.name()) is None


def test_the_registry_is_compacted_and_kept_for_ever(kafka, topic):
    SchemaRegistry(kafka).put(topic.name(), {})
    state = Topics(kafka).describe(SCHEMA_TOPIC.name)
    assert state.internal
    assert (state.config["cleanup.policy"], state.config["retention.ms"]) == ("compact", "-1")
