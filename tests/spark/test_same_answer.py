"""The same question has the same answer: a query beside Spark's own reading of its text."""

import os

import pytest
from pyspark.errors import PySparkException

from penstock.pipelines.query.gate import allowed_query
from penstock.pipelines.query.query import closed_session, run_query, spark_parser

from .sqltexts import ROWS, TABLES, query_texts

SEEDS = [int(seed) for seed in os.environ.get("PENSTOCK_CHAOS_SEEDS", "").split()]
TEXTS, TEXTS_OF_A_SEED = 60, 1000
SETTINGS = {
    # A query has no variables: ${...} is a text.
    "spark.sql.variable.substitute": "false",
    # Most of the time of a small query is that of compiling it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
FEW = 0.2
"""Of the texts, so many may be ones that Spark cannot compute."""


class Both:
    """The same rows in two sessions: one that is asked through the gate, and one of Spark alone."""

    def __init__(self, spark) -> None:
        self.plain, self.closed = spark.newSession(), closed_session(spark)
        for key, value in SETTINGS.items():
            self.plain.conf.set(key, value)
            self.closed.conf.set(key, value)
        self.parse = spark_parser(self.closed)
        written = f"select * from values {ROWS} as t(word, n, price, at, tags)"  # noqa: S608
        self.rows = self.closed.sql(written)
        for name in (*TABLES.values(), "odd_name", "shop_orders"):
            self.plain.sql(written).createOrReplaceTempView(name)

    def spark_says(self, text: str):
        return answer(lambda: self.plain.sql(text))

    def penstock_says(self, text: str):
        query = allowed_query(text, self.parse, list(TABLES))
        for read in query.reads:
            self.rows.createOrReplaceTempView(f"`{read.view}`")
        return answer(lambda: run_query(self.closed, query))


def answer(ask):
    """Return columns, types and rows in one order; of an error its kind."""
    try:
        frame = ask()
        kinds = [field.dataType.simpleString() for field in frame.schema]
        return frame.columns, kinds, sorted(map(repr, frame.collect()))
    except PySparkException as error:
        return error.getCondition()
    except (ValueError, OverflowError) as error:  # an instant of a year that Python does not have
        return str(error)


@pytest.fixture(scope="module")
def both(spark):
    return Both(spark)


def compare(both, texts) -> None:
    failed = 0
    for text in texts:
        expected = both.spark_says(text)
        assert both.penstock_says(text) == expected, text
        failed += isinstance(expected, str | None)
    assert failed < FEW * len(texts)  # or not much was shown


def test_generated_queries_give_what_spark_gives(both):
    compare(both, query_texts(0, TEXTS))


@pytest.mark.skipif(not SEEDS, reason="long; make chaos plays it (PENSTOCK_CHAOS_SEEDS)")
@pytest.mark.parametrize("seed", SEEDS)
def test_many_generated_queries_give_what_spark_gives(both, seed):
    compare(both, query_texts(seed, TEXTS_OF_A_SEED))
