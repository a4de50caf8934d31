"""States and windows as rows of relations."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
import pytest

from penstock import App, EventTime, record
from penstock.aggregates import count, maximum
from penstock.core.graph.state import StateSpec
from penstock.core.panes.packing import encode
from penstock.core.records.record import record_type
from penstock.core.wiring.panes import rollup_of
from penstock.errors import DataError
from penstock.serving.relations.catalog import StateRelation, relations_of_app
from penstock.serving.relations.staterows import StateShape
from penstock.serving.relations.windowrows import WindowShape
from penstock.windows import fixed, sessions


@record(key=("room", "value"))
class Place:
    room: str
    value: int


@record(key="room", time="at")
class Seen:
    room: str
    at: datetime
    weight: Decimal


@dataclass
class Fields:
    level: int
    note: str | None
    odd: set[int]


def shape(spec):
    return StateShape("watch.it", record_type(Place).schema, spec)


def rows(spec, value):
    return [msgspec.structs.asdict(row) for row in shape(spec).rows(b'["hall",7]', value)]


def test_a_column_that_the_key_has_already_is_called_otherwise():
    assert rows(StateSpec("it", float), b"1.5") == [
        {"room": "hall", "value": 7, "state_value": 1.5}
    ]


def test_a_map_has_a_row_for_each_entry_whatever_its_names_are():
    whole = StateSpec("it", str, kind="map", key=int)
    assert [(row["entry"], row["state_value"]) for row in rows(whole, b'{"3":"a","5":"b"}')] == [
        (3, "a"),
        (5, "b"),
    ]
    assert shape(whole).schema.key == ("room", "value", "entry")
    pairs = StateSpec("it", str, kind="map", key=tuple[int, int])
    assert [row["entry"] for row in rows(pairs, b'[[[1,2],"a"]]')] == ["[1,2]"]


def test_a_class_shows_the_fields_that_a_record_could_have():
    found = shape(StateSpec("it", Fields)).schema.field("state_value")
    assert [each.name for each in found.type.schema.fields] == ["level", "note"]
    (row,) = rows(StateSpec("it", Fields), b'{"level":3,"note":null,"odd":[1]}')
    assert row["state_value"] == Fields(3, None, {1})


def test_what_is_not_of_the_state_is_a_data_error():
    for key, value in ((b"hall", b"1.5"), (b'["hall",7]', b'"warm"'), (b'["hall",7]', b"\xff")):
        with pytest.raises(DataError, match="not a row"):
            list(shape(StateSpec("it", float)).rows(key, value))


@pytest.fixture
def graph():
    app = App("shop")
    seen = app.stream("seen", Seen, event_time=EventTime(disorder="1s"))
    minutes = seen.window(fixed("1m"), by="room").aggregate(n=count(), most=maximum("weight"))
    app.table("minutes", minutes, on="services")
    visits = seen.where("weight > 0").window(sessions(gap="1m"), by="room").aggregate(n=count())
    app.table("visits", visits, on="services")
    app.table("sparks", minutes, on="spark")
    return app.graph


def test_windows_on_services_are_relations_beside_their_tables(graph):
    found = relations_of_app(graph, graph.data[1:], [])
    assert list(found) == ["minutes.windows", "visits.windows", "minutes", "visits", "sparks"]
    minutes, visits = found["minutes.windows"], found["visits.windows"]
    assert isinstance(minutes, StateRelation)
    assert isinstance(visits, StateRelation)
    assert (minutes.right, minutes.topics) == ("minutes", ("seen",))
    assert minutes.schema.key == ("room", "window_start")
    assert [minutes.shape.routed, visits.shape.routed] == [True, False]


def test_a_window_is_a_row_with_its_results(graph):
    found = WindowShape("minutes.windows", rollup_of(graph.part("minutes.windows")))
    key = found.place(b"hall")
    assert key == encode(["hall"])
    start, end = 1767268800_000000, 1767268860_000000
    value = msgspec.json.encode([(start, end, [2, Decimal("123456789012.5")], False)])
    (row,) = found.rows(key, value)
    assert msgspec.structs.asdict(row) == {
        "room": "hall",
        "window_start": datetime(2026, 1, 1, 12, tzinfo=UTC),
        "window_end": datetime(2026, 1, 1, 12, 1, tzinfo=UTC),
        "n": 2,
        "most": Decimal("123456789012.5"),
        "window_closed": False,
    }
    with pytest.raises(DataError, match="not a window"):
        found.rows(key, b"[[1,2]]")
