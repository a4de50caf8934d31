"""Aggregates that follow writes: events over the first groups are the groups counted anew."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.live.query import read_query
from penstock.core.live.result import live_result
from penstock.core.live.values import order_of
from penstock.errors import DataError

AGGREGATES = {
    "n": {"count": True},
    "total": {"sum": "points"},
    "middle": {"mean": "points"},
    "least": {"min": "points"},
    "most": {"max": "points"},
}
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "list": st.sampled_from(["home", "work", None, 1, 1.0]),
        "points": st.sampled_from([0.1, 0.2, 1, 3, -7, "text", None, True, 1e300, Decimal("0.10")]),
        "done": st.booleans(),
    },
)
WRITES = st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), DOCUMENTS)), max_size=20)


def recount(documents, *, grouped):
    """Return the groups in the plainest way."""
    groups = {}
    for each in documents:
        if each.get("done") is not True:
            key = each.get("list") if grouped else None
            groups.setdefault(order_of(key), []).append(each.get("points"))
    if not grouped:
        groups.setdefault(order_of(None), [])
    found = []
    for values in groups.values():
        numbers = [v for v in values if isinstance(v, int | float | Decimal) and v is not True]
        total = sum(map(Fraction, numbers), Fraction())
        known = sorted((v for v in values if v is not None), key=order_of)
        found.append(
            {
                "n": len(values),
                "total": float(total),
                "middle": float(total / len(numbers)) if numbers else None,
                "least": order_of(known[0]) if known else None,
                "most": order_of(known[-1]) if known else None,
            }
        )
    return sorted(found, key=repr)


def plain(groups):
    found = []
    for each in groups:
        kept = {name: each[name] for name in AGGREGATES}
        for name in ("least", "most"):
            kept[name] = None if kept[name] is None else order_of(kept[name])
        found.append({**kept, "total": float(kept["total"])})
    return sorted(found, key=repr)


@given(WRITES, st.integers(0, 6), st.booleans())
def test_events_over_the_first_groups_are_the_groups_counted_anew(writes, begun, grouped):
    query = read_query(
        {"filter": "done is null or not done", "aggregate": AGGREGATES}
        | ({"group": ["list"]} if grouped else {})
    )
    table = {}
    for identity, document in writes[:begun]:
        if document is not None:
            table[identity] = {"_id": identity, **document}
    result = live_result(query, refill=lambda _: [])
    copy = {repr(order_of(e.document["_id"])): e.document for e in result.begin(table.values())}
    for identity, document in writes[begun:]:
        before = table.pop(identity, None)
        if document is not None:
            table[identity] = {"_id": identity, **document}
        operation = "delete" if document is None else "update" if before else "insert"
        events = result.write(operation, identity, table.get(identity))
        assert [event.match for event in events] == sorted(
            (event.match for event in events), key=lambda match: match != "remove"
        )
        for event in events:
            key = repr(order_of(event.document["_id"]))
            assert (key in copy) == (event.match != "add")
            if event.match == "remove":
                del copy[key]
            else:
                copy[key] = event.document
        assert plain(copy.values()) == recount(table.values(), grouped=grouped)


def test_a_group_names_its_fields():
    query = read_query({"group": ["list", "at.day"], "aggregate": {"n": {"count": True}}})
    result = live_result(query, refill=lambda _: [])
    result.begin([{"_id": 1, "list": "home", "at": {"day": 3}}, {"_id": 2, "list": "home"}])
    assert result.documents == [
        {"_id": {"list": "home", "at.day": 3}, "list": "home", "at.day": 3, "n": 1},
        {"_id": {"list": "home", "at.day": None}, "list": "home", "at.day": None, "n": 1},
    ]
    (event,) = result.write("update", 2, {"_id": 2, "list": "home", "more": 1})[:1] or [None]
    assert event is None


def test_without_fields_there_is_always_one_group():
    query = read_query({"aggregate": {"n": {"count": True}, "s": {"sum": "x"}}})
    result = live_result(query, refill=lambda _: [])
    (event,) = result.begin([])
    assert event.document == {"_id": None, "n": 0, "s": 0}
    (event,) = result.write("insert", 1, {"_id": 1, "x": 2})
    assert (event.match, event.document) == ("change", {"_id": None, "n": 1, "s": 2})


def test_numbers_of_hostile_sizes_are_added_up_or_give_null():
    asked = {name: {name: "x"} for name in ("sum", "mean", "min", "max")}
    result = live_result(read_query({"aggregate": asked}), refill=lambda _: [])
    result.begin([])
    (event,) = result.write("insert", 1, {"_id": 1, "x": 10**400})
    assert event.document["sum"] == event.document["max"] == 10**400
    assert event.document["mean"] is None  # no number of JSON readers is as large
    (event,) = result.write("insert", 2, {"_id": 2, "x": -(10**4200)})
    assert event.document["sum"] is None
    (event,) = result.write("delete", 2, None)
    assert event.document["sum"] == 10**400


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"group": ["a"]}, "group"),
        ({"aggregate": {}}, "aggregate"),
        ({"aggregate": {"n": {"count": True}}, "sort": [["a", 1]]}, "sort"),
        ({"aggregate": {"n": {"count": True}}, "limit": 3}, "limit"),
        ({"aggregate": {"n": {"median": "a"}}}, "median"),
        ({"aggregate": {"n": {"sum": 3}}}, "aggregate.n"),
        ({"aggregate": {"n": {"count": 1}}}, "aggregate.n"),
        ({"aggregate": {"_id": {"count": True}}}, "_id"),
        ({"aggregate": {"a": {"count": True}}, "group": ["a"]}, "'a'"),
        ({"aggregate": {"n": {"count": True}}, "group": ["a", "a"]}, "group"),
        ({"aggregate": {"n": {"count": True}}, "group": "a"}, "group"),
        ({"aggregate": {f"n{at}": {"count": True} for at in range(21)}}, "aggregate"),
    ],
)
def test_what_cannot_be_aggregated_is_refused(query, said):
    with pytest.raises(DataError, match=said) as error:
        read_query(query)
    assert error.value.code == "query.refused"
