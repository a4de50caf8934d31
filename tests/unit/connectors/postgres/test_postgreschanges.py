"""Options of a source of changes, and what becomes of a change where there is no parse."""

import pytest

from penstock import App, record
from penstock.connectors import Captured, Item, postgres_changes
from penstock.connectors.source.intake import Intake, LogEntry
from penstock.core.rules.check import check
from penstock.errors import DataError


@record(key="id")
class Customer:
    id: int
    name: str
    email: str | None = None


def intake(parse=None) -> Intake:
    app = App("shop")
    made = postgres_changes("t", slot="t", address="postgresql://db/x")
    return Intake(app.source("s", made, into=app.table("customers", Customer), parse=parse))


@pytest.mark.parametrize(
    "options",
    [
        {"tables": ()},
        {"tables": ("a", "b.c.d")},
        {"tables": 3},
        {"slot": "Shop"},
        {"slot": "s'; DROP"},
        {"publication": ""},
        {"snapshot": "yes"},
        {"address": "postgresql://u:sesame@db/x"},
        {"password": "sesame"},
    ],
)
def test_each_wrong_option_is_a_problem_of_the_application(options):
    given = {"tables": "t", "slot": "t", "address": "postgresql://db/x", **options}
    app = App("shop")
    app.source("s", postgres_changes(**given), into=app.table("customers", Customer))
    found = check(app.graph)
    assert [problem.code for problem in found] == ["source.option"]
    assert "sesame" not in str(found)


def test_rows_become_records_and_deletions_delete():
    row = {"id": 7, "name": "Ann", "extra": object()}
    entry = intake().take(Item(Captured("insert", "public.t", row)))
    assert entry == LogEntry(b"7", b'{"id":7,"name":"Ann","email":null}')
    gone = intake().take(Item(Captured("delete", "public.t", None, {"id": 7})))
    assert gone == LogEntry(b"7", None)


@pytest.mark.parametrize(
    "change",
    [
        Captured("insert", "t", {"id": 7}),
        Captured("insert", "t", {"id": 7, "name": None}),
        Captured("update", "t", {"id": "7", "name": "Ann"}),
        Captured("delete", "t", None, {"id": "7"}),
        Captured("delete", "t", None, {}),
        Captured("truncate", "t", None),
    ],
)
def test_a_change_that_gives_no_row_is_told_why(change):
    with pytest.raises(DataError):
        intake().take(Item(change))


def test_a_parse_may_delete_a_row_of_its_table_and_of_no_other():
    from penstock import delete

    app = App("shop")
    mine, other = app.table("mine", Customer), app.table("other", Customer)
    made = postgres_changes("t", slot="t", address="postgresql://db/x")
    for name, table in (("one", mine), ("two", other)):
        source = app.source(name, made, into=mine, parse=lambda _, table=table: delete(table, 7))
        if table is mine:
            assert Intake(source).take(Item(Captured("delete", "t", None))) == LogEntry(b"7", None)
            continue
        with pytest.raises(DataError, match="deletes a row of 'other', not of 'mine'"):
            Intake(source).take(Item(Captured("delete", "t", None)))
