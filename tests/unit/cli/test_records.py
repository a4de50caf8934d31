import io
from datetime import UTC, datetime

import pytest

from penstock import App, record
from penstock.backbone.client.logrecord import LogRecord
from penstock.cli.log.produce import key_of_fields
from penstock.cli.records import Columns, as_json, by_type, plainly, text_of
from penstock.cli.screen.terminal import Terminal
from penstock.errors import DataError


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@record(key="word")
class Word:
    word: str
    count: int = 1


def log_record(value: bytes | None, *, key: bytes | None = b"water") -> LogRecord:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    headers = (("penstock.code", b"data.not-json"), ("bin", b"\xff"))
    return LogRecord(
        topic="words", partition=1, offset=7, timestamp_at=at, key=key, value=value, headers=headers
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"plain text", "plain text"),
        (b"\xff\xfe", "base64://4="),
        (b"[" * 100_000, "[" * 100_000),
        (None, None),
    ],
)
def test_a_value_is_json_or_text_or_base64(value, shown):
    assert plainly(log_record(value)).value == shown


def test_by_type_a_record_is_checked_and_filled():
    data = App("a").stream("words", Word)
    assert by_type(data)(log_record(b'{"word":"water"}')).value == {"word": "water", "count": 1}
    bad = by_type(data)(log_record(b'{"word":3}'))
    assert bad.value == {"word": 3}
    assert "[data.wrong-type]" in bad.problem
    assert "[data.null-key]" in by_type(data)(log_record(b'{"word":"water"}', key=None)).problem
    assert "[data.null-value]" in by_type(data)(log_record(None)).problem


def test_a_null_in_a_table_is_a_deletion_not_a_problem():
    shown = by_type(App("a").table("words", Word))(log_record(None))
    assert (shown.value, shown.problem) == (None, "")


def test_json_has_all_of_a_record():
    assert as_json(plainly(log_record(b'{"a":1}'))) == {
        "topic": "words",
        "partition": 1,
        "offset": 7,
        "at": "2026-03-01T12:00:00+00:00",
        "key": "water",
        "value": {"a": 1},
        "headers": {"penstock.code": "data.not-json", "bin": "base64:/w=="},
    }


def test_where_nobody_looks_a_record_is_a_line_with_tabs():
    out = io.StringIO()
    columns = Columns(Terminal(out=out), headers=True)
    columns.write(plainly(log_record(b'{"a": "x\\ty"}')))
    assert out.getvalue() == (
        "1\t7\t2026-03-01T12:00:00.000+00:00\twater\t"
        '{"a":"x\\ty"}\tpenstock.code=data.not-json\tbin=base64:/w==\n'
    )


def test_on_a_terminal_fields_are_columns_with_a_heading_when_they_change(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    columns = Columns(Terminal(out=screen))
    for value in (b'{"word":"water","n":1}', b'{"word":"a longer word","n":22}', b"other"):
        columns.write(plainly(log_record(value)))
    lines = [line.split() for line in screen.getvalue().splitlines()]
    assert [words[0] for words in lines] == ["partition", "1", "1", "partition", "1"]
    assert lines[0] == ["partition", "offset", "at", "key", "word", "n"]
    assert lines[2][-4:] == ["a", "longer", "word", "22"]
    assert lines[3][-1] == "value"


@pytest.mark.parametrize(
    ("value", "fields", "key"),
    [
        ({"a": "x"}, (), None),
        ({"a": "x"}, ("a",), b"x"),
        ({"a": 3}, ("a",), b"3"),
        ({"a": True, "b": "y"}, ("a", "b"), b'[true,"y"]'),
    ],
)
def test_the_key_of_a_line_is_made_of_its_fields(value, fields, key):
    assert key_of_fields(value, fields) == key


@pytest.mark.parametrize("value", [{}, [], "a", None])
def test_a_line_without_its_key_is_refused(value):
    with pytest.raises(DataError, match="it has no a, the key of the topic"):
        key_of_fields(value, ("a",))


def test_null_has_no_text():
    assert text_of(None) == ""
