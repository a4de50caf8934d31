"""Every aggregate that has Spark SQL: what Spark computes is what the combiner does."""

import random
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.core.expression.values.plainvalues import from_plain
from penstock.core.records.schema import Scalar

every = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "everyaggregate.py")))
SQL = {"int": "bigint", "float": "double", "text": "string", "bool": "boolean"}
PLAIN = {name: SQL.get(name, "bigint") for name in every.PLAIN if name != "decimal"}
"""Spark's types of plain values; decimals are never left to Spark."""
GROUPS, SEED = 60, 1


def groups():
    """Return rows of a group, an event time and a value of each type, most of them null."""
    choice = random.Random(SEED)
    known = {name: _values(name, choice) for name in PLAIN}
    return [
        (group, choice.randint(-3, 3), *(choice.choice([None, *known[name]]) for name in PLAIN))
        for group in range(GROUPS)
        for _ in range(group % 9 + 1)
    ]


def _values(name, choice):
    match name:
        case "int":
            return [*range(-9, 9), 2**62, -(2**62), 2**63 - 1, -(2**63)]
        case "float":
            return [each / 8 for each in range(-80, 80)] + [1e308, -1e308, 1.7e308]
        case "text":
            return ["", "a", "b", "ab", "\u00fc", "\uffee", "\U0001f30a"]
        case "bool":
            return [True, False]
    return [choice.randint(-(10**6), 10**6) for _ in range(20)]


def cases():
    return [
        (f"{name} of {kind}", combiner, form, Scalar(kind))
        for name, combiner, form in every.found()
        for kind in every.TAKES[form.takes]
        if kind in PLAIN and form.spark_for(Scalar(kind)) is not None
    ]


def given(form, index, rows):
    """Return what goes into the accumulator from some rows."""
    values = [row[index] for row in rows]
    if form.takes == "presence":
        return [None if value is None else True for value in values]
    return [(row[1], row[index]) for row in rows] if form.stamped else values


@pytest.mark.spark
def test_every_aggregate_of_spark_is_that_of_the_combiner(spark):
    rows = groups()
    columns = [f"{name}_ {kind}" for name, kind in PLAIN.items()]
    frame = spark.createDataFrame(rows, f"group int, time bigint, {', '.join(columns)}")
    texts = [
        f"{form.spark_for(kind).format(value=f'{kind.name}_', time='time')} as `{index}`"
        for index, (_, _, form, kind) in enumerate(cases())
    ]
    found = {
        row["group"]: row
        for row in frame.groupBy("group").agg(*map(spark_expression, texts)).collect()
    }
    assert len(texts) > 30
    assert found.keys() == set(range(GROUPS))
    for index, (name, combiner, form, kind) in enumerate(cases()):
        back = from_plain(form.gives(kind))
        column = 2 + list(PLAIN).index(kind.name)
        for group, row in found.items():
            own = [each for each in rows if each[0] == group]
            expected = combiner.result(every.folded(combiner, given(form, column, own)))
            plain = back(expected) if kind.name not in {"instant", "date"} else expected
            assert row[str(index)] == every.near(plain), f"{name}, group {group}: {own}"


def spark_expression(text):
    from pyspark.sql import functions

    return functions.expr(text)
