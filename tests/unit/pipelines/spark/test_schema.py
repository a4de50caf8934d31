from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from penstock import record
from penstock.core.records.record import record_type
from penstock.pipelines.gate.fromjson import is_plain
from penstock.pipelines.spark.schema import frame_type, holds_milliseconds


@record(key="name", time="at")
class Event:
    name: str
    at: int
    kind: Literal["a", "b"]
    seen: datetime
    day: date | None
    blob: bytes
    samples: list[list[float]]


@record(key="name")
class Order:
    name: str
    price: Decimal
    event: Event
    counts: dict[str, int]


EVENT = record_type(Event).schema
ORDER = record_type(Order).schema


def test_an_event_time_is_a_timestamp_however_the_record_holds_it():
    assert frame_type(EVENT).simpleString() == (
        "struct<name:string,at:timestamp,kind:string,seen:timestamp,day:date,blob:binary,"
        "samples:array<array<double>>>"
    )
    assert holds_milliseconds(EVENT, "at")
    assert not holds_milliseconds(EVENT, "seen")


def test_inside_another_record_milliseconds_stay_a_number():
    assert frame_type(ORDER)["event"].dataType["at"].dataType.simpleString() == "bigint"
    assert frame_type(ORDER)["price"].dataType.simpleString() == "decimal(38,18)"
    assert frame_type(ORDER)["counts"].dataType.simpleString() == "map<string,bigint>"


def test_only_what_may_be_null_is_nullable():
    assert [field.name for field in frame_type(EVENT) if field.nullable] == ["day"]


def test_scalars_and_lists_of_numbers_are_read_the_fast_way():
    assert is_plain(EVENT)
    assert not is_plain(ORDER)
