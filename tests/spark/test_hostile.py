"""Records that are made to do harm: each is a record or a dead letter, on Spark as in a service."""

from typing import Annotated

from penstock import App, limits, record
from penstock.core.codec import JsonCodec
from penstock.core.expression import compile_predicate, parse
from penstock.errors import DataError
from penstock.pipelines.expressions import column
from penstock.pipelines.gate import REFUSED, judged


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
