"""Decoded records as Arrow columns, a batch at a time, without a Python object for each cell.

Texts of instants are read by Arrow where their form leaves no doubt; see :func:`instants`.
"""

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.core.records.admission import exact_decimal
from penstock.core.records.schema import FieldType, ListOf, MapOf, Nested, Scalar

__all__ = ["InDoubtError", "bounds", "column", "instants"]

_FORMS = {
    len(form): np.frombuffer(form, np.uint8)
    for form in (
        b"0000-00-00T00:00:00Z",
        b"0000-00-00T00:00:00.000Z",
        b"0000-00-00T00:00:00.000000Z",
    )
}
"""The forms of an instant that Arrow and the codec read alike; each 0 is any digit."""

_ZERO, _NINE = ord("0"), ord("9")
_YEAR = slice(0, 4)


class InDoubtError(Exception):
    """A text that Arrow might read otherwise than the codec."""


def column(values: Sequence[Any], kind: FieldType, type_: pa.DataType) -> pa.Array:
    """Return values as a column of an Arrow type; None is null.

    Raises InDoubtError where an instant is a text in another form than the usual ones.
    """
    match kind:
        case Scalar("instant") if isinstance(_first(values), str):
            return instants(pa.array(values, pa.string()), type_)
        case Scalar("decimal"):
            # Arrow goes by how a decimal is written, and has no room for many zeros at its end.
            exact = [None if each is None else exact_decimal(each) for each in values]
            return pa.array(exact, type_)
        case ListOf(item):
            offsets, mask = _offsets(values)
            inner = list(chain.from_iterable(each for each in values if each))
            items = column(inner, item, type_.value_type)
            return pa.ListArray.from_arrays(offsets, items, type=type_, mask=mask)
        case MapOf(value):
            offsets, mask = _offsets(values)
            present = [each for each in values if each]
            keys = pa.array(list(chain.from_iterable(present)), type_.key_type)
            items = list(chain.from_iterable(each.values() for each in present))
            inner_column = column(items, value, type_.item_type)
            return pa.MapArray.from_arrays(offsets, keys, inner_column, type=type_, mask=mask)
        case Nested(schema):
            mask = _absent(values)
            columns = []
            for field, place in zip(schema.fields, type_, strict=True):
                read = attrgetter(field.name)
                inner = [None if each is None else read(each) for each in values]
                columns.append(column(inner, field.type, place.type))
            return pa.StructArray.from_arrays(columns, fields=list(type_), mask=mask)
    return pa.array(values, type_)


def instants(texts: pa.StringArray, type_: pa.DataType) -> pa.Array:
    """Return instants of texts which all have one of the usual forms, in UTC; else InDoubtError."""
    present = texts.drop_null() if texts.null_count else texts
    starts = bounds(present)
    lengths = np.diff(starts)
    data = np.frombuffer(present.buffers()[2] or b"", np.uint8)
    for length in np.unique(lengths):
        form = _FORMS.get(int(length))
        if form is None:
            raise InDoubtError
        places = starts[:-1][lengths == length]
        if not _has_form(data[places[:, None] + np.arange(length)], form):
            raise InDoubtError
    try:
        return texts.cast(type_)
    except pa.ArrowInvalid as error:
        raise InDoubtError from error


def bounds(values: pa.Array) -> Any:
    """Return where each text or run of bytes begins in its data, and where the last ends."""
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]


def _first(values: Sequence[Any]) -> Any:
    return next((each for each in values if each is not None), None)


def _has_form(rows: Any, form: Any) -> bool:
    digits = form == _ZERO
    found = rows[:, digits]
    return bool(
        (rows[:, ~digits] == form[~digits]).all()
        and (found >= _ZERO).all()
        and (found <= _NINE).all()
        # The year 0 is one for Arrow alone.
        and (rows[:, _YEAR] != _ZERO).any(axis=1).all()
    )


def _offsets(values: Sequence[Any]) -> tuple[pa.Array, pa.Array | None]:
    lengths = [len(each) if each else 0 for each in values]
    return pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32()), _absent(values)


def _absent(values: Sequence[Any]) -> pa.Array | None:
    return pa.array([each is None for each in values], pa.bool_()) if None in values else None
