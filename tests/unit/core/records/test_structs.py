"""A class made from a schema is enforced as the class that the schema was read from."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import record_of
from penstock.core.records.schema import Schema
from penstock.core.records.structs import struct_of
from penstock.errors import DataError

samples = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[3] / "payloads.py")))


@pytest.mark.parametrize(
    ("data", "base"), [(samples.readings, samples.PLAIN), (samples.riches, samples.RICH)]
)
def test_it_takes_and_refuses_what_the_declared_class_does(data, base):
    declared = JsonCodec(data.record)
    # Through JSON, as a schema is kept beside its topic.
    schema = Schema.from_json(data.record.schema.to_json())
    made = JsonCodec(record_of(schema))
    for value in samples.payloads(base):
        assert outcome(made, value) == outcome(declared, value), value


def outcome(codec: JsonCodec, value: bytes) -> tuple[str, object]:
    try:
        return "record", samples.plain_values(codec.decode(value))
    except DataError as error:
        return "refused", error.code


def test_instants_can_be_left_as_the_texts_they_were():
    made = struct_of(samples.readings.record.schema, instants_as_text=True)
    found = msgspec.json.decode(b'{"device":"d","at":"whenever","celsius":1}', type=made)
    assert (found.at, found.count, found.level) == ("whenever", 7, 3)


def test_a_default_that_is_a_list_is_not_shared():
    made = struct_of(samples.riches.record.schema.field("inner").type.schema)
    one, other = (made(name="n", number=1) for _ in range(2))
    assert one.tags == other.tags == []
    assert one.tags is not other.tags
