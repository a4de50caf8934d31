"""Spark and the compiled function agree on every random expression and record, to the last bit.

Three answers are compared. *Ours in Spark*: the SQL that Penstock writes. *Ours in Python*: the
compiled function. *Spark's own*: the text itself, as Spark reads and types it in ANSI mode. The
first two are always equal; Spark's own is equal wherever it does not fail.

``PENSTOCK_EXPRESSIONS`` says how many expressions are tried, ``PENSTOCK_EXPRESSION_SEED`` which.
"""

import os
import runpy
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.core.expression import (
    Expression,
    compile_predicate,
    compile_row,
    examine,
    parse,
)
from penstock.core.expression.operations import OPERATIONS
from penstock.core.expression.tree import Call, walk
from penstock.pipelines.spark.expressions import column, spark_sql

HERE = Path(__file__)
samples = SimpleNamespace(**runpy.run_path(str(HERE.with_name("expression_records.py"))))
texts = SimpleNamespace(**runpy.run_path(str(HERE.with_name("expression_texts.py"))))

COUNT = int(os.environ.get("PENSTOCK_EXPRESSIONS", "2000"))
SEED = int(os.environ.get("PENSTOCK_EXPRESSION_SEED", "1"))
RECORDS = 40
BATCH = 250

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What is shared is otherwise computed outside the function that catches its errors.
    "spark.sql.alwaysInlineCommonExpr": "true",
    "spark.sql.subexpressionElimination.enabled": "false",
}
OTHERWISE = {
    *("add.date", "subtract.date", "add.timestamp", "subtract.timestamp", "date_from_unix_date"),
    *("timestamp_micros", "timestamp_millis", "timestamp_seconds", "cast.string.date"),
    *("cast.int.timestamp", "cast.bigint.timestamp", "cast.decimal.int", "element_at.array"),
    *("negate.decimal.whole", "negate.decimal.fraction", "abs.decimal.long"),
}
"""Operations that differ from Spark's own on purpose; docs/expressions.md says why."""


@pytest.fixture(scope="module")
def records() -> list[Any]:
    make = samples.Records(SEED)
    return [make.sample() for _ in range(RECORDS)]


@pytest.fixture(scope="module")
def frame(
    spark: SparkSession, records: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> DataFrame:
    inner = pa.struct({"n": pa.int64(), "x": pa.float64(), "s": pa.string()})
    scalars = {
        "b": pa.bool_(),
        "i": pa.int64(),
        "x": pa.float64(),
        "d": pa.decimal128(38, 18),
        "s": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "raw": pa.binary(),
    }
    types = {name + end: kind for name, kind in scalars.items() for end in ("", "_")}
    types |= {"kind": pa.string(), "tags": pa.list_(pa.string()), "nums": pa.list_(pa.int64())}
    types |= {"floats": pa.list_(pa.float64()), "attrs": pa.map_(pa.string(), pa.int64())}
    types |= {"inner": inner, "inner_": inner, "items": pa.list_(inner)}
    rows = [_plain(record) for record in records]
    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()}
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    pq.write_table(pa.table(columns), path)
    # Cut off from its file, or Spark would read nested fields before the expressions around them.
    return spark.read.parquet(str(path)).coalesce(1).localCheckpoint()


def _plain(record: Any) -> dict[str, Any]:
    row = msgspec.structs.asdict(record)
    row["attrs"] = list(row["attrs"].items())
    for name in ("inner", "inner_"):
        row[name] = row[name] and msgspec.structs.asdict(row[name])
    row["items"] = [msgspec.structs.asdict(item) for item in row["items"]]
    return row


def _batches(count: int, seed: int) -> Iterator[list[Expression]]:
    make = texts.Texts(seed, texts=samples.TEXTS, dates=samples.DATES)
    refused = 0
    for start in range(0, count, BATCH):
        batch: list[Expression] = []
        while len(batch) < min(BATCH, count - start):
            found = examine(make.text(), samples.SCHEMA)
            if isinstance(found, Expression):
                batch.append(found)
            else:
                refused += 1
        yield batch
    assert refused < count / 20, "the generator makes expressions that are refused"


