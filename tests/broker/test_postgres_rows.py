"""Rows that are added to a real table: none passed over, however late it commits."""

import threading
from uuid import uuid4

import pytest

from penstock import App, record
from penstock.connectors import postgres_rows
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError
from penstock.testing import try_source


@pytest.fixture
def secret(postgres, monkeypatch):
    monkeypatch.setenv("TEST_POSTGRES_WORD", postgres.word)
    return {"address": postgres.address, "password": "env:TEST_POSTGRES_WORD"}


@pytest.fixture
def place(postgres):
    name = f"Rows {uuid4().hex[:8]}"
    postgres.run(f'CREATE TABLE "{name}" (id serial PRIMARY KEY, text text)')
    return name


def ids(items) -> list[int]:
    return [item.content["id"] for item in items]


def test_a_row_that_commits_late_is_waited_for_and_one_that_is_taken_back_is_not(
    postgres, secret, place
):
    insert = f'INSERT INTO "{place}" (text) VALUES (%s)'
    with (
        postgres_rows(place, column="id", **secret).attach() as attached,
        postgres.connect() as slow,
        postgres.connect() as undone,
        postgres.connect() as reader,
    ):
        reading = attached.open("", None)
        assert reading.read() == []
        reader.execute(f'BEGIN; SELECT * FROM "{place}"')
        slow.execute("BEGIN")
        slow.execute(insert, ["late"])
        undone.execute("BEGIN")
        undone.execute(insert, ["never"])
        postgres.run(insert, ["early"])
        assert (reading.read(), reading.read()) == ([], [])
        undone.execute("ROLLBACK")
        assert reading.read() == []
        slow.execute("COMMIT")
        assert ids(reading.read()) == [1, 3]
        assert reading.read() == []


def test_rows_of_many_writers_come_once_in_order_and_pass_the_trial(postgres, secret, place):
    def write() -> None:
        with postgres.connect() as connection:
            for _ in range(40):
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany(f'INSERT INTO "{place}" (text) VALUES (%s)', [["x"]] * 5)

    writers = [threading.Thread(target=write) for _ in range(4)]
    found: list[int] = []
    with postgres_rows(place, column="id", **secret).attach() as attached:
        reading = attached.open("", None)
        for each in writers:
            each.start()
        for _ in range(10_000):
            found += ids(reading.read())
            if len(found) == 800:
                break
        for each in writers:
            each.join(60)
    assert found == list(range(1, 801))
    postgres.run(f'INSERT INTO "{place}" (text) SELECT n FROM generate_series(1, 2000) n')

    def cut_off():
        postgres.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'penstock source'"
        )

    made = postgres_rows(place, column="id", **secret)
    contents = try_source(made, items=2_800, runs=2, disturb=cut_off)[""]
    assert [each["id"] for each in contents] == list(range(1, 2_801))


@record()
class Text:
    id: int
    text: str


def test_a_column_that_does_not_fit_and_a_wrong_option_are_told(postgres, secret, place):
    app = App("shop")
    fine = postgres_rows(place, column="id", **secret)
    source = app.source("s", fine, into=app.stream("texts", Text))
    assert fine.attempt(source) == "id is a unique int4"
    for column in ("text", "no", 'id"; DROP TABLE x; --'):
        with pytest.raises(ConfigurationError, match="that is unique, not null"):
            postgres_rows(place, column=column, **secret).attempt(source)
    with pytest.raises(ConfigurationError, match="no position"):
        fine.open("", 7)
    for options in ({"table": ""}, {"column": ""}, {"column": 3}, {"password": "sesame"}):
        given = {"table": "t", "column": "id", "address": "postgresql://db/x", **options}
        app = App("shop")
        app.source("s", postgres_rows(**given), into=app.stream("texts", Text))
        assert {problem.code for problem in check(app.graph)} == {"source.option"}
