"""Filters: what matches, and what is refused with its operator and place."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from penstock.core.live.index import QueryIndex
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


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("given", "documents", "expected"),
    [
        # Numbers of every type compare by their exact values.
        ({"a": {"$gt": 1}}, [{"a": Decimal(2)}, {"a": Decimal("0.5")}, {"a": True}], [0]),
        ({"a": {"$lte": 2.5}}, [{"a": Decimal("2.5")}, {"a": Decimal("2.51")}, {"a": 2}], [0, 2]),
        ({"a": {"$gt": Decimal("0.1")}}, [{"a": 0.1}, {"a": 0}, {"a": "1"}], [0]),
        ({"a": 9007199254740993}, [{"a": 9007199254740992.0}, {"a": Decimal(2**53 + 1)}], [1]),
        (
            {"a": {"$in": [1, 0.1]}},
            [{"a": Decimal("1.0")}, {"a": Decimal("0.1")}, {"a": True}],
            [0],
        ),
        ({"a": {"$mod": [4, 0]}}, [{"a": Decimal("4.7")}, {"a": INFINITE}, {"a": "4"}], [0]),
        ({"a": {"$bitsAllSet": 1}}, [{"a": Decimal(3)}, {"a": Decimal("3.5")}], [0]),
        # What is not a number is only equal to itself.
        ({"a": {"$lt": 5}}, [{"a": NAN}, {"a": -INFINITE}], [1]),
        ({"a": {"$lt": Decimal(5)}}, [{"a": NAN}, {"a": Decimal("NaN")}, {"a": 4}], [2]),
        ({"a": {"$gte": NAN}}, [{"a": NAN}, {"a": 1}, {"a": INFINITE}], [0]),
        ({"a": NAN}, [{"a": NAN}, {"a": None}], [0]),
        # Null, what is missing, and arrays of neither.
        ({"a.b": None}, [{}, {"a": 5}, {"a": []}, {"a": [None]}, {"a": [{"b": 1}, {}]}], [0, 1, 4]),
        ({"a.b": {"$exists": False}}, [{"a": []}, {"a": [{"b": 1}, {}]}, {"a": 5}], [0, 2]),
        ({"a": {"$ne": None}}, [{"a": [None, 1]}, {}, {"a": []}, {"a": False}], [2, 3]),
        ({"a": {"$gte": None}}, [{}, {"a": None}, {"a": 0}], [0, 1]),
        ({"a": {"$gt": None}}, [{}, {"a": None}, {"a": 0}], []),
        ({"a": {"$type": "null"}}, [{}, {"a": None}, {"a": [None]}], [1, 2]),
        # Arrays as values, and arrays in arrays.
        ({"a": [1, 2]}, [{"a": [1, 2]}, {"a": [[1, 2]]}, {"a": [2, 1]}, {"a": [1, 2, 3]}], [0, 1]),
        ({"a": []}, [{"a": []}, {"a": [[]]}, {}], [0, 1]),
        (
            {"a": {"$gt": [1]}},
            [{"a": [2]}, {"a": [1]}, {"a": [1, 0]}, {"a": [[2]]}, {"a": 2}],
            [0, 2, 3],
        ),
        ({"a": {"$all": [[1, 2]]}}, [{"a": [1, 2]}, {"a": [[1, 2]]}, {"a": [2, 1]}], [0, 1]),
        ({"a": {"$all": []}}, [{"a": []}, {}], []),
        ({"a": {"$size": 1}}, [{"a": [[]]}, {"a": [[1, 2]]}, {"a": [[1], 2]}], [0, 1]),
        ({"a.b": 1}, [{"a": [[{"b": 1}]]}, {"a": [{"b": [1]}]}, {"a": [{"b": [[1]]}]}], [1]),
        ({"a.0": 1}, [{"a": [1]}, {"a": [[1]]}, {"a": [{"0": 1}]}, {"a": {"0": 1}}], [0, 2, 3]),
        ({"a.0.0": 1}, [{"a": [[1]]}, {"a": [1]}], [0]),
        (
            {"a.0.b": 1},
            [{"a": [[{"b": 1}]]}, {"a": [{"b": 1}]}, {"a": [{"b": 2}, {"b": 1}]}],
            [0, 1],
        ),
        ({"a.00": 1}, [{"a": [1]}, {"a": {"00": 1}}], [1]),
        ({"a.-1": 1}, [{"a": [1]}], []),
        ({"a": {"$type": "array"}}, [{"a": []}, {"a": [[]]}, {"a": {}}], [0, 1]),
        ({"a": {"$type": ["string", "bool"]}}, [{"a": [1, "x"]}, {"a": True}, {"a": 1}], [0, 1]),
        ({"a": {"$type": "int"}}, [{"a": 1}, {"a": 1 << 40}, {"a": 1.0}, {"a": [[1]]}], [0]),
        # Elements.
        ({"a": {"$elemMatch": {"$elemMatch": {"$gt": 1}}}}, [{"a": [[2]]}, {"a": [2]}], [0]),
        ({"a": {"$elemMatch": {"$exists": False}}}, [{"a": [1]}, {"a": []}], []),
        ({"a": {"$elemMatch": {"$ne": 1}}}, [{"a": [1, 2]}, {"a": [1]}, {"a": 2}], [0]),
        ({"a": {"$elemMatch": {"b": {"$ne": 1}}}}, [{"a": [{"b": 1}, {}]}, {"a": [5]}], [0]),
        ({"a": {"$elemMatch": {"0": 1}}}, [{"a": [[1]]}, {"a": [[0, 1]]}], [0]),
        ({"a": {"$not": {"$elemMatch": {"$gt": 1}}}}, [{"a": [2]}, {"a": 5}, {}], [1, 2]),
        ({"a": {"$elemMatch": {}}}, [{"a": [{}]}, {"a": [1]}, {"a": []}], [0]),
        # Objects compare field by field, in the order of the fields.
        ({"a": {"b": 1}}, [{"a": {"b": 1}}, {"a": {"b": 1, "c": 1}}, {"a": {"b": 1.0}}], [0, 2]),
        (
            {"a": {"$gt": {"b": 1}}},
            [{"a": {"b": 2}}, {"a": {"b": 1, "c": 0}}, {"a": {"a": 9}}],
            [0, 1],
        ),
        (
            {"a": {"$in": [{"b": 1}]}},
            [{"a": [{"b": 1}]}, {"a": {"b": 1}}, {"a": {"b": [1]}}],
            [0, 1],
        ),
        # Patterns.
        (
            {"a": {"$not": {"$regex": "^b"}}},
            [{"a": ["b", "c"]}, {"a": "c"}, {}, {"a": 5}],
            [1, 2, 3],
        ),
        ({"a": {"$regex": "^b", "$options": "m"}}, [{"a": "a\nb"}, {"a": "ab"}], [0]),
        ({"a": {"$regex": "a.b", "$options": "s"}}, [{"a": "a\nb"}], [0]),
        ({"a": {"$regex": "É", "$options": "i"}}, [{"a": "é"}, {"a": "e"}], [0]),
        ({"a": {"$nin": [{"$regularExpression": {"pattern": "^x"}}]}}, [{"a": "xy"}, {}], [1]),
        # Instants, texts by their code points, bytes by their length first.
        (
            {"a": {"$gt": AT}},
            [{"a": AT.astimezone(timezone(timedelta(hours=2)))}, {"a": "2030"}],
            [],
        ),
        ({"a": {"$gt": "\uffff"}}, [{"a": "\U0001f600"}, {"a": "z"}], [0]),
        ({"a": {"$lt": "a"}}, [{"a": "B"}, {"a": "é"}, {"a": ""}], [0, 2]),
        ({"a": {"$gt": b"zz"}}, [{"a": b"aaa"}, {"a": b"z"}, {"a": "zzz"}], [0]),
        ({"a": {"$gt": False}}, [{"a": True}, {"a": 1}], [0]),
    ],
)
def test_a_corner_of_the_language_is_as_in_mongodb_with_and_without_an_index(
    given, documents, expected
):
    assert matching(given, *documents) == expected
    index = QueryIndex()
    index.add("it", read_query({"filter": given}).node)
    assert all("it" in index.candidates(documents[at]) for at in expected)


MIXED = [
    [], None, NAN, -INFINITE, [1, 9], Decimal("2.5"), 3, "Z", "a", "é", {"a": 1}, {"b": 0},
    [[0]], b"z", b"aa", False, True, AT,
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "values", "up"),
    [
        ("a", MIXED, range(len(MIXED))),
        ("a", [[5, 1], 3, [], [None, 9], "x"], [2, 3, 0, 1, 4]),
        (
            "a.b",
            [{"b": 2}, [{"b": 5}, {"b": 1}], [{"b": 1}, {}], [], {"b": []}, [3]],
            [4, 2, 3, 5, 1, 0],
        ),
        ("a.1", [[9, 1], [1, 9], [5], {"1": 4}], [2, 0, 3, 1]),
    ],
)
def test_results_are_sorted_as_in_mongodb_by_the_least_element_and_by_kinds(path, values, up):
    place = read_query({"sort": [[path, 1]]}).place
    documents = [{"_id": at, "a": value} for at, value in enumerate(values)]
    assert [each["_id"] for each in sorted(documents, key=place)] == list(up)


def test_down_the_greatest_element_counts_and_equal_keys_keep_the_order_of_identities():
    place = read_query({"sort": [["a", -1]]}).place
    values = [[1, 9], 5, [9, 0], [], None, "x", 9.0, Decimal(9)]
    documents = [{"_id": at, "a": value} for at, value in enumerate(values)]
    assert [each["_id"] for each in sorted(documents, key=place)] == [5, 0, 2, 6, 7, 1, 4, 3]


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
