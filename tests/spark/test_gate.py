"""The gate and the codec have one rule: every payload is tried on both, in both of its forms."""

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from penstock.core.graph.data import OnLog
from penstock.pipelines.gate.gate import REFUSED, judged, refused

samples = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "payloads.py")))
readings, riches, latest = samples.readings, samples.riches, samples.latest
PLAIN, RICH = samples.PLAIN, samples.RICH
written, with_their_keys, by_codec = samples.written, samples.with_their_keys, samples.by_codec

Row = tuple[bytes | None, bytes | None]
in_both_forms = pytest.mark.parametrize("natively", [False, True], ids=["codec", "native"])
of_both_types = pytest.mark.parametrize(
    ("data", "base"), [(readings, PLAIN), (riches, RICH)], ids=["plain", "rich"]
)


def by_gate(
    spark: Any, data: OnLog, rows: list[Row], *, natively: bool
) -> list[dict[str, Any] | None]:
    """Return the same from the gate, in one job."""
    given = spark.createDataFrame(rows, "key binary, value binary").coalesce(1)
    frame = judged(given, data, natively=natively)
    fields = [
        F.when(~F.col(REFUSED), countable(F.col(field.name), field.dataType)).alias(field.name)
        for field in frame.drop(REFUSED).schema
    ]
    table = frame.select(*fields, REFUSED).toArrow().to_pylist()
    return [None if row.pop(REFUSED) else maps(row, data) for row in table]


def countable(column: Any, kind: sql.DataType) -> Any:
    """Instants as microseconds: Spark has years that Python has not."""
    match kind:
        case sql.TimestampType():
            return F.unix_micros(column)
        case sql.ArrayType() if isinstance(kind.elementType, sql.TimestampType):
            return F.transform(column, F.unix_micros)
    return column


def maps(row: dict[str, Any], data: OnLog) -> dict[str, Any]:
    """Arrow gives maps as lists of pairs."""
    if data is riches:
        for name in ("names", "deep", "prices"):
            row[name] = None if row[name] is None else dict(row[name])
    return row


def assert_agreement(spark: Any, data: OnLog, rows: list[Row], *, natively: bool) -> None:
    codec = by_codec(data, rows, natively=natively)
    gate = by_gate(spark, data, rows, natively=natively)
    assert len(gate) == len(rows)
    different = [
        f"{row[0]!r} {row[1]!r}\n  codec {one}\n  gate  {other}"
        for row, one, other in zip(rows, codec, gate, strict=True)
        if one != other
    ]
    assert different == [], f"{len(different)} of {len(rows)}:\n" + "\n".join(different[:40])


@in_both_forms
@of_both_types
def test_the_gate_agrees_with_the_codec_on_nasty_payloads(spark, data, base, natively):
    rows = with_their_keys(data, samples.payloads(base))

    assert_agreement(spark, data, rows, natively=natively)


@in_both_forms
def test_null_values_and_wrong_keys_are_refused(spark, natively):
    value = written({name: text.encode() for name, text in PLAIN.items()})
    rows = [
        (b"d1", value),
        (None, value),
        (b"d2", value),
        (b"", value),
        (b"d1", None),
        (None, None),
    ]

    assert_agreement(spark, readings, rows, natively=natively)
    assert [row is not None for row in by_codec(readings, rows)] == [True, *[False] * 5]


@in_both_forms
def test_a_null_value_deletes_from_a_table_and_is_neither_record_nor_dead_letter(spark, natively):
    rows = spark.createDataFrame([(b"d1", None), (None, None)], "key binary, value binary")

    found = judged(rows, latest, natively=natively)
    assert [row[REFUSED] for row in found.collect()] == [None, True]
    assert refused(rows, latest, natively=natively).collect() == [(None, None)]


@in_both_forms
def test_refused_rows_keep_all_they_had_on_the_log(spark, natively):
    rows = spark.createDataFrame(
        [(b"d1", b"{", 1, 7), (b"d1", written({k: v.encode() for k, v in PLAIN.items()}), 1, 8)],
        "key binary, value binary, partition int, offset long",
    )

    assert refused(rows, readings, natively=natively).collect() == [(b"d1", b"{", 1, 7)]


@in_both_forms
@of_both_types
def test_the_gate_agrees_with_the_codec_on_random_changes(spark, data, base, natively):
    @settings(
        max_examples=5,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),  # a smaller example is not worth a Spark job for each try
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(samples.mutations(base), min_size=150, max_size=150))
    def agree(values: list[bytes]) -> None:
        assert_agreement(spark, data, with_their_keys(data, values), natively=natively)

    agree()
