"""The arguments of ``penstock query``, and values as people and programs read them."""

import argparse
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from penstock.cli.log.query import _cells, _json_value, _texts
from penstock.cli.main import make_parser
from penstock.cli.moments import read_span

ROW = (
    *(None, True, 7, 0.5, "a,b", b"raw", b"\xff", Decimal("1.50"), date(2026, 3, 1)),
    *(datetime(2026, 3, 1, 12, tzinfo=UTC), [1, None], {"at": datetime(2026, 1, 1, tzinfo=UTC)}),
)


def test_the_application_may_be_left_out():
    assert make_parser().parse_args(["query", "select 1"]).app == "."
    found = make_parser().parse_args(["query", "shop.py", "select 1", "--limit", "5", "--csv"])
    assert (found.app, found.sql, found.limit, found.csv) == ("shop.py", "select 1", 5, True)
    assert found.time_limit == timedelta(minutes=10)


@pytest.mark.parametrize("words", [["--limit", "0"], ["--limit", "x"], ["--json", "--csv"]])
def test_what_makes_no_sense_is_wrong_usage(words, capsys):
    with pytest.raises(SystemExit) as caught:
        make_parser().parse_args(["query", "select 1", *words])
    assert caught.value.code == 2
    assert "hint: penstock query --help" in capsys.readouterr().err


def test_a_length_of_time_is_read_or_said_to_be_none():
    assert read_span("90s") == timedelta(seconds=90)
    with pytest.raises(argparse.ArgumentTypeError, match="soon"):
        read_span("soon")


def test_values_are_written_as_text():
    assert _texts(ROW) == [
        *("", "true", "7", "0.5", "a,b", "raw", "base64:/w==", "1.50", "2026-03-01"),
        *("2026-03-01T12:00:00Z", "[1,null]", '{"at":"2026-01-01T00:00:00Z"}'),
    ]
    assert _cells(ROW[:4]) == ["", True, 7, 0.5]


def test_values_are_written_as_json():
    assert _json_value({"at": [ROW[9]], "raw": b"x"}) == {
        "at": ["2026-03-01T12:00:00Z"],
        "raw": "x",
    }
