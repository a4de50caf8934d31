"""Where a task goes on: at the group's offsets, which must be those of its state."""

import pytest

from penstock.errors import ConfigurationError
from penstock.services.state.positions import Input, dump_positions, find_positions
from penstock.services.task.task import transactional_id

WORDS = ("words", 0)
LINES = ("lines", 0)
INPUTS = {"words": Input(id="w", partitions=2), "lines": Input(id="l", partitions=2)}


def kept(offsets, *, inputs=INPUTS, delivery="exactly_once", owner="app/count"):
    return dump_positions(offsets, inputs, owner=owner, delivery=delivery)


def found(starts, note, *, inputs=INPUTS, unread=()):
    return find_positions(
        starts, note, inputs=inputs, unread=unread, group="app.count", owner="app/count"
    )


def test_offsets_and_state_of_one_commit_agree():
    assert found({WORDS: 7, LINES: 3}, kept({WORDS: 7, LINES: 3})) == {WORDS: 7, LINES: 3}


def test_a_state_that_knows_nothing_follows_the_group():
    assert found({WORDS: 7}, None) == {WORDS: 7}


def test_offsets_that_the_group_has_forgotten_are_those_of_the_state(caplog):
    note = kept({WORDS: 7, LINES: 3})
    assert found({WORDS: 0, LINES: 3}, note, unread={WORDS}) == {WORDS: 7, LINES: 3}
    assert "has no offset for words[0] any more: it goes on from 7" in caplog.text


def test_an_input_that_the_state_has_never_seen_is_begun_where_the_group_says():
    assert found({WORDS: 7, LINES: 0}, kept({WORDS: 7}), unread={LINES}) == {WORDS: 7, LINES: 0}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("start", [0, 6, 8])
def test_a_group_that_somebody_moved_is_refused_with_both_offsets(delivery, start):
    with pytest.raises(
        ConfigurationError, match=rf"group app.count is at offset {start}, its state at offset 7"
    ) as raised:
        found({WORDS: start}, kept({WORDS: 7}, delivery=delivery))
    assert raised.value.code == "state.offsets"
    assert "penstock reset" in raised.value.hint


def test_at_most_once_the_group_may_be_ahead_of_the_state_and_never_behind():
    note = kept({WORDS: 7}, delivery="at_most_once")
    assert found({WORDS: 9}, note) == {WORDS: 9}
    with pytest.raises(ConfigurationError, match="at offset 5"):
        found({WORDS: 5}, note)


def test_an_input_that_is_read_no_more_is_known_when_it_is_read_again():
    former = kept({WORDS: 7, LINES: 3}, delivery="at_most_once")
    note = dump_positions({WORDS: 9}, INPUTS, owner="", delivery="exactly_once", former=former)
    assert found({WORDS: 9, LINES: 0}, note, unread={LINES}) == {WORDS: 9, LINES: 3}
    assert found({WORDS: 9, LINES: 5}, note) == {WORDS: 9, LINES: 5}


def test_what_retention_deleted_and_was_left_out_is_no_contradiction():
    trimmed = INPUTS | {"words": Input(id="w", partitions=2, low=20)}
    assert found({WORDS: 20}, kept({WORDS: 7}), inputs=trimmed) == {WORDS: 20}
    with pytest.raises(ConfigurationError, match="at offset 20"):
        found({WORDS: 20}, kept({WORDS: 7}))


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(caplog):
    anew = INPUTS | {"words": Input(id="another", partitions=2)}
    assert found({WORDS: 0}, kept({WORDS: 7}), inputs=anew, unread={WORDS}) == {WORDS: 0}
    assert "words was made anew" in caplog.text


def test_a_topic_that_was_made_anew_under_a_worker_that_read_on_is_refused():
    anew = INPUTS | {"words": Input(id="another", partitions=2)}
    with pytest.raises(ConfigurationError, match=r"made anew while .* was reading") as raised:
        found({WORDS: 7}, kept({WORDS: 7}), inputs=anew)
    assert raised.value.code == "input.recreated"


def test_an_input_that_was_cut_anew_has_its_keys_elsewhere_and_is_refused():
    cut = INPUTS | {"words": Input(id="w", partitions=4)}
    with pytest.raises(ConfigurationError, match=r"words has 4 partitions.* it had 2") as raised:
        found({WORDS: 7}, kept({WORDS: 7}), inputs=cut)
    assert raised.value.code == "state.repartitioned"


def test_the_state_of_another_service_that_has_the_same_name_on_the_log_is_refused():
    with pytest.raises(ConfigurationError, match=r"service 'b\.c' of application 'a'") as raised:
        find_positions(
            {WORDS: 7},
            kept({WORDS: 7}, owner="a/b.c"),
            inputs=INPUTS,
            unread=(),
            group="a.b.c",
            owner="a.b/c",
        )
    assert raised.value.code == "state.owner"


def test_no_two_shares_of_services_with_dots_in_their_names_have_one_transactional_id():
    groups = ["a.s", "a.s.x", "a.s.0", "a.s.x.y"]
    shares = ["0", "1", "x.y:0", "y:0", "x:0", "0:0"]
    ids = [transactional_id(group, share) for group in groups for share in shares]
    assert len(set(ids)) == len(ids)
