"""Filters as text and in Python say the same as filters as documents."""

from itertools import product

import pytest

from penstock.core.expression import compile_predicate, parse
from penstock.core.grid.documents import document_reader
from penstock.core.live.query import read_query
from penstock.core.live.written.builder import field
from penstock.core.live.written.text import filter_of_text
from penstock.core.records.record import record, record_type
from penstock.core.records.schema import Scalar
from penstock.errors import DataError


@record(key="id")
class Task:
    id: int
    owner: str | None
    rank: int | None
    done: bool | None


ROWS = [
    Task(number, owner, rank, done)
    for number, (owner, rank, done) in enumerate(
        product((None, "ann", "bob", "a.b%"), (None, 0, 3, 7), (None, True, False))
    )
]
TEXTS = [
    "owner = 'ann'",
    "not owner = 'ann'",
    "owner <> 'ann' and not done",
    "rank > 3 or owner = 'bob'",
    "not (rank > 3 or owner = 'bob')",
    "3 <= rank and rank < 7",
    "rank between 1 and 3",
    "rank not between 1 and 3",
    "owner in ('ann', 'bob')",
    "owner not in ('ann', 'bob')",
    "owner is null",
    "not owner is null and rank is not null",
    "done",
    "not done",
    "done is true or rank = 0",
    "owner like 'a%'",
    "owner not like '_nn'",
    "owner like 'a.b\\%'",
    "owner rlike '^b'",
    "owner = null",
    "not (owner = null)",
    "owner <=> null",
    "1 = 1 and rank = 3",
    "null or rank = 3",
    "not (done and rank = 3)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_selects_what_the_expression_selects(text):
    schema = record_type(Task).schema
    holds = compile_predicate(parse(text, schema, expect=Scalar("bool")))
    read = document_reader(record_type(Task))
    query = read_query({"filter": text})
    found = [row.id for row in ROWS if query.matches(read(row))]
    assert found == [row.id for row in ROWS if holds(row)]


@pytest.mark.parametrize(
    ("text", "claims", "expected"),
    [
        ("owner = claims.sub", {"sub": "ann"}, {"owner": {"$eq": "ann"}}),
        ("owner = claims.sub", {}, {"$nor": [{}]}),
        ("not owner = claims.sub", {}, {"$nor": [{}]}),
        ("owner = claims.sub", {"sub": {"$ne": 1}}, {"$nor": [{}]}),
        ("owner = claims.sub", {"sub": ["ann"]}, {"$nor": [{}]}),
        ("claims.admin", {"admin": True}, {}),
        ("claims.admin", {}, {"$nor": [{}]}),
        ("claims.level > 3", {"level": 4}, {}),
        ("claims.level > 3", {"level": "9"}, {"$nor": [{}]}),
        ("claims.at.home = 'x'", {"at": {"home": "x"}}, {}),
        ("array_contains(claims.lists, list)", {"lists": ["a"]}, {"list": {"$in": ["a"]}}),
        ("array_contains(claims.lists, list)", {"lists": "a"}, {"$nor": [{}]}),
        ("array_contains(shared, claims.sub)", {"sub": "a"}, {"shared": {"$eq": "a"}}),
    ],
)
def test_rules_use_claims_and_what_is_missing_allows_nothing(text, claims, expected):
    found = filter_of_text(text, claims=claims)
    assert found == expected
    read_query({"filter": found})


@pytest.mark.parametrize(
    "text", ["", "owner =", "rank + 1 = 2", "owner = rank", "upper(owner) = 'A'", "3", "a" * 20_000]
)
def test_a_text_that_is_no_filter_is_refused(text):
    with pytest.raises(DataError, match="filter"):
        read_query({"filter": text})


def test_a_filter_built_in_python_is_a_document():
    built = ((field("rank") > 3) & ~field("owner").equals("ann")) | field("done").equals(value=True)
    query = read_query({"filter": built})
    assert query.given["filter"] == built.document
    assert query.matches({"rank": 4, "owner": "bob"})
    assert not query.matches({"rank": 4, "owner": "ann"})
    with pytest.raises(TypeError, match="&"):
        assert field("rank") > 3 and field("rank") < 5  # noqa: PT018
