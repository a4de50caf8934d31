"""Conditions on the records of a topic, as ``topics tail --where`` takes them.

Where the topic has a type, a condition is an expression. A topic may also hold records of any type,
or of none: there, values are compared as they are found (``FIELD=VALUE``). Where there is a type,
this shorter form spares the quotes around texts and instants.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.cli.records import Shown
from penstock.core.expression import Expression, compile_predicate, examine, parse
from penstock.core.records.codec import JsonCodec
from penstock.core.records.record import RecordType
from penstock.core.records.schema import Scalar, Schema
from penstock.errors import ConfigurationError, DataError

__all__ = ["Comparison", "Holds", "read_comparison", "read_condition"]

Holds = Callable[[Shown], bool]

_MISSING = object()
_ANY_SIZE = 2**31 - 1
"""What the broker took is looked at, however large its stream lets records be."""
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_COMPARISON = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(!=|>=|<=|=|>|<)\s*(.*?)\s*", re.DOTALL)
_WORD = re.compile(r"[^\s'\"()]+")
_LITERAL = (Scalar("bool"), Scalar("int"), Scalar("float"), Scalar("decimal"))
"""Types whose values an expression has as they are typed here."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field (``a.b`` for one inside another), an operator, and what to compare with."""

    field: tuple[str, ...]
    operator: str
    text: str

    def holds(self, value: Any) -> bool:
        """Whether a decoded record meets the condition; one without the field only by ``!=``."""
        found = self._find(value)
        if found is _MISSING:
            return self.operator == "!="
        try:
            return _OPERATORS[self.operator](*_comparable(found, self.text))
        except TypeError:
            return self.operator == "!="

    def _find(self, value: Any) -> Any:
        for name in self.field:
            if not isinstance(value, dict) or name not in value:
                return _MISSING
            value = value[name]
        return value


def read_comparison(text: str) -> Comparison | None:
    """Return what ``FIELD=VALUE`` states, None for any other text."""
    found = _COMPARISON.fullmatch(text)
    if found is None:
        return None
    name, sign, value = found.groups()
    return Comparison(tuple(name.split(".")), sign, value)


def read_condition(text: str, record: RecordType[Any] | None) -> Holds:
    """Return whether a record meets a condition: an expression, or ``FIELD=VALUE``.

    ``record`` is the type of the topic, None if it has none: then only ``FIELD=VALUE`` can be
    asked for (ConfigurationError). A text that is neither is refused with the mistakes of the
    expression (DefinitionError).
    """
    short = read_comparison(text)
    if record is None:
        if short is None:
            raise ConfigurationError(
                f"{text!r} is not FIELD=VALUE (or another of != > < >= <=), and an expression"
                " needs a topic with a type",
                code="where.no-type",
                hint="name the application that declares the topic: --app APP",
            )
        return _compared(short)
    found = examine(text, record.schema)
    # An expression that compares with null is never true; FIELD=null asks for what is null.
    expressed = isinstance(found, Expression) and not (short is not None and short.text == "null")
    if short is not None and not expressed and _is_short(short, record.schema):
        return _compared(short)
    return _expressed(parse(text, record.schema), record)


def _is_short(short: Comparison, schema: Schema) -> bool:
    """Whether a text that is no expression is meant as the shorter form, rather than a mistake."""
    field = schema.field(short.field[0])
    if field is None or not _WORD.fullmatch(short.text):
        return False
    return short.text == "null" or field.type not in _LITERAL


def _compared(short: Comparison) -> Holds:
    return lambda shown: short.holds(shown.value)


def _expressed(expression: Expression, record: RecordType[Any]) -> Holds:
    """Return whether an expression is true of a record; never of one that is not of its type."""
    predicate = compile_predicate(expression)
    codec: JsonCodec[Any] = JsonCodec(record, max_bytes=_ANY_SIZE)

    def holds(shown: Shown) -> bool:
        try:
            return predicate(codec.decode(shown.record.value))
        except DataError:
            return False

    return holds


def _comparable(found: Any, text: str) -> tuple[Any, Any]:
    """Return both sides as one type: the field's, where the text can be read as that."""
    if found is None or text == "null":
        return found is None, text == "null"
    if isinstance(found, bool):
        return found, {"true": True, "false": False}.get(text.lower(), text)
    try:
        if isinstance(found, int | float):
            return found, float(text)
        if isinstance(found, str):
            return _instant(found), _instant(text)
    except (ValueError, OverflowError):
        pass  # the two are compared as texts
    return str(found), text


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.astimezone()
