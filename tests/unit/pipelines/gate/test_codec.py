"""The gate in Python without Spark: batches in, batches out, the codec's word on every row."""

import pickle
import runpy
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from penstock import App, record
from penstock.core.graph.data import OnLog, Table
from penstock.pipelines.gate.codec import CodecGate
from penstock.pipelines.spark.schema import frame_type

samples = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[3] / "payloads.py")))
readings, riches, latest = samples.readings, samples.riches, samples.latest
PLAIN, RICH = samples.PLAIN, samples.RICH

Row = tuple[bytes | None, bytes | None]
BETWEEN_GOOD = 8
"""So many rows are tried in one batch."""
of_both_types = pytest.mark.parametrize(
    ("data", "base"), [(readings, PLAIN), (riches, RICH)], ids=["plain", "rich"]
)


def gate_of(data: OnLog, *, verdict_only: bool = False) -> CodecGate:
    schema = data.record.schema
    types = {each.name: to_arrow_type(each.dataType, timezone="UTC") for each in frame_type(schema)}
    gate = CodecGate(
        schema,
        {} if verdict_only else types,
        max_bytes=data.topic.max_record_bytes,
        deletes=isinstance(data, Table),
    )
    return pickle.loads(pickle.dumps(gate))  # noqa: S301 - as it travels to the workers


def through(gate: CodecGate, rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[at] for row in rows], pa.binary()) for at in (0, 1)]
    beside = pa.array(range(len(rows)), pa.int64())
    (found,) = gate([pa.RecordBatch.from_arrays([*columns, beside], ["key", "value", "beside"])])
    assert found.column(found.num_columns - 2).equals(beside)
    return found


def records(data: OnLog, found: pa.RecordBatch) -> list[dict[str, Any] | None]:
    """Return the records as the codec's are shown, None where they were refused."""
    *fields, _, refused = found.columns
    names = [each.name for each in data.record.schema.fields]
    columns = [countable(each).to_pylist() for each in fields]
    return [
        None
        if no
        else {
            name: dict(value) if isinstance(value, list) and is_map(value) else value
            for name, value in zip(names, row, strict=True)
        }
        for no, *row in zip(refused.to_pylist(), *columns, strict=True)
    ]


def is_map(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(each, tuple) for each in value)


