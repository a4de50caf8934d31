"""Consumer groups seen from outside."""

import pytest

from penstock.backbone.log.consumer import Consumer
from penstock.backbone.log.groups import Groups, Lag
from penstock.backbone.log.positions import PositionStore, position_group
from penstock.backbone.log.producer import Producer
from penstock.backbone.topics.topics import Topics
from penstock.errors import ConfigurationError


@pytest.fixture
def groups(kafka):
    return Groups(kafka)


@pytest.fixture
def filled(kafka, topic):
    name = topic(partitions=2)
    with Producer(kafka) as producer:
        for number in range(10):
            producer.send(name, key=None, value=b"x", partition=number % 2)
    return name


def test_lag_is_what_lies_between_the_group_and_the_end(groups, filled):
    groups.reset(filled, {(filled, 0): 5, (filled, 1): 2})
    lag = groups.lag(filled)
    assert lag == {
        (filled, 0): Lag(committed=5, end=5),
        (filled, 1): Lag(committed=2, end=5),
    }
    assert [each.lag for each in lag.values()] == [0, 3]


def test_a_group_that_does_not_exist_has_no_lag(groups):
    assert groups.lag("never joined") == {}


def test_lag_leaves_out_topics_that_were_deleted(kafka, groups, filled, topic):
    gone = topic("gone", partitions=1)
    groups.reset(filled, {(filled, 0): 5, (gone, 0): 0})
    Topics(kafka).delete([gone])
    assert set(groups.lag(filled)) == {(filled, 0)}


def test_members_are_shown_with_their_partitions(kafka, groups, filled):
    with Consumer(kafka, group=filled, topics=[filled]) as consumer:
        while not consumer.consume(100, 0.2):
            pass
        state = groups.describe(filled)
        assert state.state == "stable"
        assert [member.partitions for member in state.members] == [((filled, 0), (filled, 1))]
        with pytest.raises(ConfigurationError) as caught:
            groups.delete([filled])
        assert caught.value.code == "group.busy"
        with pytest.raises(ConfigurationError) as caught:
            groups.reset(filled, {(filled, 0): 0})
        assert caught.value.code == "group.busy"
    state = groups.describe(filled)
    assert (state.state, state.members, state.position) == ("empty", (), False)


def test_positions_are_listed_as_such(kafka, groups, filled):
    PositionStore(kafka).move(filled, {(filled, 0): 1})
    state = groups.describe(position_group(filled))
    assert state.position
    assert state in groups.list()


def test_deleted_groups_are_gone_and_deleting_again_is_no_error(groups, filled):
    groups.reset(filled, {(filled, 0): 1})
    groups.delete([filled])
    with pytest.raises(ConfigurationError) as caught:
        groups.describe(filled)
    assert caught.value.code == "group.missing"
    groups.delete([filled])
