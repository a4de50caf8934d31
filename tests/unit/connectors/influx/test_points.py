"""Lines of Influx line protocol, read back by the rules that its documentation states."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lineprotocol import read

from penstock.connectors.influx.points import Points, writable_name
from penstock.core.instants import micros
from penstock.errors import DataError

AT = datetime(2026, 11, 20, 1, 2, 3, 456789, tzinfo=UTC)
NANOSECONDS = 1_795_136_523_456_789_000


@dataclass
class Reading:
    device: Any = "boiler"
    value: Any = 1.5
    more: Any = None
    at: Any = AT


def line(
    record: Reading, measurement: str = "readings", tags: tuple[str, ...] = ("device",)
) -> str:
    fields = tuple(each for each in ("device", "value", "more") if each not in tags)
    points = Points(
        measurement=measurement, tags=tags, fields=fields, time=lambda given: micros(given.at)
    )
    return points.line(record).decode()


def test_a_record_is_a_line_with_its_tags_fields_and_nanoseconds():
    assert line(Reading()) == f"readings,device=boiler value=1.5 {NANOSECONDS}\n"
    assert line(Reading(value=7), tags=()) == f'readings device="boiler",value=7i {NANOSECONDS}\n'


WRITTEN = [
    (True, "true"),
    (False, "false"),
    (-(2**63), "-9223372036854775808i"),
    (1e300, "1e+300"),
    (-0.0, "-0.0"),
    (5e-324, "5e-324"),
    (Decimal("12.50"), "12.5"),
    (Decimal("1e-400"), "0.0"),
    ("", '""'),
    ('say "no"\\', r'"say \"no\"\\"'),
    ("a,b=c d", '"a,b=c d"'),
    (date(2026, 1, 2), '"2026-01-02"'),
    (AT, '"2026-11-20T01:02:03.456789Z"'),
    (b"\x00\xff", '"AP8="'),
    (["a", {"b": 'c"\n'}], r'"[\"a\",{\"b\":\"c\\\"\\n\"}]"'),
]


@pytest.mark.parametrize(("value", "written"), WRITTEN)
def test_each_type_has_one_way_to_be_written(value, written):
    assert line(Reading(value=value)) == f"readings,device=boiler value={written} {NANOSECONDS}\n"


def test_what_is_null_is_left_out_and_an_empty_tag_too():
    assert line(Reading(device=None)) == f"readings value=1.5 {NANOSECONDS}\n"
    assert line(Reading(device="", more=1)) == f"readings value=1.5,more=1i {NANOSECONDS}\n"


REFUSED = [
    (Reading(value=float("nan")), "value is nan"),
    (Reading(value=float("inf")), "value is inf"),
    (Reading(value=Decimal("-Infinity")), "value is -Infinity"),
    (Reading(value=Decimal("sNaN")), "value is sNaN"),
    (Reading(value=Decimal("1e400")), "larger than a float"),
    (Reading(value=2**63), "more than 64 bits"),
    (Reading(value=-(2**63) - 1), "more than 64 bits"),
    (Reading(value="one\ntwo"), "the end of a line"),
    (Reading(value='x"\nreadings,device=other value=1 1'), "the end of a line"),
    (Reading(value="one\rtwo"), "the end of a line"),
    (Reading(value="\ud800"), "no Unicode"),
    (Reading(value=None), "no field has a value"),
    (Reading(device="a\nreadings value=2 2"), "tag device"),
    (Reading(device="C:\\x"), "tag device"),
    (Reading(device="end\\"), "tag device"),
    (Reading(device="\x00"), "tag device"),
    (Reading(device="\t"), "tag device"),
    (Reading(device=float("inf")), "device is inf"),
    (Reading(at=datetime(2262, 4, 12, tzinfo=UTC)), "1677 to 2262"),
    (Reading(at=datetime(1677, 9, 21, tzinfo=UTC)), "1677 to 2262"),
]


@pytest.mark.parametrize(("record", "words"), REFUSED)
def test_what_the_protocol_cannot_say_is_refused_in_words(record, words):
    with pytest.raises(DataError, match="no line protocol") as raised:
        line(record)
    assert words in raised.value.message


def test_text_of_any_length_is_one_line():
    text = '\\",= ' * 4_000
    assert read(line(Reading(value=text)))[2] == {"value": text}


PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\\"), min_size=1)
VALUES = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"))
    | st.text('\\", =', max_size=6)
)


@given(PLAIN | st.text(',= "#', min_size=1), PLAIN.filter(writable_name), VALUES, VALUES)
def test_a_reader_of_the_protocol_has_what_was_written(device, name, value, more):
    at = AT + timedelta(microseconds=len(device))
    found = read(line(Reading(device, value, more, at), measurement=name))
    assert found == (name, {"device": device}, {"value": value, "more": more}, micros(at) * 1000)
    assert [type(each) for each in found[2].values()] == [type(value), type(more)]


@given(
    st.text() | st.text('\\",= \n\r#', max_size=8), st.text() | st.text('\\",= \n\r', max_size=8)
)
def test_whatever_is_in_a_record_is_one_line_or_refused(device, value):
    try:
        found = line(Reading(device, value))
    except DataError:
        return
    name, tags, values, at = read(found)
    assert (name, at) == ("readings", NANOSECONDS)
    assert (tags.get("device", ""), values) == (device, {"value": value})


@pytest.mark.parametrize("name", ["", "#a", "_a", "a\nb", "a\\b", "a\x00", "a\u2028b"])
def test_some_names_are_none_of_a_measurement(name):
    assert not writable_name(name)
