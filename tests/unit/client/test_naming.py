from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import App, State, record
from penstock.client.answers import Sent, offsets_text
from penstock.client.naming import freshness, key_text, read_value, state_of
from penstock.core.graph.state import StateSpec
from penstock.errors import DataError
from penstock.state import MapState

app = App("naming")


@record(key=("room", "at"))
class Seat:
    room: str
    at: datetime


@record(key="number")
class Lamp:
    number: int


seats = app.stream("seats", Seat)
lamps = app.table("lamps", Lamp)


@app.service(reads=seats)
def watch(seat: Seat, last: State[int], names: MapState[int, str]) -> None:
    del seat, last, names


def test_a_key_is_named_as_it_stands_on_the_log():
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert key_text(seats.record.schema, ("hall", noon)) == '["hall","2026-01-01T12:00:00Z"]'
    assert key_text(lamps.record.schema, 7) == "7"
    assert key_text(lamps.record.schema, "7") == "7"
    with pytest.raises(TypeError, match="is not a key of Lamp"):
        key_text(lamps.record.schema, 7.5)


def test_of_several_places_the_last_of_each_partition_is_asked_for():
    sent = [Sent("a", 0, 5), Sent("a", 1, 2), Sent("a", 0, 3), Sent("b", 0, 0)]
    assert offsets_text(sent) == "a:0:5,a:1:2,b:0:0"


def test_positions_of_another_topic_would_wait_for_nothing():
    place = Sent("seats", 0, 5)
    asked = freshness(watch, at_least=place, max_stale="2s", wait="1ms")
    assert asked == {"at_least": "seats:0:5", "max_stale": "2000ms", "wait": "1ms"}
    with pytest.raises(ValueError, match="lamps has positions of lamps, not of seats"):
        freshness(lamps, at_least=place, max_stale=None, wait=None)


def test_a_state_is_named_where_there_are_several():
    assert state_of(watch, "names").kind == "map"
    for name in (None, "nothing"):
        with pytest.raises(ValueError, match="the states of watch are last, names"):
            state_of(watch, name)


@pytest.mark.parametrize(
    ("spec", "raw", "value"),
    [
        (StateSpec("a", float), b"1", 1.0),
        (StateSpec("a", int, "list"), b"[1,2]", [1, 2]),
        (StateSpec("a", int, "map", str), b'{"x":1}', {"x": 1}),
        (StateSpec("a", str, "map", int), b'{"7":"x"}', {7: "x"}),
        (StateSpec("a", str, "map", tuple[int, int]), b'[[[1,2],"x"]]', {(1, 2): "x"}),
        (StateSpec("a", Any), b'{"x":[1]}', {"x": [1]}),
    ],
)
def test_a_value_of_a_state_is_read_by_its_annotation(spec, raw, value):
    assert read_value(spec, raw) == value


def test_a_value_of_another_type_is_refused():
    with pytest.raises(DataError, match="not of the state 'a'"):
        read_value(StateSpec("a", int), b'"x"')
