from datetime import datetime
from decimal import Decimal

import pytest

from penstock import record
from penstock.backbone.client.logrecord import LogRecord
from penstock.cli.log.conditions import read_comparison, read_condition
from penstock.cli.records import Shown, plainly
from penstock.core.records.record import record_of, record_type
from penstock.errors import ConfigurationError, DefinitionError

RECORD = {
    "word": "water",
    "count": 3,
    "share": 0.5,
    "hot": True,
    "none": None,
    "at": "2026-03-01T12:00:00Z",
    "inner": {"depth": 2},
    "list": [1],
}


@pytest.mark.parametrize(
    "text",
    [
        "word=water",
        "word = water",
        "word!=fire",
        "word>fire",
        "count=3",
        "count=3.0",
        "count>2",
        "count>=3",
        "count<10",
        "count<=3",
        "count!=4",
        "share<0.6",
        "hot=true",
        "hot!=false",
        "none=null",
        "word!=null",
        "at>2026-03-01T11:00:00Z",
        "at=2026-03-01T13:00:00+01:00",
        "inner.depth=2",
        "missing!=x",
        "list=[1]",
    ],
)
def test_a_condition_holds(text):
    assert read_comparison(text).holds(RECORD)


@pytest.mark.parametrize(
    "text",
    [
        "word=fire",
        "word=null",
        "count>3",
        "count=many",
        "hot=false",
        "none!=null",
        "missing=x",
        "inner.missing=x",
        "word.inner=x",
        "hot>maybe",
        "at<2026-03-01T11:00:00Z",
    ],
)
def test_a_condition_does_not_hold(text):
    assert not read_comparison(text).holds(RECORD)


@pytest.mark.parametrize("value", [None, "text", [1, 2], 3])
def test_what_has_no_fields_meets_only_inequality(value):
    assert not read_comparison("word=water").holds(value)
    assert read_comparison("word!=water").holds(value)


@pytest.mark.parametrize("text", ["", "word", "=x", "1word=x", "a b=x", "upper(word) = 5"])
def test_a_topic_without_a_type_takes_comparisons_and_names_what_takes_more(text):
    with pytest.raises(ConfigurationError, match="is not FIELD=VALUE") as refused:
        read_condition(text, None)
    assert "--app" in refused.value.hint


@record(key="word")
class Word:
    word: str
    count: int = 1
    hot: bool = False
    note: str | None = None
    price: Decimal = Decimal(0)
    at: datetime | None = None
    tags: dict[str, str] | None = None


WORD = b"""{"word": "water", "count": 3, "hot": true, "price": "2.50",
 "at": "2026-03-01T12:00:00Z", "tags": {"colour": "blue"}}"""


def shown(value: bytes | None) -> Shown:
    return plainly(
        LogRecord(topic="words", partition=0, offset=0, timestamp_at=None, key=None, value=value)
    )


STORED = record_of(record_type(Word).schema)
"""The type as the schema beside the topic gives it, without the class of the application."""


@pytest.mark.parametrize("of", [record_type(Word), STORED], ids=["declared", "stored"])
@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("count > 2 and word like 'wa%'", True),
        ("count between 4 and 9 or not hot", False),
        ("upper(word) = 'WATER'", True),
        ("price * 2 = 5", True),
        ("tags['colour'] = 'blue'", True),
        ("at > timestamp '2026-03-01 11:00:00'", True),
        ("note is null", True),
        ("hot", True),
        ("word = note", False),
        # The shorter form, as for topics without a type.
        ("count>=3", True),
        ("word=water", True),
        ("word!=the", True),
        ("hot=false", False),
        ("at>2026-03-01T11:00:00Z", True),
        ("at<2026-03-01", False),
        ("tags.colour=blue", True),
        ("note=null", False),  # it is absent in the JSON
        ("word!=null", True),
    ],
)
def test_a_topic_with_a_type_takes_expressions_and_the_shorter_form(of, text, holds):
    assert read_condition(text, of)(shown(WORD)) is holds


def test_a_null_is_asked_for_in_both_forms():
    value = shown(b'{"word": "a", "note": null}')
    assert read_condition("note=null", STORED)(value)
    assert read_condition("note is null", STORED)(value)


@pytest.mark.parametrize("value", [None, b"", b"[]", b'{"word": 1}', b"\xff", b'{"count": 3}'])
def test_an_expression_is_true_of_no_record_that_is_not_of_the_type(value):
    assert not read_condition("count >= 0 or count is null", STORED)(shown(value))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cuont > 2", "did you mean 'count'?"),
        ("cuont=2", "did you mean 'count'?"),
        ("count=many", "has no field 'many'"),
        ("count > 2 and wrod = 'x'", "did you mean 'word'?"),
        ("word = two words", "in the expression"),
        ("hot=perhaps", "has no field 'perhaps'"),
        ("count >", "at 8 in the expression"),
        ("count + 1", "not a condition"),
        ("", "expression"),
    ],
)
def test_what_is_neither_is_refused_with_the_mistake_of_the_expression(text, why):
    with pytest.raises(DefinitionError) as refused:
        read_condition(text, STORED)
    assert why in str(refused.value)
