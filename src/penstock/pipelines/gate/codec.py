"""The gate in Python: the codec itself reads the rows of a topic, a batch of them at a time.

A batch is decoded in one call where nothing is wrong with it, and row by row where something is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.records.admission import Check, record_check
from penstock.core.records.codec import JsonCodec, key_encoder
from penstock.core.records.decimals import ODD
from penstock.core.records.record import record_of
from penstock.core.records.schema import Choice, Scalar, Schema
from penstock.core.records.structs import struct_of
from penstock.errors import DataError
from penstock.pipelines.gate.columns import InDoubtError, bounds, column
from penstock.pipelines.spark.schema import holds_milliseconds

__all__ = ["CodecGate"]

_OPEN, _CLOSE = ord("{"), ord("}")
_LINE = b"\n"
"""Separates two records. No JSON contains it between two braces or in a text. So the number of
records stays the same only if each value is one record."""

_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True)
class CodecGate:
    """A function for ``mapInArrow``: key, value and further columns in, a verdict out.

    It returns the fields, the further columns, and the verdict. True: the row is not a record.
    False: it is one. Null: it deletes a row of a table. If the row is not a record, its fields are
    null.
    """

    schema: Schema
    types: Mapping[str, pa.DataType]
    """The fields that are wanted, in their order, and Arrow's type of each."""
    max_bytes: int
    deletes: bool
    """Whether a key without a value is a deletion."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a batch for each batch."""
        for batch in batches:
            keys, values, *beside = batch.columns
            fields, refused = self._judged(keys, values)
            columns = [*fields, *beside, refused]
            yield pa.RecordBatch.from_arrays(columns, [str(at) for at in range(len(columns))])

    def _judged(self, keys: pa.Array, values: pa.Array) -> tuple[list[pa.Array], pa.Array]:
        if self._is_usual(values):
            joined = _joined(values)
            if self._has_decimals and ODD.search(joined):
                return self._one_by_one(keys, values)
            for decoder, check in self._decoders:
                try:
                    found = decoder.decode_lines(joined)
                    if len(found) == len(values) and not (check and any(map(check, found))):
                        return self._together(keys, found)
                except InDoubtError:
                    continue
                except _BROKEN:
                    pass
                break
        return self._one_by_one(keys, values)

    def _together(self, keys: pa.Array, found: list[Any]) -> tuple[list[pa.Array], pa.Array]:
        fields = self._fields(found)
        if self._expected is None:
            return fields, pa.repeat(pa.scalar(value=False), len(found))
        wrong = pc.not_equal(keys, self._expected(found, fields))
        refused = pc.fill_null(wrong, True)  # noqa: FBT003
        if not pc.any(refused).as_py():
            return fields, refused
        places = pc.if_else(refused, None, pa.array(np.arange(len(found))))
        return [each.take(places) for each in fields], refused

    def _one_by_one(self, keys: pa.Array, values: pa.Array) -> tuple[list[pa.Array], pa.Array]:
        found: list[Any] = []
        verdicts: list[bool | None] = []
        for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
            if self.deletes and value is None and key is not None:
                verdicts.append(None)
                continue
            try:
                found.append(self._codec.accept(key, value))
            except DataError:
                verdicts.append(True)
            else:
                verdicts.append(False)
        fields = self._fields(found)
        refused = pa.array(verdicts, pa.bool_())
        accepted = pc.fill_null(pc.invert(refused), False)  # noqa: FBT003
        places = pa.array(np.cumsum(accepted.to_numpy(zero_copy_only=False)) - 1)
        places = pc.if_else(accepted, places, None)
        return [each.take(places) for each in fields], refused

    def _fields(self, found: Sequence[Any]) -> list[pa.Array]:
        """Return the columns of records."""
        fields = []
        for field in self.schema.fields:
            kind = self.types.get(field.name)
            if kind is None:
                continue
            values = list(map(attrgetter(field.name), found))
            if holds_milliseconds(self.schema, field.name):
                fields.append(pc.multiply(pa.array(values, pa.int64()), 1000).cast(kind))
            else:
                fields.append(column(values, field.type, kind))
        return fields

    def _is_usual(self, values: pa.Array) -> bool:
        """Whether each value is there, not too long, and begins and ends as an object does."""
        if values.null_count or not len(values):
            return False
        ends = bounds(values)
        lengths = np.diff(ends)
        if lengths.min() < 1 or lengths.max() > self.max_bytes:
            return False
        data = np.frombuffer(values.buffers()[2], np.uint8)
        begins, closes = data[ends[:-1]] == _OPEN, data[ends[1:] - 1] == _CLOSE
        return bool(begins.all() and closes.all())

    @cached_property
    def _has_decimals(self) -> bool:
        return self.schema.holds("decimal")

    @cached_property
    def _codec(self) -> JsonCodec[Any]:
        return JsonCodec(record_of(self.schema), max_bytes=self.max_bytes)

    @cached_property
    def _decoders(self) -> list[tuple[msgspec.json.Decoder[Any], Check | None]]:
        """Decoders for a whole batch: a fast one, and one for all records.

        The fast one leaves instants to Arrow, so all of them must become columns.
        """
        exact = msgspec.json.Decoder(struct_of(self.schema)), record_check(self.schema)
        instants = [field for field in self.schema.fields if field.holds("instant")]
        unread = [field for field in instants if field.name not in self.types]
        if not instants or unread or any(field.name in self.schema.key for field in instants):
            return [exact]
        fast = msgspec.json.Decoder(struct_of(self.schema, instants_as_text=True))
        return [(fast, record_check(self.schema, instants=False)), exact]

    @cached_property
    def _expected(self) -> Callable[[list[Any], list[pa.Array]], pa.Array] | None:
        """Return a function for the keys that records must have; None if they have no key."""
        encode = key_encoder(self.schema)
        if encode is None:
            return None
        name, *more = self.schema.key
        if more or name not in self.types or not self._shows_key(name):
            return lambda found, _: pa.array(list(map(encode, found)), pa.binary())
        place = list(self.types).index(name)
        return lambda _, fields: fields[place].cast(pa.string()).cast(pa.binary())

    def _shows_key(self, name: str) -> bool:
        """Whether Arrow writes a field's values as they stand in a key."""
        field = self.schema.field(name)
        if field is None or holds_milliseconds(self.schema, name):
            return False
        return isinstance(field.type, Choice) or field.type in (Scalar("text"), Scalar("int"))


def _joined(values: pa.Array) -> pa.Buffer:
    whole = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
    return pc.binary_join(whole, _LINE)[0].as_buffer()
