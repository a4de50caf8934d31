"""Records that are made to do harm: each is a record or a dead letter, on Spark as in a service."""

import os
import runpy
from collections import Counter
from datetime import UTC, datetime
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Annotated, Any

import msgspec
from pyspark.sql import functions as F  # noqa: N812

from penstock import App, limits, record
from penstock.core.expression import compile_predicate, parse
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError
from penstock.pipelines.gate.gate import REFUSED, judged
from penstock.pipelines.lake.table import lake_rows, make_table, stored_rows
from penstock.pipelines.sink.rows import log_rows, typed
from penstock.pipelines.spark.expressions import column
from penstock.pipelines.spark.session import session_beside

hostile = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "hostilevalues.py")))
SEED = int(os.environ.get("PENSTOCK_HOSTILE_SEED", "1"))
COUNT = 1500


@record()
class Line:
    text: str


@record()
class Name:
    number: Annotated[str, limits(pattern=r"^\d+$")]
    name: Annotated[str, limits(pattern=r"^(\w|-|_){1,64}$")] = "x"


HARMFUL = ["_" * 40 + "!", "," * 3000, "a" * 3000, "=;" * 1500, "1" * 3000 + "x", "a\r\n", "José"]
CONDITIONS = [
    "text like '%,%,%,%x'",
    "text like '%a%a%a%a%b'",
    "text rlike '^(a+)+$'",
    r"text rlike '^(\\w|-|_){1,64}$'",
    "text rlike '^.*=.*;.*=.*x$'",
    "text rlike '[0-9]+$'",
    r"text rlike '^\\w+$'",
]


def test_patterns_that_multiply_end_on_spark_too(spark):
    app = App("hostile")
    schema = app.stream("lines", Line).record.schema
    conditions = [parse(text, schema) for text in CONDITIONS]
    frame = spark.createDataFrame([(text,) for text in HARMFUL], "text string")
    found = frame.select(*(column(each).alias(str(at)) for at, each in enumerate(conditions)))

    expected = [
        tuple(compile_predicate(each)(Line(text)) for each in conditions) for text in HARMFUL
    ]
    assert [tuple(row) for row in found.collect()] == expected


def test_limits_with_patterns_say_the_same_in_the_codec_the_gate_and_the_writer(spark):
    app = App("hostile")
    names = app.stream("names", Name)
    rows = [("3", "a"), ("\u0663", "a"), ("3", "José"), ("3", "_" * 40 + "!"), ("3\n", "a-b")]
    values = [
        f'{{"number":"{number}","name":"{name}"}}'.replace("\n", "\\n").encode()
        for number, name in rows
    ]
    codec = JsonCodec(names.record)

    def accepts(value: bytes) -> bool:
        try:
            codec.accept(None, value)
        except DataError:
            return False
        return True

    accepted = [accepts(value) for value in values]
    assert accepted == [True, False, False, False, True]
    given = spark.createDataFrame([(None, value) for value in values], "key binary, value binary")
    for natively in (False, True):
        verdicts = judged(given.coalesce(1), names, natively=natively).select(REFUSED).collect()
        assert [not row[0] for row in verdicts] == accepted


def test_every_hostile_value_is_a_dead_letter_or_passes_gate_writer_lake_and_query_unchanged(
    spark, tmp_path
):
    random = Random(SEED)
    rows = [hostile.with_key(hostile.payload(random)) for _ in range(COUNT)]
    expected = [hostile.accepted(row) for row in rows]
    given = spark.createDataFrame(
        [(at, *row) for at, row in enumerate(rows)], "number int, key binary, value binary"
    ).coalesce(2)
    app = App("hostile")
    kept = app.lake("kept", hostile.Sample)
    app.pipeline(reads=hostile.samples, writes=kept, name="same")(lambda frame: frame)
    verdicts = judged(given, hostile.samples, beside={"_number": "number"}).cache()

    by_number = {
        row["_number"]: row[REFUSED] for row in verdicts.select("_number", REFUSED).collect()
    }
    refused = [by_number[at] for at in range(COUNT)]
    assert difference(rows, expected, refused) == []

    path = str(tmp_path / "kept")
    make_table(spark, kept, path)
    good = verdicts.where(~F.col(REFUSED)).drop("_number", REFUSED)
    stored_rows(typed(good, app.graph.part("same")), kept).write.format("delta").mode(
        "append"
    ).save(path)
    beside = session_beside(spark, {"spark.sql.session.timeZone": "UTC"})
    lake_rows(beside, kept, path, streaming=False).createOrReplaceTempView("kept")
    answer = beside.sql("select * from kept where id is not null")
    codec = JsonCodec(hostile.samples.record, max_bytes=1 << 30)
    written = log_rows(answer, hostile.samples).collect()
    found = Counter(plain(codec.accept(bytes(row.key), bytes(row.value))) for row in written)
    wanted = Counter(plain(each) for each in expected if each is not None)
    assert (found - wanted, wanted - found) == (Counter(), Counter())


def test_the_gate_without_python_gives_the_same_verdicts_where_it_promises_to(spark):
    random = Random(SEED + 1)
    rows = [hostile.with_key(hostile.payload(random)) for _ in range(COUNT // 2)]
    rows = [row for row in rows if hostile.is_plain(row[1])]
    expected = [hostile.accepted(row) for row in rows]
    given = spark.createDataFrame(rows, "key binary, value binary").coalesce(1)
    found = judged(given, hostile.samples, natively=True).select(REFUSED).collect()

    assert difference(rows, expected, [row[0] for row in found]) == []


def difference(rows: list[Any], expected: list[Any], refused: list[bool]) -> list[str]:
    """Return the payloads that the gate and the codec judge otherwise."""
    return [
        f"{row[1]!r} {'is refused' if no else 'passes'} on Spark"
        for row, one, no in zip(rows, expected, refused, strict=True)
        if no is not (one is None)
    ]


def plain(value: Any) -> Any:  # noqa: PLR0911 - one for each kind of value
    """Return a value as it is whatever it went through: Spark keeps no zones of instants."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case Decimal():
            return str(value.normalize(Context(prec=38)) + 0)
        case float() | bytes():
            return repr(value)
        case dict():
            return tuple(sorted((name, plain(inner)) for name, inner in value.items()))
        case list():
            return tuple(map(plain, value))
        case msgspec.Struct():
            return tuple(plain(getattr(value, name)) for name in value.__struct_fields__)
    return value
