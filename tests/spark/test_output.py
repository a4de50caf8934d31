"""What pipelines write: the codec reads it back, and nothing leaves that it would refuse."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from penstock import App, limits, record
from penstock.core.graph.data import OnLog
from penstock.core.graph.parts import Pipeline
from penstock.core.records.codec import JsonCodec
from penstock.errors import DefinitionError
from penstock.pipelines.gate.gate import REFUSED, judged
from penstock.pipelines.sink.rows import log_rows, typed
from penstock.pipelines.spark.failures import of_query


@record(key=("name", "day"))
class Part:
    name: str
    day: date
    price: Decimal
    at: datetime | None = None


@record(key=("id", "at", "text", "open", "day"), time="millis")
class Whole:
    id: int
    at: datetime
    text: str
    open: bool
    day: date
    millis: int
    ratio: float
    price: Decimal
    blob: bytes
    kind: Literal["a", "b"]
    part: Part
    parts: list[Part]
    by_name: dict[str, list[datetime]]
    note: str | None = "none"
    level: Annotated[float, limits(ge=0)] = 1.5


@record(key="at", time="at")
class Tick:
    at: datetime


@record(key="number")
class Small:
    number: int
    ratio: Annotated[float, limits(lt=10)] | None = None
    kind: Literal["a", "b"] = "a"
    tags: list[str] = []  # noqa: RUF012


app = App("output")
wholes = app.stream("wholes", Whole)
ticks = app.stream("ticks", Tick)
smalls = app.stream("smalls", Small, max_record=200)
AT = datetime(2024, 5, 6, 7, 8, 9, 120_000, tzinfo=UTC)


def writing(data: OnLog) -> Pipeline:
    return Pipeline(name="write", function=lambda frame: frame, reads=(data,), writes=data)


def through_spark(spark: Any, data: OnLog, records: list[Any]) -> list[tuple[bytes, bytes]]:
    """Read records from the log's bytes and write them again."""
    codec = JsonCodec(data.record)
    rows = [(codec.key(each), codec.encode(each)) for each in records]
    frame = judged(spark.createDataFrame(rows, "key binary, value binary").coalesce(1), data)
    assert frame.where(REFUSED).count() == 0
    written = log_rows(typed(frame.drop(REFUSED), writing(data)), data).collect()
    return [(bytes(row.key), bytes(row.value)) for row in written]


def test_records_come_out_of_spark_as_the_codec_writes_them(spark):
    part = Part("p", date(2024, 2, 29), Decimal("0.5"), None)
    records = [
        Whole(
            *(
                7,
                AT,
                'a"\\\x1f\né😀',
                True,
                date(1, 1, 1),
                1_700_000_000_123,
                0.1,
                Decimal("-12.5"),
            ),
            *(b"\x00\xff", "a", part, [part, Part("q", date(9999, 12, 31), Decimal(3), AT)]),
            {"k": [AT, AT + timedelta(microseconds=1)], "é": []},
        ),
        Whole(
            *(-(2**63), AT.replace(microsecond=0), "", False, date(2024, 5, 6), 0, -1e300),
            *(
                Decimal("12345678901234567890.123456789012345678"),
                b"",
                "b",
                part,
                [],
                {},
                None,
                0.0,
            ),
        ),
    ]
    codec = JsonCodec(wholes.record)

    written = through_spark(spark, wholes, records)

    assert [codec.accept(*each) for each in written] == records
    assert [key for key, _ in written] == [codec.key(each) for each in records]
    assert [json.loads(value) for _, value in written] == [
        json.loads(codec.encode(each)) for each in records
    ]


def test_an_instant_loses_its_zone_in_spark_and_stays_the_same_instant(spark):
    here = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    codec = JsonCodec(ticks.record)

    ((key, value),) = through_spark(spark, ticks, [Tick(here)])

    assert codec.accept(key, value) == Tick(here)
    assert key == b"2024-05-06T07:08:09.120000Z"


def test_milliseconds_may_be_given_as_the_numbers_they_are(spark):
    rows = through_spark(spark, wholes, [_whole()])
    frame = judged(spark.createDataFrame(rows, "key binary, value binary"), wholes).drop(REFUSED)
    numbers = frame.withColumn("millis", F.unix_millis("millis")).drop("note", "level")

    (row,) = log_rows(typed(numbers, writing(wholes)), wholes).collect()

    found = JsonCodec(wholes.record).accept(bytes(row.key), bytes(row.value))
    assert (found.millis, found.note, found.level) == (1_700_000_000_123, "none", 1.5)


def _whole() -> Whole:
    part = Part("p", date(2024, 2, 29), Decimal("0.5"), None)
    values = (
        7,
        AT,
        "x",
        True,
        date(2024, 1, 1),
        1_700_000_000_123,
        0.1,
        Decimal(1),
        b"",
        "a",
        part,
    )
    return Whole(*values, [], {})


BAD = {
    "number": ("cast(null as bigint)", "number must be int and is null"),
    "ratio": ("double('NaN')", "ratio must be float or null (lt=10) and is NaN"),
    "ratio ": ("double('10')", "ratio must be float or null (lt=10) and is 10.0"),
    "kind": ("'c'", "kind must be one of a, b = 'a' and is c"),
    "tags": ("array('a', null)", "tags must be list of text = [] and is [a, null]"),
    "tags ": ("array(repeat('y', 300))", "a record has more than 200 bytes"),
}


@pytest.mark.parametrize("column", BAD)
def test_a_record_that_its_stream_would_refuse_is_not_written(spark, column):
    expression, reason = BAD[column]
    good = {"number": "1", "ratio": "double('1')", "kind": "'a'", "tags": "array('x')"}
    columns = good | {column.strip(): expression}
    frame = spark.range(1).selectExpr(*(f"{text} as {name}" for name, text in columns.items()))

    with pytest.raises(PySparkException) as caught:
        log_rows(typed(frame, writing(smalls)), smalls).collect()

    error = of_query(caught.value, writing(smalls))
    assert isinstance(error, DefinitionError)
    assert error.problems[0].code == "pipeline.output"
    assert error.problems[0].message.endswith(reason)


def test_all_that_is_wrong_with_the_columns_is_said_at_once(spark):
    frame: DataFrame = spark.sql("select 'x' as number, 1 as ratio, 'a' as knid, array(1) as tags")

    with pytest.raises(DefinitionError) as caught:
        typed(frame, writing(smalls))

    said = [str(problem) for problem in caught.value.problems]
    assert len(said) == 3
    assert "gives 'number' as string" in said[0]
    assert "gives 'tags' as array<int>" in said[1]
    assert "did you mean 'kind'?" in said[2]
