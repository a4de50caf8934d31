"""Filters as text: ``list = 'home' and not done``, in the words of expressions.

A text becomes the filter document that says the same. Three-valued logic stays: a comparison with
null is neither true nor false, and ``not`` does not make it true. So each part of the text gives
two filters: one of the documents for which it is true, and one of those for which it is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.expression.fault import FaultError
from penstock.core.expression.parsing.grammar import read
from penstock.core.expression.parsing.syntax import Call, Constant, Member, Name, Syntax
from penstock.core.live.refusal import refuse
from penstock.core.live.values import NULL, kind_of, order_of

__all__ = ["CLAIMS", "LONGEST_TEXT", "filter_of_text"]

CLAIMS = "claims"
"""What is known of a caller has this name in rules."""
LONGEST_TEXT = 10_000

Filter = dict[str, Any]
_ALL: Filter = {}
_NONE: Filter = {"$nor": [{}]}
_OPERATORS = {"=": "$eq", "<>": "$ne", "<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: bool(one == other),
    "<>": lambda one, other: bool(one != other),
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


@dataclass(frozen=True, slots=True)
class _Both:
    """The filters of the documents for which something is true, and for which it is false."""

    true: Filter
    false: Filter


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that is known."""

    value: Any


_UNKNOWN = _Both(_NONE, _NONE)


def filter_of_text(text: str, *, claims: Mapping[str, Any] | None = None) -> Filter:
    """Return the filter that a text says; a DataError says what is wrong with it.

    With ``claims`` the text may use them: ``owner = claims.sub``. One that is missing is null.
    """
    if len(text) > LONGEST_TEXT:
        raise _refused(f"a filter has at most {LONGEST_TEXT:,} characters")
    try:
        syntax = read(text)
    except FaultError as error:
        fault = error.fault
        raise _refused(f"{fault.message}\n{fault.pointer(text)}", fault.hint) from None
    return _Translator(claims).both(syntax).true


class _Translator:
    def __init__(self, claims: Mapping[str, Any] | None) -> None:
        self._claims = claims

    def both(self, node: Syntax) -> _Both:
        """Return the filters of a condition."""
        if not isinstance(node, Call):
            return self._plain(self._operand(node))
        name, arguments = node.name, node.arguments
        if name in ("and", "or"):
            parts = [self.both(each) for each in arguments]
            true, false = [each.true for each in parts], [each.false for each in parts]
            if name == "and":
                return _Both({"$and": true}, {"$or": false})
            return _Both({"$or": true}, {"$and": false})
        if name == "not":
            inner = self.both(arguments[0])
            return _Both(inner.false, inner.true)
        return self._test(name, [self._operand(each) for each in arguments])

    def _test(self, name: str, operands: list[str | _Value]) -> _Both:
        if name in _OPERATORS:
            return self._compare(name, operands[0], operands[1])
        if name in ("is null", "is not null", "<=>"):
            return self._null_safe(name, operands)
        if name == "between":
            low = self._compare(">=", operands[0], operands[1])
            high = self._compare("<=", operands[0], operands[2])
            return _Both({"$and": [low.true, high.true]}, {"$or": [low.false, high.false]})
        if name == "in":
            return self._in(operands[0], _values(operands[1:]))
        if name in ("like", "rlike"):
            return _matching(name, operands)
        if name == "array_contains":
            return self._contains(operands)
        hint = "filters have comparisons, and, or, not, in, between, is null, like, array_contains"
        raise _refused(f"{name!r} cannot be used in a filter", hint)

    def _operand(self, node: Syntax) -> str | _Value:
        """Return the path of a field, or a value."""
        if isinstance(node, Constant):
            return _Value(node.value)
        if isinstance(node, Name):
            return node.name
        if isinstance(node, Member):
            of = self._operand(node.of)
            if of == CLAIMS and self._claims is not None:
                return _Value(self._claims.get(node.name))
            if isinstance(of, _Value):
                inner = of.value
                return _Value(inner.get(node.name) if isinstance(inner, Mapping) else None)
            return f"{of}.{node.name}"
        what = f"{node.name!r}" if isinstance(node, Call) else type(node).__name__.lower()
        raise _refused(f"{what} cannot be compared in a filter", "compare a field with a value")

    def _plain(self, operand: str | _Value) -> _Both:
        if isinstance(operand, str):
            return _Both({operand: True}, {operand: False})
        if operand.value is None:
            return _UNKNOWN
        if isinstance(operand.value, bool):
            return _Both(_ALL, _NONE) if operand.value else _Both(_NONE, _ALL)
        raise _refused(f"{operand.value!r} is neither true nor false")

    def _compare(self, sign: str, one: str | _Value, other: str | _Value) -> _Both:
        if isinstance(one, _Value) and isinstance(other, _Value):
            return _constant(sign, one.value, other.value)
        if isinstance(one, _Value):
            sign, one, other = _MIRRORED[sign], other, one
        if not isinstance(other, _Value) or not isinstance(one, str):
            raise _refused("two fields cannot be compared", "compare a field with a value")
        if not _is_scalar(other.value):
            return _UNKNOWN
        return _Both(
            _condition(one, sign, other.value), _condition(one, _OPPOSITE[sign], other.value)
        )

    def _null_safe(self, name: str, operands: Sequence[str | _Value]) -> _Both:
        one, other = operands[0], operands[1] if name == "<=>" else _Value(None)
        if isinstance(one, _Value):
            one, other = other, one
        if isinstance(one, _Value) and isinstance(other, _Value):
            found = _Both(_ALL, _NONE) if one.value == other.value else _Both(_NONE, _ALL)
        elif isinstance(one, str) and isinstance(other, _Value):
            found = _Both({one: {"$eq": other.value}}, {one: {"$ne": other.value}})
        else:
            raise _refused("two fields cannot be compared", "compare a field with a value")
        return _Both(found.false, found.true) if name == "is not null" else found

    def _in(self, one: str | _Value, values: list[Any]) -> _Both:
        if isinstance(one, _Value):
            parts = [_constant("=", one.value, each) for each in values] or [_Both(_NONE, _ALL)]
            return _Both(
                {"$or": [each.true for each in parts]}, {"$and": [each.false for each in parts]}
            )
        known = [each for each in values if _is_scalar(each)]
        true: Filter = {one: {"$in": known}}
        false: Filter = {"$and": [{one: {"$nin": known}}, {one: {"$ne": None}}]}
        return _Both(true, false if len(known) == len(values) else _NONE)

    def _contains(self, operands: Sequence[str | _Value]) -> _Both:
        """Return where a list holds a value: a list of the caller, or one of the document."""
        if len(operands) != 2:  # noqa: PLR2004 - the list and the value
            raise _refused("array_contains takes a list and a value")
        held, value = operands
        if isinstance(held, _Value):
            return self._in(value, held.value) if isinstance(held.value, list) else _UNKNOWN
        if not isinstance(value, _Value):
            raise _refused("two fields cannot be compared", "compare a field with a value")
        return self._compare("=", held, value)