def countable(column: pa.Array) -> pa.Array:
    """Instants as microseconds: Arrow has years that Python has not."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_list(column.type) and pa.types.is_timestamp(column.type.value_type):
        return column.cast(pa.list_(pa.int64()))
    return column


def shown(data: OnLog, found: list[dict[str, Any] | None]) -> list[dict[str, Any] | None]:
    """An empty map is an empty list to Arrow."""
    return [
        None if each is None else {k: [] if v == {} else v for k, v in each.items()}
        for each in found
    ]


def assert_agreement(data: OnLog, rows: list[Row]) -> None:
    """Try rows all at once, each between two good ones, and all that are good."""
    expected = samples.by_codec(data, rows)
    gate, verdicts = gate_of(data), gate_of(data, verdict_only=True)
    good = good_row(data)
    assert shown(data, records(data, through(gate, rows))) == shown(data, expected)
    (one,) = samples.by_codec(data, [good])
    for first in range(0, len(rows), BETWEEN_GOOD):
        some = slice(first, first + BETWEEN_GOOD)
        batch, wanted = between(good, rows[some]), between(one, expected[some])
        found = records(data, through(gate, batch))
        assert shown(data, found) == shown(data, wanted), rows[some]
    accepted = [row for row, wanted in zip(rows, expected, strict=True) if wanted is not None]
    for some, refusals in (rows, [each is None for each in expected]), (accepted, []):
        *_, refused = through(verdicts, some).columns
        assert refused.to_pylist() == (refusals or [False] * len(some))


def between(good: Any, several: list[Any]) -> list[Any]:
    """Return several values, a good one before and after each."""
    return [good, *(each for value in several for each in (value, good))]


def good_row(data: OnLog) -> Row:
    base = PLAIN if data is readings else RICH
    value = samples.written({name: text.encode() for name, text in base.items()})
    (row,) = samples.with_their_keys(data, [value])
    return row


@of_both_types
def test_it_agrees_with_the_codec_on_nasty_payloads(data, base):
    assert_agreement(data, samples.with_their_keys(data, samples.payloads(base)))


@of_both_types
def test_it_agrees_with_the_codec_on_random_changes(data, base):
    @given(st.lists(samples.mutations(base), min_size=1, max_size=5))
    def agree(values: list[bytes]) -> None:
        assert_agreement(data, samples.with_their_keys(data, values))

    agree()


def test_two_rows_are_not_taken_for_one_and_one_not_for_two():
    good = good_row(readings)[1]
    for values in (
        [b'{"x":[{}', b"{}]}", good + good],
        [b'{"x":"}', b'{",' + good[1:], good + b" " + good],
        [good[:-1] + b',"x":"}', b'{"}', good + b"\n" + good],
        [good + b"\n" + good, good],
    ):
        rows = samples.with_their_keys(readings, values)
        expected = samples.by_codec(readings, rows)
        assert records(readings, through(gate_of(readings), rows)) == expected


def test_wrong_keys_null_keys_and_null_values_are_refused():
    key, value = good_row(readings)
    rows = [(key, value), (None, value), (b"d2", value), (b"", value), (key, None), (None, None)]
    for some in (rows, rows[:4]):
        *_, refused = through(gate_of(readings), some).columns
        assert refused.to_pylist() == [False, True, True, True, True, True][: len(some)]


def test_a_null_value_deletes_from_a_table():
    key, value = good_row(readings)
    found = through(gate_of(latest), [(key, value), (key, None), (None, None), (key, value)])
    assert found.column(found.num_columns - 1).to_pylist() == [False, None, True, False]
    assert found.column(0).to_pylist() == ["d1", None, None, "d1"]


@pytest.mark.parametrize("at", ["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.123456Z", "mixed"])
def test_instants_in_the_usual_forms_are_read_without_the_codec_and_alike(at):
    texts = [at] * 3
    if at == "mixed":
        texts = ["2024-05-06T07:08:09Z", "2024-02-29T23:59:59.999Z", "0001-01-01T00:00:00.000001Z"]
    base = {name: text.encode() for name, text in PLAIN.items()}
    values = [samples.written(base | {"at": f'"{text}"'.encode()}) for text in texts]
    rows = samples.with_their_keys(readings, values)
    assert records(readings, through(gate_of(readings), rows)) == samples.by_codec(readings, rows)


def test_instants_that_may_be_absent_are_read_wherever_they_are():
    app = App("trips")

    @record()
    class Stop:
        left: datetime | None = None

    @record()
    class Trip:
        began: datetime | None = None
        stop: Stop | None = None

    trips = app.stream("trips", Trip)
    at = "2024-05-06T07:08:09Z"
    values = [
        b"{}",
        f'{{"began":"{at}","stop":{{}}}}'.encode(),
        f'{{"began":null,"stop":{{"left":"{at}"}}}}'.encode(),
    ]
    began, stop, _, refused = through(gate_of(trips), [(None, each) for each in values]).columns
    moment = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert began.to_pylist() == [None, moment, None]
    assert stop.to_pylist() == [None, {"left": None}, {"left": moment}]
    assert refused.to_pylist() == [False] * 3


def test_a_sliced_batch_and_an_empty_one_are_read_as_others():
    gate, rows = gate_of(readings), [good_row(readings)] * 6
    columns = [pa.array([row[at] for row in rows], pa.binary()) for at in (0, 1)]
    whole = pa.RecordBatch.from_arrays(columns, ["key", "value"])
    part, nothing = gate([whole.slice(2, 3), whole.slice(0, 0)])
    assert (part.num_rows, nothing.num_rows) == (3, 0)
    assert pc.any(part.column(part.num_columns - 1)).as_py() is False
    assert nothing.column(0).type == part.column(0).type
