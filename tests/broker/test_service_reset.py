"""A service taken back to its beginning: state that is gone is rebuilt from the input."""

from collections import Counter

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from penstock.backbone.log.groups import Groups
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError
from penstock.services import reset

from . import service_worker as kit

WORDS = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"] * 5


@pytest.fixture
def app(kafka, topic):
    app = kit.declared(topic.name("app"), kafka)
    kit.send_words(kafka, app, WORDS)
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=50), what="all words counted")
    return app


def run_again(kafka, app):
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.has("count", passed=50), what="all words counted again")
    assert running.error is None


def state(kafka, app):
    found = {}
    for raw in LogReader(kafka).read(app.changelog):
        if raw.key.startswith(b"total\x00"):
            found[raw.key[6:].decode()] = int(raw.value)
    return found


def delete_records(kafka, name):
    """Delete what a changelog holds, by force: Kafka refuses that while it is compacted only."""
    entry = ConfigEntry(
        "cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET
    )
    changed = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for done in admin.incremental_alter_configs([changed]).values():
        done.result(kit.PATIENCE)
    topics = Topics(kafka)
    topics.trim(name, {number: high for number, (_, high) in topics.ends(name).items()})


def test_a_trimmed_changelog_is_refused_and_a_reset_rebuilds_the_state_from_the_input(kafka, app):
    delete_records(kafka, app.changelog)
    with kit.InThread(kafka, app, "count") as running:
        running.join()
    assert isinstance(running.error, ConfigurationError)
    assert running.error.code == "state.trimmed"
    assert "penstock reset" in running.error.hint
    assert reset.reset_service(app.app.graph, app.app.graph.part("count"), kafka) == 50
    run_again(kafka, app)
    assert state(kafka, app) == Counter(WORDS)
    assert kit.counted(kafka, app)["to"] == [*range(1, 11), *range(1, 11)]


def test_a_service_with_a_worker_is_not_reset(kafka, app):
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.state("count") == "running", what="it runs")
        with pytest.raises(ConfigurationError) as busy:
            reset.reset_service(app.app.graph, app.app.graph.part("count"), kafka)
    assert busy.value.code == "group.busy"
    assert running.error is None
    assert state(kafka, app) == Counter(WORDS)


def test_a_reset_that_was_interrupted_leaves_what_refuses_to_run_until_it_is_done_again(
    kafka, app, monkeypatch
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Groups, "delete", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reset.reset_service(app.app.graph, app.app.graph.part("count"), kafka)
    monkeypatch.undo()
    with kit.InThread(kafka, app, "count") as running:
        running.join()
    assert running.error.code == "offset.beyond-end"
    reset.reset_service(app.app.graph, app.app.graph.part("count"), kafka)
    run_again(kafka, app)
    assert state(kafka, app) == Counter(WORDS)


def test_what_was_never_run_can_be_reset(kafka, topic):
    app = kit.declared(topic.name("app"), kafka)
    assert reset.reset_service(app.app.graph, app.app.graph.part("count"), kafka) == 0
    with kit.InThread(kafka, app, "count") as running:
        kit.send_words(kafka, app, WORDS)
        kit.eventually(lambda: running.has("count", passed=50), what="all words counted")
    assert running.error is None


def test_a_changelog_that_was_deleted_is_not_taken_for_an_empty_one_in_silence(kafka, app, caplog):
    topics = Topics(kafka)
    topics.delete([app.changelog])
    topics.declare(app.app.graph.topics())
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(lambda: running.state("count") == "running", what="it runs")
    assert "the state begins empty here" in caplog.text
    assert "penstock reset rebuilds it" in caplog.text
    caplog.clear()
    reset.reset_service(app.app.graph, app.app.graph.part("count"), kafka)
    run_again(kafka, app)
    assert "the state begins empty here" not in caplog.text
