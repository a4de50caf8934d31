from argparse import ArgumentTypeError

import pytest

from penstock.cli.log.conditions import read_condition

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
    assert read_condition(text).holds(RECORD)


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
    assert not read_condition(text).holds(RECORD)


@pytest.mark.parametrize("value", [None, "text", [1, 2], 3])
def test_what_has_no_fields_meets_only_inequality(value):
    assert not read_condition("word=water").holds(value)
    assert read_condition("word!=water").holds(value)


@pytest.mark.parametrize("text", ["", "word", "=x", "1word=x", "a b=x"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is not FIELD=VALUE"):
        read_condition(text)
