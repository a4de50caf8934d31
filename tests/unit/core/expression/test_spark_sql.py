"""The SQL for Spark is written from the tree; nothing of the user's text is in it."""

import re

import pytest

from penstock import record
from penstock.core.expression import Expression, examine, parse
from penstock.core.records.record import record_type
from penstock.core.records.schema import Schema
from penstock.pipelines.spark.expressions import spark_sql

SAFE = re.compile(r"[A-Za-z0-9 _.,:/()<>=%*+`'-]*")


@record()
class Row:
    text: str
    number: int
    celsius: float


def schema() -> Schema:
    found = record_type(Row)
    assert found is not None
    return found.schema


@pytest.mark.parametrize(
    "value",
    [
        "${spark.app.name}",
        "${env:HOME}",
        "it''s",
        "x'' or 1 = 1 or ''",
        r"\\",
        "`number`",
        "/*+ hint */ -- comment",
        ":parameter ?",
        "\x00\n😀",
        '"',
    ],
)
@pytest.mark.parametrize("form", ["text = '{}'", "text in ('{}', 'b')", "text like '%{}%'", "'{}'"])
def test_no_text_of_the_user_is_read_again_by_spark(form: str, value: str):
    found = examine(form.format(value), schema())

    assert isinstance(found, Expression)
    sql = spark_sql(found)
    assert SAFE.fullmatch(sql)
    assert "--" not in sql
    assert "/*" not in sql
    assert sql.count("'") % 2 == 0


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("celsius > 30 and text <> 'x'", "((`celsius` > 30.0D) AND (`text` <> 'x'))"),
        ("number + 1", "try_add(`number`, 1L)"),
        ("number * 2 + 1", "try_add(try_multiply(`number`, 2L), 1L)"),
        ("number + 1 + 2", "try_add(try_subtract(try_add(`number`, 1L), 0), 2L)"),
        ("- -5", "try_subtract(0, (-5))"),
        ("celsius / 2", "try_divide(`celsius`, 2.0D)"),
        ("cast(text as int)", "TRY_CAST(`text` AS INT)"),
        ("text = 'é'", "(`text` = CAST(X'c3a9' AS STRING))"),
        ("date '1970-01-02'", "date_from_unix_date(1)"),
        ("null", "NULL"),
        (
            "if(number > 1, 1.5, null)",
            "CASE WHEN (`number` > 1L) THEN CAST(1.5BD AS DECIMAL(2,1)) ELSE CAST(NULL AS DECIMAL(2,1)) END",
        ),
    ],
)
def test_the_sql_is_plain(text: str, sql: str):
    assert spark_sql(parse(text, schema())) == sql
