"""Conditions on the fields of a record, as ``topics tail --where`` takes them.

A topic may hold records of any type, or of none, so values are compared as they are found; the
expression language needs a schema.
"""

import operator
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["Condition", "read_condition"]

_MISSING = object()
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_CONDITION = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(!=|>=|<=|=|>|<)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
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


def read_condition(text: str) -> Condition:
    """Return the condition that a text states; ArgumentTypeError says how to write one."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not FIELD=VALUE (or another of != > < >= <=)")
    name, sign, value = found.groups()
    return Condition(tuple(name.split(".")), sign, value)


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
