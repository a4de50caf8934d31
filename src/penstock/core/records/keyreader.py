"""From the key of a record on the log back to the values of its fields: what a deletion says."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec

from penstock.core.records.annotations import HINTS
from penstock.core.records.schema import Choice, Field, Scalar, Schema
from penstock.errors import DataError

__all__ = ["key_reader"]


def key_reader(schema: Schema) -> Callable[[bytes | None], SimpleNamespace]:
    """Return the function from a key, as ``key_encoder`` writes it, to an object with its fields.

    It raises a DataError for bytes that are no key of such a record.

    >>> fields = (Field(name="word", type=Scalar("text")),)
    >>> schema = Schema(name="Count", fields=fields, key=("word",))
    >>> key_reader(schema)(b"water").word
    'water'
    """
    names = schema.key
    kinds = [_kind(schema.field(name)) for name in names]
    if len(names) == 1 and kinds[0] is str:
        read: Callable[[bytes], Any] = lambda key: (key.decode(),)  # noqa: E731
    elif len(names) == 1:
        only = msgspec.json.Decoder(kinds[0])
        quote = b"" if kinds[0] in (int, float, bool) else b'"'
        read = lambda key: (only.decode(quote + key + quote),)  # noqa: E731
    else:
        read = msgspec.json.Decoder(tuple[tuple(kinds)]).decode  # type: ignore[misc]

    def values(key: bytes | None) -> SimpleNamespace:
        if key is None:
            raise DataError(f"not a {schema.name}: its key is null", code="data.null-key")
        try:
            return SimpleNamespace(**dict(zip(names, read(key), strict=True)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = f"not a {schema.name}: {key[:100]!r} is not its key: {error}"
            raise DataError(text, code="data.key-mismatch") from error

    return values


def _kind(field: Field | None) -> Any:
    """Return what a value of the key is in Python."""
    if field is None or isinstance(field.type, Choice):
        return str
    return HINTS[field.type.name] if isinstance(field.type, Scalar) else Any
