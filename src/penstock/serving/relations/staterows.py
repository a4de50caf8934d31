"""A state of a service as rows: the fields of its key, and its value.

A map has a row for each entry. A value whose type is none of a record is its JSON as a text.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, get_type_hints

import msgspec

from penstock.core.graph.state import StateSpec
from penstock.core.records.annotations import read_field
from penstock.core.records.keytext import key_reader
from penstock.core.records.schema import Field, Nested, Scalar, Schema
from penstock.errors import DataError

__all__ = ["StateShape"]

_VALUE, _ENTRY = "value", "entry"
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)


class StateShape:
    """The columns of a state, and what makes rows of a key with its value."""

    ranged = routed = True
    """Keys have the order of the log, and are in the tasks that they lead to."""

    def __init__(self, name: str, keyed: Schema, spec: StateSpec) -> None:
        keys = [found for each in keyed.key if (found := keyed.field(each)) is not None]
        taken = {each.name for each in keys}
        fields, hints = [], []
        if spec.kind == "map":
            fields, hints = [_field(_free(_ENTRY, taken), spec.key)], [spec.key]
        kind: Any = list[spec.type] if spec.kind == "list" else spec.type  # type: ignore[name-defined]
        fields.append(_field(_free(_VALUE, taken), kind))
        hints.append(kind)
        plain = [Field(name=each.name, type=each.type) for each in keys]
        self.keyed = Schema(name=name, fields=(*plain, *(f for f, _ in fields)), key=keyed.key)
        """Its key is that of the log, which the owner of a row is found by."""
        entry = (fields[0][0].name,) if spec.kind == "map" else ()
        self.schema = replace(self.keyed, key=(*keyed.key, *entry))
        """Its key tells rows apart."""
        self._name = name
        self._key = key_reader(keyed)
        self._map = spec.kind == "map"
        self._reads = [
            msgspec.json.Decoder(hint).decode if typed else _text
            for hint, (_, typed) in zip(hints, fields, strict=True)
        ]
        self._pairs = msgspec.json.Decoder(list[tuple[msgspec.Raw, msgspec.Raw]])
        self._named = msgspec.json.Decoder(dict[str, msgspec.Raw])
        self._row = msgspec.defstruct("Row", [each.name for each in self.schema.fields], gc=False)

    def place(self, key: bytes) -> bytes:
        """Return what a key on the log is called in the state: the same."""
        return key

    def rows(self, key: bytes, value: bytes) -> Iterable[Any]:
        """Return the rows of a key; DataError: its value is not what the state says."""
        try:
            head = self._key(key)
            if not self._map:
                return (self._row(*head, self._reads[0](value)),)
            return [
                self._row(*head, self._reads[0](entry), self._reads[1](each))
                for entry, each in self._entries(value)
            ]
        except _UNREADABLE as error:
            raise DataError(
                f"not a row of {self._name}: {error}", code="state.unreadable"
            ) from error

    def _entries(self, value: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the names and the values of a map as JSON."""
        if value.startswith(b"["):  # its names cannot be names in JSON
            for entry, each in self._pairs.decode(value):
                yield bytes(entry), bytes(each)
            return
        whole = self.schema.fields[-2].type in (Scalar("int"), Scalar("bool"), Scalar("float"))
        for text, each in self._named.decode(value).items():
            yield text.encode() if whole else msgspec.json.encode(text), bytes(each)


def _text(raw: bytes) -> str:
    return raw.decode()


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no field of the key has."""
    while name in taken:
        name = f"state_{name}"
    return name


def _field(name: str, hint: Any) -> tuple[Field, bool]:
    """Return a column of values of a type, and whether they are read as such."""
    try:
        found, _ = read_field(name, hint, msgspec.NODEFAULT)
    except (TypeError, ValueError, IndexError):
        found = None
    if found is not None:
        return found, True
    if (inner := _inner(hint)) is not None:
        return Field(name=name, type=Nested(inner)), True
    return Field(name=name, type=Scalar("text"), nullable=True), False


def _inner(hint: Any) -> Schema | None:
    """Return the fields of a class that is no record type, as far as a record could have them."""
    if not isinstance(hint, type):
        return None
    if not (issubclass(hint, msgspec.Struct) or dataclasses.is_dataclass(hint)):
        return None
    fields = []
    for name, kind in get_type_hints(hint, include_extras=True).items():
        found, typed = _field(name, kind)
        if typed:
            fields.append(found)
    return Schema(name=hint.__name__, fields=tuple(fields)) if fields else None
