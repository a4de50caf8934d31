"""Decimals in texts: written as numbers are everywhere, not as Python alone reads them.

Python's ``Decimal`` also takes blanks around a number, underscores in it and the digits of every
script. Java, and so Spark, takes none of these.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.core.records.schema import Schema
from penstock.core.records.structs import struct_of

__all__ = ["ODD", "odd_decimal"]

ODD = re.compile(rb'[\\\x80-\xff]|[0-9.]_|_[-+.0-9]|" +[-+.0-9_]|[0-9._] +"')
"""In a record without it every decimal that was read is written as a number."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def odd_decimal(schema: Schema) -> Callable[[bytes], str | None] | None:
    """Return what finds a decimal in a good record that is not written as a number.

    None where records of this schema have no decimals.
    """
    if not schema.holds("decimal"):
        return None
    decoder = msgspec.json.Decoder(struct_of(schema, decimals_unread=True))

    def find(value: bytes) -> str | None:
        if ODD.search(value) is None:
            return None
        return next((text for text in _texts(decoder.decode(value)) if not _is_number(text)), None)

    return find


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _texts(found: Any) -> list[str]:
    """Return the texts of all decimals in a decoded value; those that are JSON numbers are good."""
    match found:
        case msgspec.Raw():
            text = msgspec.json.decode(found)
            return [text] if isinstance(text, str) else []
        case msgspec.Struct():
            return _texts(list(msgspec.structs.astuple(found)))
        case dict():
            return _texts(list(found.values()))
        case list():
            return [text for each in found for text in _texts(each)]
    return []
