"""Records are read strictly, and a mistake says where it is and what is allowed there."""

from datetime import datetime
from typing import Annotated

import pytest

from penstock import App, limits, record
from penstock.serving.http.problems import Problem
from penstock.serving.writing.parsing import MOST_COMMAS, Mistake, RecordReader, Taken, parts_of


@record()
class Inner:
    size: int


@record(key="device")
class Reading:
    device: Annotated[str, limits(min_length=1)]
    celsius: float
    at: datetime | None = None
    parts: list[Inner] = []  # noqa: RUF012 - a record type copies it


READER = RecordReader(App("a").stream("readings", Reading))


def test_a_record_becomes_its_key_and_its_bytes_on_the_log():
    given = b' {"celsius": 1, "device": "b\xc3\xb6", "at": "2026-05-01T12:00:00+02:00"} '
    assert READER.read(given) == Taken(
        "bö".encode(),
        '{"device":"bö","celsius":1.0,"at":"2026-05-01T12:00:00+02:00","parts":[]}'.encode(),
    )


@pytest.mark.parametrize(
    ("given", "code", "path", "allowed"),
    [
        (b'{"device":1,"celsius":1}', "data.wrong-type", "$.device", "device: text (min_length=1)"),
        (b'{"device":"","celsius":1}', "data.invalid-value", "$.device", "device: text (min_length=1)"),
        (b'{"device":"a"}', "data.missing-field", "$", "celsius: float"),
        (b'{"device":"a","celsius":1,"celcius":2}', "data.unknown-field", "$", "celsius: float"),
        (b'{"device":"a","celsius":1,"parts":[{"size":1},{"size":"2"}]}', "data.wrong-type", "$.parts[1].size", "size: int"),
        (b'{"device":"a","celsius":1,"parts":[{"size":1,"x":0}]}', "data.unknown-field", "$.parts[0]", "size: int"),
        (b'{"device":"a","celsius":1,', "data.not-json", "", ""),
        (b"", "data.not-json", "", ""),
        (b"7", "data.wrong-type", "$", "celsius: float"),
        (b'{"device":"\xff","celsius":1}', "data.not-json", "", ""),
        (b'{"device":' + b"[" * 5000, "data.", "", ""),
    ],
)  # fmt: skip
def test_a_mistake_says_where_it_is_and_what_is_allowed(given, code, path, allowed):
    found = READER.read(given)
    assert isinstance(found, Mistake)
    assert found.code.startswith(code)
    if path:
        assert found.path == path
    assert allowed in found.allowed


def test_a_record_that_its_stream_does_not_take_is_too_large():
    reader = RecordReader(App("a").stream("readings", Reading, max_record="1KiB"))
    found = reader.read(b'{"device":"%s","celsius":1}' % (b"a" * 2000))
    assert isinstance(found, Mistake)
    assert found.code == "data.too-large"


def test_a_list_is_split_into_what_was_sent():
    assert parts_of(b'\n[{"a": 1}, [2], "x,y" ]', most=3) == ([b'{"a": 1}', b"[2]", b'"x,y"'], True)
    assert parts_of(b"[]", most=3) == ([], True)
    assert parts_of(b'{"a":[1]}', most=3) == ([b'{"a":[1]}'], False)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"[1,2,3,4]", 413, "request.too-many"),
        (b"[" + b"1," * (MOST_COMMAS + 1) + b"1]", 413, "request.too-many"),
        (b"[1,2", 400, "data.not-json"),
        (b"[1] []", 400, "data.not-json"),
        (b"[" * 5000, 400, "data.not-json"),
    ],
)
def test_a_list_that_is_too_long_or_broken_is_refused(body, status, code):
    with pytest.raises(Problem) as raised:
        parts_of(body, most=3)
    assert (raised.value.status, raised.value.code) == (status, code)
