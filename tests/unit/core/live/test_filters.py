"""Filters: what matches, and what is refused with its operator and place."""

from datetime import UTC, datetime

import pytest

from penstock.core.live.query import read_query
from penstock.core.live.reader import DEEPEST_FILTER
from penstock.errors import DataError

AT = datetime(2026, 11, 19, tzinfo=UTC)


def matching(given, *documents):
    matches = read_query({"filter": given}).matches
    return [index for index, document in enumerate(documents) if matches(document)]


@pytest.mark.parametrize(
    ("given", "documents", "expected"),
    [
        ({}, [{}, {"a": 1}], [0, 1]),
        ({"a": 1}, [{"a": 1}, {"a": 1.0}, {"a": True}, {"a": "1"}, {"a": [2, 1]}], [0, 1, 4]),
        ({"a": None}, [{}, {"a": None}, {"a": 0}, {"a": []}], [0, 1]),
        ({"a.b": 1}, [{"a": {"b": 1}}, {"a": [{"b": 2}, {"b": 1}]}, {"a": 1}], [0, 1]),
        ({"a.1": 5}, [{"a": [4, 5]}, {"a": {"1": 5}}, {"a": [5, 4]}], [0, 1]),
        ({"a": {"$gt": AT}}, [{"a": AT}, {"a": AT.replace(year=2027)}, {"a": 5}], [1]),
        ({"a": {"$gt": 1, "$lt": 3}}, [{"a": 2}, {"a": [0, 9]}, {"a": "2"}], [0, 1]),
        ({"a": {"$ne": 1}}, [{"a": 1}, {"a": 2}, {}], [1, 2]),
        ({"a": {"$in": [1, None]}}, [{}, {"a": 1}, {"a": 2}], [0, 1]),
        ({"a": {"$in": ["x", {"$regularExpression": {"pattern": "^y"}}]}}, [{"a": "yes"}], [0]),
        ({"a": {"$nin": [1, 2]}}, [{"a": 3}, {"a": [3, 2]}, {}], [0, 2]),
        ({"a": {"$exists": True}}, [{"a": None}, {}], [0]),
        ({"a": {"$type": "number"}}, [{"a": 1}, {"a": 1.5}, {"a": "1"}, {}], [0, 1]),
        ({"a": {"$size": 2}}, [{"a": [1, 2]}, {"a": [1]}, {"a": "ab"}], [0]),
        ({"a": {"$all": [1, 2]}}, [{"a": [2, 1, 3]}, {"a": [1]}], [0]),
        ({"a": {"$elemMatch": {"b": 1, "c": 2}}}, [{"a": [{"b": 1, "c": 2}]}], [0]),
        ({"a": {"$elemMatch": {"b": 1, "c": 2}}}, [{"a": [{"b": 1}, {"c": 2}]}], []),
        ({"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}}, [{"a": [0, 9]}, {"a": [2]}], [1]),
        ({"a": {"$not": {"$gt": 1}}}, [{"a": 1}, {"a": 2}, {}], [0, 2]),
        ({"$or": [{"a": 1}, {"b": 1}]}, [{"a": 1}, {"b": 1}, {"c": 1}], [0, 1]),
        ({"$nor": [{"a": 1}, {"b": 1}]}, [{"a": 1}, {"b": 1}, {"c": 1}], [2]),
        ({"a": {"$mod": [4, -1]}}, [{"a": -5}, {"a": 3}], [0]),
        ({"a": {"$bitsAllSet": [0, 2]}}, [{"a": 5}, {"a": 4}, {"a": 5.5}], [0]),
        ({"a": {"$regex": "B$", "$options": "i"}}, [{"a": "ab"}, {"a": "ba"}, {"a": None}], [0]),
        ({"a": {"b": 1, "c": 2}}, [{"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}], [0]),
    ],
)
def test_a_filter_matches_as_in_mongodb(given, documents, expected):
    assert matching(given, *documents) == expected


@pytest.mark.parametrize(
    ("given", "operator", "path"),
    [
        ({"a": {"$gtt": 1}}, "$gtt", "a"),
        ({"$where": "true"}, "$where", ""),
        ({"$and": []}, "$and", ""),
        ({"$or": [5]}, "$or", ""),
        ({"a": {"$in": 5}}, "$in", "a"),
        ({"a.b": {"$size": -1}}, "$size", "a.b"),
        ({"a": {"$mod": [0, 1]}}, "$mod", "a"),
        ({"a": {"$not": 5}}, "$not", "a"),
        ({"a": {"$all": [{"$gt": 4}]}}, "$all", "a"),
        ({"a": {"$regex": "(a)\\1"}}, "$regex", "a"),
        ({"a": {"$regex": "a", "$options": "q"}}, "$regex", "a"),
        ({"a": {"$options": "i"}}, "$options", "a"),
        ({"a": {"$type": "hexadecimal"}}, "$type", "a"),
        ({"a": {"$elemMatch": 1}}, "$elemMatch", "a"),
        (
            {"a": {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": []}}}},
            "$geoW",
            "a",
        ),
        ({"a": {"$gt": 1, "b": 2}}, "b", "a"),
    ],
)
def test_what_is_wrong_is_refused_with_operator_and_path(given, operator, path):
    with pytest.raises(DataError) as refused:
        read_query({"filter": given})
    assert refused.value.code == "query.refused"
    assert operator in refused.value.message
    assert path in refused.value.message


def test_a_misspelt_operator_is_told_the_nearest_one():
    with pytest.raises(DataError) as refused:
        read_query({"filter": {"a": {"$exsts": 1}}})
    assert "$exists" in refused.value.hint


def test_a_filter_that_is_too_deep_is_refused_before_it_is_read():
    given = {"a": 1}
    for _ in range(DEEPEST_FILTER * 100):
        given = {"$and": [given]}
    with pytest.raises(DataError, match="levels"):
        read_query({"filter": given})


def test_a_pattern_that_would_run_for_ever_elsewhere_takes_no_time():
    matches = read_query({"filter": {"a": {"$regex": "(a+)+$"}}}).matches
    assert not matches({"a": "a" * 50_000 + "b"})


@pytest.mark.parametrize(
    "given",
    [5, {"wher": {}}, {"limit": -1}, {"offset": "1"}, {"limit": True}, {"fields": "a"},
     {"sort": {"a": 1}}, {"sort": [["a", 2]]}, {"sort": [["$a", 1]]}, {"limit": 1_000_000}],
)  # fmt: skip
def test_a_query_of_another_form_is_refused(given):
    with pytest.raises(DataError):
        read_query(given)


def test_a_result_has_the_fields_that_were_asked_for_and_the_identity():
    query = read_query({"fields": ["a.b", "c"]})
    document = {"_id": 1, "a": {"b": 2, "x": 3}, "c": {"y": 4}, "d": 5}
    assert query.shown(document) == {"_id": 1, "a": {"b": 2}, "c": {"y": 4}}


def test_white_space_in_an_extended_pattern_counts_only_where_it_is_escaped_or_in_a_class():
    given = {"a": {"$regex": "^ a [ ] b \\  # the end\n $", "$options": "x"}}
    assert matching(given, {"a": "a b "}, {"a": "ab "}, {"a": "a b"}) == [0]


@pytest.mark.timeout(20)
def test_an_extended_pattern_with_many_classes_that_never_close_is_prepared_at_once():
    for length in range(9_800, 9_900):
        pattern = "\\Q" + "[" * length + "\\E"
        read_query({"filter": {"a": {"$regex": pattern, "$options": "x"}}})


def test_a_refused_pattern_is_told_at_a_length_that_can_be_read():
    with pytest.raises(DataError) as refused:
        read_query({"filter": {"a": {"$regex": "(" + "a" * 9_000}}})
    assert len(refused.value.message) < 300