@contextmanager
def _settings(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def _outside(expression: Expression) -> str:
    """Return SQL whose value crosses into Python unchanged."""
    sql = spark_sql(expression)
    wrapped = {"timestamp": f"unix_micros({sql})", "date": f"unix_date({sql})"}
    return wrapped.get(expression.type.kind, sql)


def _counted(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // datetime.resolution
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        bits = struct.pack(">d", left) == struct.pack(">d", right)
        return bits or (left != left and right != right)  # noqa: PLR0124
    return type(left) is type(right) and left == right


def _differences(
    frame: DataFrame, expressions: list[Expression], records: list[Any]
) -> Iterator[str]:
    """Yield in words where Spark and Python do not agree."""
    rows = frame.select(*[F.expr(_outside(each)) for each in expressions]).collect()
    for number, expression in enumerate(expressions):
        function = compile_row(expression)
        predicate = compile_predicate(expression) if expression.type.kind == "boolean" else None
        for record, row in zip(records, rows, strict=True):
            in_spark, in_python = row[number], _counted(function(record))
            where = f"{expression}\n  of {record}\n  as {spark_sql(expression)}\n  gives"
            if not _same(in_spark, in_python):
                yield f"{where} {in_spark!r} in Spark, {in_python!r} in Python"
            elif predicate and predicate(record) is not (in_python is True):
                yield f"{where} {in_python!r}, and as a predicate {predicate(record)}"
            elif in_python is None and not expression.nullable:
                yield f"{where} null, and must not"


def _misreadings(frame: DataFrame, expressions: list[Expression]) -> Iterator[str]:
    """Yield in words where Spark's own reading of a text differs from ours."""

    def shown(sql: str) -> str:
        return f"concat('is ', coalesce(cast({sql} as string), 'null'))"

    like_spark = [each for each in expressions if _is_like_spark(each)]
    # A function that catches every error of its arguments, so that one failure does not end all.
    own = [F.expr(f"try_to_binary({shown(f'({each})')}, 'utf-8')") for each in like_spark]
    ours = [F.expr(shown(spark_sql(each))) for each in like_spark]
    for row in frame.select(*own, *ours).collect():
        for number, expression in enumerate(like_spark):
            spoken, kept = row[number], row[len(like_spark) + number]
            if spoken is not None and spoken.decode() != kept:
                yield f"{expression}\n  {spoken.decode()} for Spark itself, ours {kept}"


def _is_like_spark(expression: Expression) -> bool:
    calls = [node for node in walk(expression.root) if isinstance(node, Call)]
    merging = [kind for call in calls if (kind := OPERATIONS[call.name].merges)]
    merged_by_spark = len(merging) > len(set(merging))
    substituted_by_spark = "${" in expression.text
    on_purpose = {call.name for call in calls} & OTHERWISE
    return not (merged_by_spark or substituted_by_spark or on_purpose)


def _mistyped(frame: DataFrame, expressions: list[Expression]) -> Iterator[str]:
    """Yield in words where the types differ."""
    # Spark computes some constants when it reads them, and fails; its own then has no type.
    own = [F.expr(str(each)) if _is_like_spark(each) else column(each) for each in expressions]
    ours = [column(each) for each in expressions]
    schemas = (frame.select(*columns).schema for columns in (own, ours))
    for each, spoken, written in zip(expressions, *schemas, strict=True):
        names = {spoken.dataType.simpleString(), written.dataType.simpleString(), str(each.type)}
        if len(names) > 1:
            yield f"{each}: {spoken.dataType} for Spark, its SQL {written.dataType}, {each.type}"


def _check(problems: list[str]) -> None:
    assert not problems, f"{len(problems)} differences, the first:\n{min(problems, key=len)}"


def test_spark_and_python_agree_and_spark_reads_the_texts_alike(
    spark: SparkSession, frame: DataFrame, records: list[Any]
):
    with _settings(spark, INTERPRETED):
        for batch in _batches(COUNT, SEED):
            _check([*_mistyped(frame, batch), *_differences(frame, batch, records)])
            _check([*_misreadings(frame, batch)])


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_they_agree_compiled_by_spark_with_and_without_ansi_mode(
    spark: SparkSession, frame: DataFrame, records: list[Any], ansi: str
):
    with _settings(spark, {"spark.sql.ansi.enabled": ansi}):
        for batch in _batches(max(COUNT // 20, 50), SEED + len(ansi)):
            _check([*_differences(frame, batch, records)])


def test_a_condition_filters_alike(frame: DataFrame, records: list[Any]):
    conditions = [
        "nullif(i_, 0) > 1 and pmod(i, 7) <> 3",
        "not (x_ between 0 and 1) or s_ like 'a%'",
        "case when d_ > 1 then b end",
        "element_at(nums, -1) > 0 or inner_.x is null",
    ]
    for text in conditions:
        condition = parse(text, samples.SCHEMA)
        passed = [record for record in records if compile_predicate(condition)(record)]
        assert 0 < len(passed) < len(records)
        assert frame.where(column(condition)).count() == len(passed)


def test_where_spark_itself_would_fail_or_err_both_agree(frame: DataFrame, records: list[Any]):
    traps = [
        "(i + 1) + -1",
        "if(true, i + 1, 0L) + -1",
        "(i * 3) * 0",
        "case when b then i + 1 else 5L end + -1",
        "lower(upper(s))",
        "upper(coalesce(lower(s_), lower(s)))",
        "-d",
        "abs(-d_)",
        "-(d * 3)",
        "abs(cast(d as decimal(38,0)) * 9)",
        "element_at(nums, -2147483648)",
        "element_at(tags, 0)",
        "i div i_",
        "round(i, -1)",
        "at + interval 400000 weeks - interval 400000 weeks",
        "timestamp_millis(i * 1000)",
        "day + (size(nums) + 2147483647)",
        "cast(s as double) + cast(s as bigint)",
        "floats[2147483647] + nums[-1]",
        "pmod(i, i_) + pmod(i_, 0)",
    ]
    _check([*_differences(frame, [parse(text, samples.SCHEMA) for text in traps], records)])


def test_a_text_that_names_a_setting_stays_a_text(spark: SparkSession):
    text = "'${spark.app.name} ${env:HOME}'"
    own = spark.range(1).select(F.expr(text)).collect()[0][0]
    ours = spark.range(1).select(column(parse(text, samples.SCHEMA))).collect()[0][0]

    assert "penstock" in own
    assert ours == "${spark.app.name} ${env:HOME}"


def test_the_largest_expressions_run_on_spark(frame: DataFrame, records: list[Any]):
    large = [
        "(" * 38 + "i" + ")" * 38,
        "if(b_, 0, " * 38 + "i" + ")" * 38,
        " - ".join(["i_"] * 100),
        " + ".join(["x * 2"] * 95),
        "not " * 90 + "b_",
        " or ".join(f"i = {number}" for number in range(400)),
        f"i in ({', '.join(map(str, range(1500)))})",
        f"x in ({', '.join(f'{number}D' for number in range(-20, 20))}, -0.0D)",
        f"s in ({', '.join(map(repr, 'abcdefghijklmnop'))}, null)",
        "concat(" + ", ".join(["s"] * 300) + ")",
    ]
    _check([*_differences(frame, [parse(text, samples.SCHEMA) for text in large], records)])
