"""Options of a sink to PostgreSQL: what is wrong is told, and no secret is taken in the open."""

import pytest

from penstock import App, record
from penstock.connectors import postgres_table
from penstock.connectors.options import ConnectorOptions
from penstock.connectors.secret import Reference, reference
from penstock.core.rules.check import check
from penstock.errors import ConfigurationError


@record(key="id")
class Small:
    id: int


@record()
class Keyless:
    id: int


def test_a_secret_in_the_open_is_refused_and_not_shown():
    made = postgres_table("x", address="postgresql://u:sesame@db/x", password="sesame")
    assert [problem.code for problem in made.problems] == ["source.option"] * 2
    assert "sesame" not in str(made.problems) + repr(made)


@pytest.mark.parametrize(
    "options",
    [
        {"table": ""},
        {"table": "a.b.c"},
        {"table": "n\0l"},
        {"table": "x" * 64},
        {"table": 3},
        {"mode": "merge"},
        {"key": 3},
        {"key": ()},
        {"rows": 0},
        {"every": "0s"},
        {"address": None},
        {"timeout": "soon"},
    ],
)
def test_each_wrong_option_is_a_problem_of_the_application(options):
    given = {"table": "x", "address": "postgresql://db/x", **options}
    app = App("shop")
    app.sink("pg", postgres_table(**given), reads=app.stream("small", Small))
    assert [problem.code for problem in check(app.graph)] == ["source.option"]


def test_a_reference_reads_the_environment_or_a_file_when_it_is_needed(tmp_path, monkeypatch):
    options = ConnectorOptions("postgres_table", [])
    (tmp_path / "word").write_text("open sesame\n")
    found = reference(options, "password", f"file:{tmp_path / 'word'}")
    assert found is not None
    assert found.read() == "open sesame"
    monkeypatch.setenv("TEST_WORD", "other")
    assert Reference("env", "TEST_WORD").read() == "other"
    with pytest.raises(ConfigurationError, match="env:NOBODY_SET_THIS") as raised:
        Reference("env", "NOBODY_SET_THIS").read()
    assert raised.value.code == "secret.missing"


def test_rows_are_written_by_a_key_that_the_record_type_has():
    app = App("shop")
    keyless = app.stream("keyless", Keyless)
    small, table = app.stream("small", Small), app.table("rows", Small)
    for made, reads in [
        (postgres_table("x", address="postgresql://db/x"), keyless),
        (postgres_table("x", address="postgresql://db/x", key="name"), small),
        (postgres_table("x", address="postgresql://db/x", mode="append"), table),
    ]:
        sink = app.sink(f"pg{len(app.graph.parts)}", made, reads=reads)
        with pytest.raises(ConfigurationError) as raised:
            made.attempt(sink)
        assert raised.value.code == "sink.no-key"
