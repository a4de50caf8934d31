"""What queries answer."""

import pytest
from tests.sqlrelations import CATALOG, ROWS, ask

from penstock.core.sql.budget import Budget, QueryError
from penstock.core.sql.execute import Executor
from penstock.core.sql.planner import plan_query


def test_a_query_selects_expressions_under_their_aliases() -> None:
    found = ask("select device, celsius * 2 as double from readings where place = 'cellar'")
    assert found == [
        {"device": "boiler", "double": 120.0},
        {"device": "cellar", "double": 24.0},
    ]


def test_a_column_without_an_alias_is_called_as_it_is_written() -> None:
    assert list(ask("select r.device, celsius + 1, max(floor) over_it from readings r join devices d"
                    " on r.device = d.device group by r.device, celsius + 1")[0]) == [
        "device", "celsius + 1", "over_it"
    ]  # fmt: skip


def test_a_star_is_every_column_of_a_relation() -> None:
    assert list(ask("select * from devices")[0]) == ["device", "owner", "floor"]
    joined = "select d.*, r.celsius from readings r join devices d on d.device = r.device"
    assert list(ask(joined)[0]) == ["device", "owner", "floor", "celsius"]


def test_groups_have_their_aggregates_and_conditions() -> None:
    text = (
        "select place, count(*) as readings, avg(celsius) as mean from readings"
        " group by place having count(*) > 1 or place is null order by place nulls last"
    )
    assert ask(text) == [
        {"place": "cellar", "readings": 2, "mean": 36.0},
        {"place": None, "readings": 1, "mean": 21.5},
    ]


def test_aggregates_over_no_rows_are_one_row_and_groups_are_none() -> None:
    nothing = "from readings where device = 'nobody'"
    assert ask(f"select count(*) as n, sum(celsius) as s {nothing}") == [{"n": 0, "s": None}]
    assert ask(f"select place, count(*) as n {nothing} group by place") == []
    assert ask(f"select count(*) as n {nothing} having count(*) > 0") == []


def test_all_aggregates_of_queries_give_what_they_say() -> None:
    text = (
        "select count(place) as c, count(distinct place) as d, min(device) as least,"
        " max(celsius) as most, approx_count_distinct(device) as about,"
        " collect_list(place) as places, top(celsius, 2) as hottest,"
        " round(approx_percentile(celsius, 1.0)) as last from readings"
    )
    assert ask(text) == [
        {
            "c": 3,
            "d": 2,
            "least": "attic",
            "most": 60.0,
            "about": 4,
            "places": ["cellar", "cellar", "top"],
            "hottest": [60.0, 31.5],
            "last": 60.0,
        }
    ]


def test_a_left_join_keeps_rows_without_a_partner() -> None:
    text = (
        "select r.device, d.owner, d.floor + 1 as above from readings r"
        " left join devices d on r.device = d.device and d.floor is not null order by r.device"
    )
    assert [tuple(row.values()) for row in ask(text)] == [
        ("attic", "ann", 4),
        ("boiler", None, None),
        ("cellar", None, None),
        ("desk", None, None),
    ]
    missing = "select r.device from readings r left join devices d on r.device = d.device where d.owner is null"
    assert [row["device"] for row in ask(missing)] == ["cellar", "desk"]


def test_a_join_takes_either_side_of_an_equality_first() -> None:
    for condition in ("d.device = r.device", "r.device = d.device"):
        text = f"select owner from readings r join devices d on {condition} and celsius > 40"
        assert ask(text) == [{"owner": "bob"}]


def test_null_is_ordered_as_in_spark_unless_the_query_says() -> None:
    def places(order: str) -> list[object]:
        return [
            row["place"] for row in ask(f"select distinct place from readings order by {order}")
        ]

    assert places("place") == [None, "cellar", "top"]
    assert places("place desc") == ["top", "cellar", None]
    assert places("place nulls last") == ["cellar", "top", None]
    assert places("1 desc nulls first") == [None, "top", "cellar"]


def test_limit_and_offset_cut_the_ordered_answer() -> None:
    text = "select device from readings order by celsius desc limit 2 offset 1"
    assert [row["device"] for row in ask(text)] == ["attic", "desk"]
    assert ask("select device from readings limit 0") == []


def test_an_alias_is_known_in_group_by_having_and_order_by() -> None:
    text = (
        "select upper(place) as p, sum(celsius) as heat from readings where place is not null"
        " group by p having heat > 40 order by heat"
    )
    assert ask(text) == [{"p": "CELLAR", "heat": 72.0}]


def test_a_query_that_would_hold_too_much_ends() -> None:
    for text in (
        "select device, count(*) as n from readings group by device",
        "select * from readings order by celsius",
        "select distinct device from readings",
        "select r.device from readings r join devices d on r.device = d.device",
        "select collect_list(device) as all from readings",
    ):
        with pytest.raises(QueryError, match="would hold more than 100 bytes") as raised:
            ask(text, size=100)
        assert raised.value.code == "query.memory"
    assert len(ask("select * from readings", size=100)) == 4, "rows that flow through cost nothing"


def test_time_that_is_over_ends_a_query() -> None:
    plan = plan_query("select count(*) as n from readings", CATALOG)
    assert not isinstance(plan, tuple)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise QueryError("over", code="query.time")

    rows = ROWS["readings"] * 1000
    with pytest.raises(QueryError, match="over"):
        list(Executor(plan).run([rows], Budget(10**9, name="x", look=look)))


def test_what_tells_rows_of_an_answer_apart_is_part_of_its_plan() -> None:
    for text, names in (
        ("select celsius, device from readings", {"device"}),
        ("select celsius from readings", set()),
        ("select place as p, count(*) as n from readings group by place", {"p"}),
        ("select count(*) as n from readings group by place", set()),
        ("select distinct place, celsius from readings", {"place", "celsius"}),
    ):
        plan = plan_query(text, CATALOG)
        assert not isinstance(plan, tuple)
        assert set(plan.named) == names, text
