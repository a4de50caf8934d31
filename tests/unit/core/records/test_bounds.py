"""Limits and defaults that no value meets are problems of the type, not of the part that starts."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal

import pytest

from penstock import limits, record
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_type

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@record()
class Point:
    x: int


def type_of(hint, **default):
    fields = {"__annotations__": {"name": str, "field": hint}, **default}
    return record_type(record(key="name")(type("Thing", (), fields)))


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        (Annotated[Decimal, limits(ge=0)], "ge is for int and float; the field is decimal"),
        (Annotated[str, limits(lt=3)], "lt is for int and float; the field is text"),
        (Annotated[bool, limits(le=1)], "le is for int and float; the field is bool"),
        (Annotated[list[int], limits(ge=1)], "ge is for int and float; the field is list of int"),
        (Annotated[int, limits(ge=0.5)], "ge=0.5 is no such number; the field is int"),
        (Annotated[int, limits(ge=2**70)], f"ge={2**70} is no such number; the field is int"),
        (Annotated[float, limits(gt=float("nan"))], "gt=nan is no such number"),
        (Annotated[float, limits(ge="1")], "ge='1' is no such number; the field is float"),
        (Annotated[int, limits(min_length=1)], "min_length is for str, bytes, lists and dicts"),
        (Annotated[str, limits(max_length=-1)], "max_length=-1 is no length; the field is text"),
        (Annotated[Literal["a"], limits(max_length=3)], "max_length is for str"),
        (Annotated[int, limits(pattern="1")], "a pattern is for texts; the field is int"),
        (Annotated[int, limits(ge=5, le=1)], "no value has ge=5 and le=1"),
        (Annotated[float, limits(gt=1, lt=1)], "no value has gt=1 and lt=1"),
        (Annotated[str, limits(min_length=2, max_length=1)], "no value has min_length=2"),
        (Annotated[int, limits(ge=1, gt=1)], "it has both ge and gt"),
        (Annotated[Decimal | None, limits(ge=0)], "ge is for int and float"),
    ],
)
def test_limits_that_a_type_cannot_have_are_told(hint, told):
    [problem] = type_of(hint).problems
    assert problem.code == "record.limits"
    assert problem.message.startswith(f"Thing.field: {told}")


@pytest.mark.parametrize(
    ("hint", "default", "told"),
    [
        (int, "1", "the default '1': Expected `int`, got `str`"),
        (Annotated[int, limits(ge=1)], 0, "the default 0: Expected `int` >= 1"),
        (Literal["a", "b"], "c", "the default 'c': Invalid enum value 'c'"),
        (datetime, NOON.replace(tzinfo=None), "the default '2026-01-01T12:00:00'"),
        (list[int], [1], "the default [1]: a list or dict that is a default must be empty"),
        (Annotated[str, limits(pattern="^a")], "b", "the default 'b': it does not match '^a'"),
    ],
)
def test_a_default_that_no_record_may_hold_is_told(hint, default, told):
    [problem] = type_of(hint, field=default).problems
    assert problem.code == "record.default"
    assert problem.message.startswith(f"Thing.field: {told}")


@pytest.mark.parametrize(
    ("hint", "default"),
    [
        (Annotated[int, limits(gt=-1, lt=2**63 - 1)], 0),
        (Annotated[float, limits(ge=0, lt=1.5)], 1.0),
        (Annotated[str, limits(min_length=1, max_length=1)], "a"),
        (Annotated[dict[str, int], limits(max_length=1)], {}),
        (Annotated[bytes, limits(max_length=2)], b"ab"),
        (Annotated[str, limits(pattern="^a")] | None, None),
        (datetime, NOON),
        (Point, Point(x=1)),
        (Decimal, Decimal("1.50")),
    ],
)
def test_what_passes_can_be_read_and_written(hint, default):
    found = type_of(hint, field=default)
    assert found.problems == ()
    codec = JsonCodec(found)
    thing = found.cls(name="a")
    assert codec.decode(codec.encode_valid(thing)) == thing
