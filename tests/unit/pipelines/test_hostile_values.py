"""Whatever comes is a record or a dead letter, and the gate says of each what the codec says."""

import runpy
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.pipelines.gate.gate import codec_gate

hostile = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "hostilevalues.py")))
SCHEMA = hostile.samples.record.schema

payloads = st.integers(0, 2**32).map(lambda seed: hostile.payload(Random(seed)))


def through(rows: list[Any]) -> tuple[pa.RecordBatch, list[bool]]:
    columns = [pa.array([row[at] for row in rows], pa.binary()) for at in (0, 1)]
    (found,) = codec_gate(hostile.samples)([pa.RecordBatch.from_arrays(columns, ["key", "value"])])
    found.validate(full=True)
    *fields, refused = found.columns
    names = [field.name for field in SCHEMA.fields]
    return pa.RecordBatch.from_arrays(fields, names), refused.to_pylist()


@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(st.lists(payloads, min_size=40, max_size=40))
def test_the_gate_gives_every_hostile_value_the_codecs_verdict_and_the_codecs_value(values):
    rows = [hostile.with_key(value) for value in values]
    expected = [hostile.accepted(row) for row in rows]
    found, refused = through(rows)

    assert refused == [each is None for each in expected]
    good = [row for row, each in zip(rows, expected, strict=True) if each is not None]
    batch, _ = through(good)  # all good: read at once, not one by one
    kept = [each for each in found.to_pylist() if each["id"] is not None]
    assert kept == batch.to_pylist()
    for record, row in zip((each for each in expected if each), kept, strict=True):
        assert row == shown(record)


def shown(record: Any) -> dict[str, Any]:
    """Return a record as Arrow shows it: a map is a list of pairs."""
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    for name, value in fields.items():
        match value:
            case dict():
                fields[name] = list(value.items())
            case list():
                fields[name] = [shown(e) if hasattr(e, "__struct_fields__") else e for e in value]
            case _ if hasattr(value, "__struct_fields__"):
                fields[name] = shown(value)
    return fields


def test_the_fuzzer_makes_records_and_dead_letters():
    random = Random(7)
    verdicts = [hostile.accepted(hostile.with_key(hostile.payload(random))) for _ in range(2000)]

    good = sum(each is not None for each in verdicts)
    assert 500 < good < 1500
