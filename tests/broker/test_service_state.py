"""State and offsets of a service belong together: forgotten, moved, or written by a former owner."""

from datetime import timedelta

import pytest

from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.groups import Groups
from penstock.backbone.log.producer import SendLimits
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError, FencedError
from penstock.services import reset
from penstock.services.task.delivery import ExactlyOnce
from penstock.services.task.statedelivery import StateAtLeastOnce, StateAtMostOnce

from . import service_worker as kit

WORDS = [f"w{number % 7}" for number in range(70)]


def count_all(kafka, app, passed):
    with kit.InThread(kafka, app, "count") as running:
        kit.eventually(
            lambda: running.error or running.has("count", passed=passed), what=f"{passed} counted"
        )
    assert running.error is None
    return running.reports


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_service_whose_offsets_the_cluster_forgot_goes_on_from_where_its_state_is(
    kafka, topic, caplog, delivery
):
    app = kit.declared(topic.name("app"), kafka, delivery=delivery)
    kit.send_words(kafka, app, WORDS)
    count_all(kafka, app, 70)
    Groups(kafka).delete([f"{app.name}.count"])  # as offsets.retention.minutes does
    kit.send_words(kafka, app, WORDS)
    reports = count_all(kafka, app, 70)
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []
    assert "it goes on from" in caplog.text
    assert any("forgotten by the group" in each.detail.get("offsets", "") for each in reports)
    assert {lag.lag for lag in Groups(kafka).lag(f"{app.name}.count").values()} == {0}


def test_a_group_that_was_moved_is_refused_until_it_is_moved_back_or_reset(kafka, topic):
    app = kit.declared(topic.name("app"), kafka)
    kit.send_words(kafka, app, WORDS)
    count_all(kafka, app, 70)
    group, words = f"{app.name}.count", app.words.topic.name
    stood = {at: lag.committed for at, lag in Groups(kafka).lag(group).items()}
    Groups(kafka).reset(group, dict.fromkeys(stood, 0))
    with kit.InThread(kafka, app, "count") as running:
        running.join()
    assert isinstance(running.error, ConfigurationError)
    assert running.error.code == "state.offsets"
    Groups(kafka).reset(group, stood)
    kit.send_words(kafka, app, WORDS)
    count_all(kafka, app, 70)
    assert kit.differences(kit.recounted(kafka, app), kit.counted(kafka, app)) == []
    assert reset.reset_service(app.app.graph, app.count, kafka) >= 140
    count_all(kafka, app, 140)
    assert Topics(kafka).exists(words)


@pytest.mark.parametrize("kind", [StateAtLeastOnce, StateAtMostOnce])
def test_a_former_owner_that_wakes_up_cannot_write_into_the_changelog(kafka, topic, kind):
    app = kit.declared(topic.name("app"), kafka, delivery="at_least_once")
    limits = SendLimits()

    def owner(consumer):
        state = ExactlyOnce(
            kafka,
            transactional_id=f"{app.name}.count.0",
            group=lambda: consumer.group,
            limits=limits,
            timeout=timedelta(seconds=30),
        )
        more = {"consumer": lambda: consumer} if kind is StateAtMostOnce else {}
        return kind(kafka, state=state, limits=limits, **more)

    def keep(delivery, value):
        delivery.keep(app.changelog, key=b"total\x00a", value=value, partition=0)
        delivery.commit({})()

    with Consumer(kafka, group=f"{app.name}.count", topics=[app.words.topic.name]) as consumer:
        former = owner(consumer)
        keep(former, b"1")
        successor = owner(consumer)
        keep(successor, b"2")
        with pytest.raises(FencedError):
            keep(former, b"1")
        successor.close()
        former.close()
    assert [raw.value for raw in LogReader(kafka).read(app.changelog)] == [b"1", b"2"]
