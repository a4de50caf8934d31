"""Which keys of a relation a condition leaves: so that only their owners are asked.

It is a help and no more: the condition is applied to every row all the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

from penstock.core.expression.tree import Call, Field, Literal, Node
from penstock.core.expression.types import BOOLEAN, from_field_type
from penstock.core.records.codec import key_encoder
from penstock.core.records.schema import Scalar, Schema

__all__ = ["EVERYTHING", "MOST_KEYS", "Access", "access_of", "all_of", "conjuncts"]

MOST_KEYS = 100
"""So many keys are asked for one by one; more are a range."""


@dataclass(frozen=True, slots=True)
class Access:
    """Some keys, or a range of them, as bytes on the log."""

    keys: tuple[bytes, ...] | None = None
    """None: all of the range."""
    start: bytes = b""
    end: bytes | None = None
    """The first key behind the range; None: it has no end."""


EVERYTHING = Access()
_SEVERAL_TEXTS = (Scalar("float"), Scalar("decimal"))
"""Of equal values of these types there may be several texts."""


def conjuncts(node: Node | None) -> Iterator[Node]:
    """Yield the conditions that must all be true."""
    if node is None:
        return
    if isinstance(node, Call) and node.name == "and":
        for each in node.arguments:
            yield from conjuncts(each)
    else:
        yield node


def all_of(conditions: Iterable[Node]) -> Node | None:
    """Return the condition that is true where all are; None: there are none."""
    listed = tuple(conditions)
    if len(listed) <= 1:
        return listed[0] if listed else None
    return Call("and", listed, BOOLEAN, any(each.nullable for each in listed))


def access_of(schema: Schema, condition: Node | None) -> Access:
    """Return the keys of rows for which a condition over a relation can be true."""
    encode = key_encoder(schema)
    if encode is None or condition is None:
        return EVERYTHING
    conditions = list(conjuncts(condition))
    values = [_values(name, schema, conditions) for name in schema.key]
    found = [each for each in values if each is not None]
    if len(found) == len(values):
        count = 1
        for each in found:
            count *= len(each)
        if count <= MOST_KEYS:
            rows = (dict(zip(schema.key, each, strict=True)) for each in product(*found))
            return Access(keys=tuple(dict.fromkeys(encode(SimpleNamespace(**row)) for row in rows)))
    return _range(schema, conditions)


def _values(name: str, schema: Schema, conditions: list[Node]) -> list[Any] | None:
    """Return the values that a key field may have; None: any."""
    field = schema.field(name)
    if field is None or field.type in _SEVERAL_TEXTS:
        return None
    type_ = from_field_type(field.type)
    for condition in conditions:
        match condition:
            case Call("equal" | "same", (Field(found), Literal(value, kind))) | Call(
                "equal" | "same", (Literal(value, kind), Field(found))
            ) if found == name and kind == type_:
                return [] if value is None else [value]
            case Call("in", (Field(found), *items)) if found == name:
                listed = [each.value for each in items if isinstance(each, Literal)]
                if len(listed) == len(items) and all(each.type == type_ for each in items):
                    return [value for value in dict.fromkeys(listed) if value is not None]
    return None


def _range(schema: Schema, conditions: list[Node]) -> Access:
    """Return the range of a key that is one text: its bytes have the order of the texts."""
    field = schema.field(schema.key[0])
    if len(schema.key) != 1 or field is None or field.type != Scalar("text"):
        return EVERYTHING
    start, end = b"", None
    for condition in conditions:
        low, high = _bounds(field.name, condition)
        start = max(start, low)
        end = high if end is None else end if high is None else min(end, high)
    return Access(start=start, end=end)


def _bounds(name: str, condition: Node) -> tuple[bytes, bytes | None]:
    match condition:
        case Call("greater" | "greater_or_equal", (Field(found), Literal(str(text)))) | Call(
            "less" | "less_or_equal", (Literal(str(text)), Field(found))
        ) if found == name:
            return text.encode(), None
        case Call("less", (Field(found), Literal(str(text)))) | Call(
            "greater", (Literal(str(text)), Field(found))
        ) if found == name:
            return b"", text.encode()
        case Call("less_or_equal", (Field(found), Literal(str(text)))) | Call(
            "greater_or_equal", (Literal(str(text)), Field(found))
        ) if found == name:
            return b"", text.encode() + b"\x00"
        case Call("between", (Field(found), Literal(str(low)), Literal(str(high)))) if (
            found == name
        ):
            return low.encode(), high.encode() + b"\x00"
        case Call("startswith", (Field(found), Literal(str(text)))) if found == name and text:
            return text.encode(), _behind(text.encode())
    return b"", None


def _behind(prefix: bytes) -> bytes | None:
    """Return the first bytes behind all those that begin so."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
