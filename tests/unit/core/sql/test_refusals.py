"""What is wrong with a query is told with its place."""

import pytest
from tests.sqlrelations import CATALOG

from penstock.core.expression.fault import Fault
from penstock.core.sql.planner import plan_query


def refused(text: str) -> list[tuple[str, str]]:
    found = plan_query(text, CATALOG)
    assert isinstance(found, tuple), text
    assert all(isinstance(each, Fault) for each in found)
    return [(each.code.partition(".")[2], text[each.start : each.end]) for each in found]


@pytest.mark.parametrize(
    ("text", "code", "spot"),
    [
        ("select devcie from readings", "unknown-column", "devcie"),
        ("select r.devcie from readings r", "unknown-column", "r.devcie"),
        ("select device from readigns", "unknown-relation", "readigns"),
        ("select x.* from readings", "unknown-relation", "x.*"),
        ("select device, count(*) from readings", "not-grouped", "device"),
        ("select *, count(*) from readings", "not-grouped", "*"),
        ("select device from readings where max(celsius) > 1", "aggregate", "max"),
        ("select max(min(celsius)) from readings", "aggregate", "min"),
        ("select sum(place) from readings", "type", "sum(place)"),
        ("select top(celsius, celsius) from readings", "type", "top(celsius, celsius)"),
        ("select device from readings where celsius", "type", "celsius"),
        ("select device from readings where celsius > 'x'", "type", "celsius > 'x'"),
        ("select device, celsius as device from readings", "columns", "celsius as device"),
        ("select device from readings order by 2", "position", "2"),
        ("select distinct place from readings order by celsius", "distinct", "celsius"),
        ("select device from readings limit -1", "syntax", "-"),
        ("select device from readings limit celsius", "syntax", "celsius"),
        ("select device, from readings", "syntax", "from"),
        ("select device readings", "syntax", " "),
        ("select device from", "syntax", ""),
        ("select device from readings where", "syntax", ""),
        ("select device from readings, devices", "syntax", ","),
        ("select device from (select 1)", "syntax", "("),
        ("with x as (select 1) select 1 from x", "syntax", "with"),
        ("select device from readings union select owner from devices", "syntax", "union"),
        ("select device from readings order by device where celsius > 1", "syntax", "where"),
        ("select device from readings; drop table readings", "character", ";"),
        ("select device -- all\nfrom readings", "character", "--"),
        ("delete from readings", "syntax", "delete"),
        ("", "syntax", ""),
    ],
)  # fmt: skip
def test_a_mistake_has_its_place(text: str, code: str, spot: str) -> None:
    assert refused(text)[0] == (code, spot) or (spot in ("", " ") and refused(text)[0][0] == code)


@pytest.mark.parametrize(
    ("join", "code"),
    [
        ("readings r join devices d on r.celsius > d.floor", "join"),
        ("readings r join devices d on r.device = r.place", "join"),
        ("readings r join devices r on true", "alias"),
        ("readings r join devices d on device = owner", "ambiguous"),
        ("readings r cross join devices d", "syntax"),
        ("readings r join devices d on r.device = d.device join devices e on true", "syntax"),
        ("readings r join devices d using (device)", "syntax"),
    ],
)
def test_a_join_needs_an_equality_of_two_relations(join: str, code: str) -> None:
    assert refused(f"select celsius from {join}")[0][0] == code


def test_all_mistakes_of_a_query_are_told_at_once() -> None:
    text = "select devcie, celsius + 'x' from readings where plcae = 'top' order by 9"
    assert len(refused(text)) == 4


def test_a_query_cannot_be_too_large() -> None:
    many = ", ".join(f"{number} as c{number}" for number in range(300))
    assert refused(f"select {many} from readings")[0][0] == "syntax"
    deep = "(" * 100 + "1" + ")" * 100
    assert refused(f"select {deep} from readings")[0][0] == "too-large"
    assert (
        refused(f"select device from readings where device = '{'x' * 30_000}'")[0][0] == "too-large"
    )
