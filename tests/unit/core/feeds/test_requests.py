"""What clients may send, and how mistakes are named."""

import json

import pytest

from penstock.core.feeds.requests import (
    Ping,
    Subscribe,
    read_poll,
    read_request,
    read_several,
    squash_seconds,
    wait_seconds,
)
from penstock.core.feeds.shared import shared_query
from penstock.core.live.query import read_query
from penstock.errors import DataError


def test_a_message_is_read_by_its_type():
    found = read_request('{"type": "subscribe", "id": "a", "query": {"limit": 1}}')
    assert isinstance(found, Subscribe)
    assert json.loads(bytes(found.query)) == {"limit": 1}
    assert isinstance(read_request(b'{"type": "ping"}'), Ping)


@pytest.mark.parametrize(
    "message",
    [
        "{",
        "[]",
        '{"type": "subscribes", "id": "a"}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "id": ""}',
        '{"type": "subscribe", "id": "a", "face": "none"}',
        '{"type": "subscribe", "id": "a", "querry": {}}',
        b"\xff\xfe",
        '{"type": "ping"' + "[" * 100_000,
    ],
)
def test_a_message_that_is_wrong_is_refused(message):
    with pytest.raises(DataError) as error:
        read_request(message)
    assert error.value.code == "live.message"


def test_several_subscriptions_have_different_names_and_may_leave_out_the_type():
    (found,) = read_several(['{"id": "a", "type": "subscribe"}'])
    assert found.id == "a"
    assert [each.id for each in read_poll(b'{"subscribe": [{"id": "a"}, {"id": "b"}]}').subscribe]
    for body in (
        b'{"subscribe": []}',
        b'{"subscribe": [{"id": "a"}, {"id": "a"}]}',
        b'{"subscribe": [{"id": "a", "type": "ping"}]}',
        b'{"subscribe": [{"id": "a"}], "more": 1}',
    ):
        with pytest.raises(DataError):
            read_poll(body)
    with pytest.raises(DataError):
        read_several([])


def test_times_are_bounded():
    assert (squash_seconds(""), squash_seconds("500ms")) == (0.0, 0.5)
    assert wait_seconds("25s", most=30) == 25
    for text in ("2m", "soon", "-1s"):
        with pytest.raises(DataError):
            squash_seconds(text)


def test_who_asks_the_same_shares_a_query():
    same = [
        {"filter": {"rank": {"$gt": 3}}, "sort": [["rank", 1]], "offset": 0},
        {"sort": [["rank", 1]], "filter": "rank > 3", "fields": []},
    ]
    first, second = (shared_query(json.dumps(each)) for each in same)
    assert first == second
    assert first.ordered
    others = [{}, {"filter": {}}, {"limit": 0}, {"filter": {"a": {"x": 1, "y": 2}}}]
    others += [{"filter": {"a": {"y": 2, "x": 1}}}]
    names = {shared_query(json.dumps(each)).name for each in others}
    assert len(names) == len(others) - 1  # the first two are the same
    with pytest.raises(DataError, match=r"\$where"):
        shared_query('{"filter": {"$where": "1"}}')


def test_a_rule_is_a_part_of_the_query_of_each_caller():
    rule = "owner = claims.sub or shared"
    asked = json.dumps(
        {"filter": {"$or": [{}, {"owner": "bea"}]}, "sort": [["rank", 1]], "limit": 1}
    )
    of_ann = shared_query(asked, rule=rule, claims={"sub": "ann"})
    of_bea = shared_query(asked, rule=rule, claims={"sub": "bea"})
    of_nobody = shared_query(asked, rule=rule)
    assert len({of_ann.name, of_bea.name, of_nobody.name, shared_query(asked).name}) == 4
    rows = [
        {"_id": "1", "owner": "bea", "rank": 1},
        {"_id": "2", "owner": "ann", "rank": 2},
        {"_id": "3", "owner": "cleo", "rank": 3, "shared": True},
    ]
    for query, expected in ((of_ann, "2"), (of_bea, "1"), (of_nobody, "3")):
        (row,) = read_query(json.loads(query.text)).result(rows)
        assert row["_id"] == expected
    # A claim is a value, whatever it holds.
    hostile = shared_query("{}", rule=rule, claims={"sub": "x' or 'a' = 'a"})
    assert len(read_query(json.loads(hostile.text)).result(rows)) == 1
    assert read_query(json.loads(of_bea.text)).node != read_query(json.loads(of_ann.text)).node