def _condition(path: str, sign: str, value: Any) -> Filter:
    if sign == "<>":
        return {"$and": [{path: {"$ne": value}}, {path: {"$ne": None}}]}
    return {path: {_OPERATORS[sign]: value}}


def _constant(sign: str, one: Any, other: Any) -> _Both:
    if not (_is_scalar(one) and _is_scalar(other)):
        return _UNKNOWN
    same = kind_of(one) == kind_of(other)
    holds = _COMPARE[sign](order_of(one), order_of(other)) if same else sign == "<>"
    return _Both(_ALL, _NONE) if holds else _Both(_NONE, _ALL)


def _is_scalar(value: Any) -> bool:
    """Whether a value is one that a field can equal; null is not, and neither is a list."""
    return not isinstance(value, list | dict) and kind_of(value) != NULL


def _values(operands: Sequence[str | _Value]) -> list[Any]:
    if any(isinstance(each, str) for each in operands):
        raise _refused("a list of IN has values only")
    return [each.value for each in operands if isinstance(each, _Value)]


def _matching(name: str, operands: Sequence[str | _Value]) -> _Both:
    path, *rest = operands
    texts = [each.value for each in rest if isinstance(each, _Value)]
    if not isinstance(path, str) or not texts or not all(isinstance(each, str) for each in texts):
        raise _refused(f"{name} compares a field with a text")
    pattern = texts[0] if name == "rlike" else _of_like(texts[0], texts[1] if texts[1:] else "\\")
    test = {"$regex": pattern, "$options": "s"}
    return _Both({path: test}, {"$and": [{path: {"$not": test}}, {path: {"$ne": None}}]})


def _of_like(text: str, escape: str) -> str:
    found, letters = [], iter(text)
    for letter in letters:
        if letter == escape:
            found.append(re.escape(next(letters, escape)))
        else:
            found.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return f"^{''.join(found)}$"


def _refused(text: str, hint: str = "") -> Exception:
    return refuse(text, operator="filter", path="", hint=hint)
