"""Which keys a query needs."""

import pytest
from tests.sqlrelations import CATALOG

from penstock import record
from penstock.core.records.record import record_type
from penstock.core.sql.access import EVERYTHING, Access
from penstock.core.sql.planner import plan_query


@record(key=("site", "number"))
class Slot:
    site: str
    number: int
    load: float


def access(condition: str, *, of: str = "readings") -> Access:
    catalog = {**CATALOG, "slots": record_type(Slot).schema}
    plan = plan_query(f"select 1 as one from {of} where {condition}", catalog)
    assert not isinstance(plan, tuple), plan
    return plan.readings[0].access


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("device = 'roof'", (b"roof",)),
        ("'roof' = device and celsius > 3", (b"roof",)),
        ("device in ('a', 'b', 'a')", (b"a", b"b")),
        ("device = null", ()),
        ("device <=> 'roof'", (b"roof",)),
    ],
)
def test_an_equality_of_the_key_names_its_keys(condition: str, keys: tuple[bytes, ...]) -> None:
    assert access(condition) == Access(keys=keys)


def test_a_key_of_several_fields_is_named_by_all_of_them() -> None:
    assert access("site = 'x' and number in (1, 2)", of="slots").keys == (b'["x",1]', b'["x",2]')
    assert access("site = 'x'", of="slots") == EVERYTHING


@pytest.mark.parametrize(
    ("condition", "start", "end"),
    [
        ("device >= 'a' and device < 'c'", b"a", b"c"),
        ("device between 'a' and 'c'", b"a", b"c\x00"),
        ("startswith(device, 'ab')", b"ab", b"ac"),
        ("device > 'a' and device > 'b'", b"b", None),
    ],
)
def test_bounds_of_a_text_are_a_range(condition: str, start: bytes, end: bytes | None) -> None:
    assert access(condition) == Access(start=start, end=end)


@pytest.mark.parametrize(
    "condition",
    ["device = 'a' or celsius > 3", "upper(device) = 'A'", "not device = 'a'", "celsius = 3"],
)
def test_other_conditions_need_everything(condition: str) -> None:
    assert access(condition) == EVERYTHING


def test_too_many_keys_are_not_asked_for_one_by_one() -> None:
    listed = ", ".join(f"'{number}'" for number in range(101))
    assert access(f"device in ({listed})") == EVERYTHING


def test_conditions_on_a_joined_relation_name_its_keys_too() -> None:
    text = "select owner from readings r {} devices d on r.device = d.device where r.device = 'x' and d.device = 'x'"
    for join, expected in (("join", (b"x",)), ("left join", (b"x",))):
        plan = plan_query(text.format(join), CATALOG)
        assert not isinstance(plan, tuple)
        assert plan.readings[0].access.keys == (b"x",)
        assert plan.readings[1].access.keys == expected


@pytest.mark.parametrize(
    ("query", "left", "right"),
    [
        ("r.device = d.device where r.device = 'x'", Access(keys=(b"x",)), Access(keys=(b"x",))),
        ("d.device = r.device where d.device = 'x'", Access(keys=(b"x",)), Access(keys=(b"x",))),
        (
            "r.device = d.device where r.device > 'x' and d.device < 'y'",
            Access(start=b"x", end=b"y"),
            Access(start=b"x", end=b"y"),
        ),
        ("r.device = d.device where r.celsius > 3", EVERYTHING, EVERYTHING),
        ("r.place = d.device where r.place = 'x'", EVERYTHING, Access(keys=(b"x",))),
        ("r.device = d.owner where r.device = 'x'", Access(keys=(b"x",)), EVERYTHING),
    ],
)
def test_what_is_said_of_one_side_of_a_join_is_said_of_the_other(
    query: str, left: Access, right: Access
) -> None:
    plan = plan_query(f"select owner from readings r join devices d on {query}", CATALOG)
    assert not isinstance(plan, tuple)
    assert [each.access for each in plan.readings] == [left, right]


def test_a_left_join_says_of_its_second_relation_what_the_first_one_must_be() -> None:
    text = "select owner from readings r left join devices d on r.device = d.device where"
    plan = plan_query(f"{text} r.device = 'x'", CATALOG)
    assert not isinstance(plan, tuple)
    assert [each.access.keys for each in plan.readings] == [(b"x",), (b"x",)]
    plan = plan_query(f"{text} d.device = 'x'", CATALOG)
    assert not isinstance(plan, tuple)
    assert plan.readings[0].access == EVERYTHING
