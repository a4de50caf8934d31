from asyncio import CancelledError
from typing import Annotated

import pytest

from penstock import App, limits, record
from penstock.connectors import text_file
from penstock.connectors.connector import Item
from penstock.connectors.lines import Line
from penstock.connectors.source.intake import Intake, LogEntry
from penstock.errors import DataError


@record(key="device")
class Reading:
    device: str
    celsius: Annotated[float, limits(ge=-273.15)]


def intake(parse=None) -> Intake:
    app = App("test")
    readings = app.stream("readings", Reading, max_record="100B")
    return Intake(app.source("in", text_file("in.txt"), into=readings, parse=parse))


def line(content: bytes) -> Line:
    return Line(content, 0, len(content) + 1, len(content))


def reading(text: str) -> Reading | None:
    if text.startswith("#"):
        return None
    device, celsius = text.split()
    return Reading(device, float(celsius))


def refused(taker: Intake, refused_line: Line) -> DataError:
    with pytest.raises(DataError) as caught:
        taker.take(refused_line)
    return caught.value


def test_parse_makes_the_record_whose_key_and_value_go_onto_the_log():
    taken = intake(reading).take(line(b"boiler 71.5"))
    assert taken == LogEntry(b"boiler", b'{"device":"boiler","celsius":71.5}')


def test_a_line_that_parse_skips_gives_nothing():
    assert intake(reading).take(line(b"# comment")) is None


def test_without_parse_a_line_is_the_records_json():
    taken = intake().take(line(b' {"celsius": 1, "device": "b", "colour": "red"} '))
    assert taken == LogEntry(b"b", b'{"device":"b","celsius":1.0}')


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"boiler", "user.raised"),
        (b"boiler hot", "user.raised"),
        (b"boiler -300", "data.invalid-value"),
        (b"boiler nan", "data.wrong-type"),
        (b"\xff\xfe 1", "data.not-utf8"),
        (b"b" * 99 + b" 1", "data.too-large"),
    ],
)
def test_a_line_that_parse_can_make_no_record_of_is_refused_with_its_reason(content, code):
    assert refused(intake(reading), line(content)).code == code


def test_what_parse_raised_is_in_the_reason():
    assert "ValueError" in refused(intake(reading), line(b"boiler hot")).message


def test_a_record_of_another_type_is_refused():
    error = refused(intake(lambda text: text), line(b"x"))
    assert error.message == "parse gave str, not Reading"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "data.not-json"),
        (b"{", "data.not-json"),
        (b'{"device": "b"}', "data.missing-field"),
        (b'{"device": 1, "celsius": 1}', "data.wrong-type"),
        (b"[" * 2000, "data.too-large"),
    ],
)
def test_a_line_that_is_not_the_records_json_is_refused_with_its_reason(content, code):
    assert refused(intake(), line(content)).code == code


def test_a_line_that_was_cut_is_refused_without_calling_parse():
    error = refused(intake(pytest.fail), Line(b"x" * 10, 0, 101, 100))
    assert (error.code, "100 bytes" in error.message) == ("data.line-too-long", True)


def test_half_a_line_is_refused_even_if_it_would_parse():
    half = Line(b"boiler 7", 0, 8, 8, complete=False)
    assert refused(intake(reading), half).code == "data.half-line"


def test_a_record_of_a_connector_goes_onto_the_log_as_it_is():
    taken = intake().take(Item(Reading("boiler", 71.5), 3))
    assert taken == LogEntry(b"boiler", b'{"device":"boiler","celsius":71.5}')


def test_what_a_connector_gives_is_handed_to_parse_as_it_is():
    taken = intake(lambda row: Reading(row["id"], row["c"])).take(Item({"id": "b", "c": 1.0}))
    assert taken == LogEntry(b"b", b'{"device":"b","celsius":1.0}')


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (Reading("boiler", -300.0), "data.invalid-value"),
        (Reading("boiler", "hot"), "data.wrong-type"),
        ({"device": "boiler"}, "data.wrong-type"),
        (None, "data.wrong-type"),
    ],
)
def test_a_record_of_a_connector_is_checked_as_strictly_as_a_line(content, code):
    assert refused(intake(), Item(content)).code == code


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError("its text raises")


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(2),
        CancelledError(),
        GeneratorExit(),
        StopIteration(),
        RecursionError(),
        SilentError(),
    ],
)
def test_whatever_parse_raises_is_the_end_of_its_line_alone(error):
    def parse(text: str) -> Reading:
        raise error

    found = refused(intake(parse), line(b"boiler 71.5"))
    assert found.code == "user.raised"
    assert found.message.startswith(f"parse raised {type(error).__name__}")
    assert "(test_intake.py:" in found.message


def test_an_interrupt_in_parse_is_one():
    def parse(text: str) -> Reading:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        intake(parse).take(line(b"boiler 71.5"))
