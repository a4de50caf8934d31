"""Limits and defaults of a field against its type: what no value could meet is told at once.

The codec would refuse such a declaration when it is made, which is when a part starts.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec

from penstock.core.matching.matching import searcher
from penstock.core.records.schema import FieldType, Limits, ListOf, MapOf, Scalar

__all__ = ["BoundError", "check_default", "check_limits"]

_NUMBERS = frozenset({Scalar("int"), Scalar("float")})
_LONG = frozenset({Scalar("text"), Scalar("bytes")})
_LOWER, _UPPER = ("ge", "gt"), ("le", "lt")
_LENGTHS = ("min_length", "max_length")
_MOST = 2**63


class BoundError(Exception):
    """Why limits or a default do not belong to their field; ``code`` and ``hint`` say it short."""

    def __init__(self, text: str, *, code: str, hint: str) -> None:
        super().__init__(text)
        self.code = code
        self.hint = hint


def check_limits(kind: FieldType, limits: Limits) -> None:
    """Raise BoundError if a type cannot have such limits, or no value meets them."""
    said = limits.to_json()
    for name in (*_LOWER, *_UPPER):
        if name in said:
            _check_number(kind, name, said[name])
    for name in _LENGTHS:
        if name in said:
            _check_length(kind, name, said[name])
    if "pattern" in said and kind != Scalar("text"):
        raise _wrong("pattern", kind, "a pattern is for texts")
    for pair in (_LOWER, _UPPER):
        if all(name in said for name in pair):
            text = f"it has both {pair[0]} and {pair[1]}"
            raise BoundError(text, code="record.limits", hint="one of them is enough")
    _check_order(said)


def check_default(annotation: Any, limits: Limits | None, given: Any) -> None:
    """Raise BoundError if a default is no value that a record may have there."""
    default = msgspec.to_builtins(given)
    if isinstance(given, list | dict) and given:
        raise _wrong_default(default, "a list or dict that is a default must be empty")
    try:
        msgspec.convert(default, annotation)
    except msgspec.ValidationError as error:
        raise _wrong_default(default, str(error)) from error
    if limits is None or limits.pattern is None or default is None:
        return
    if not searcher(limits.pattern)(default):
        raise _wrong_default(default, f"it does not match {limits.pattern!r}")


def _check_number(kind: FieldType, name: str, bound: Any) -> None:
    if kind not in _NUMBERS:
        raise _wrong(name, kind, f"{name} is for int and float")
    whole = type(bound) is int and -_MOST <= bound < _MOST
    if not (whole or (kind == Scalar("float") and type(bound) is float and isfinite(bound))):
        raise _wrong(name, kind, f"{name}={bound!r} is no such number")


def _check_length(kind: FieldType, name: str, bound: Any) -> None:
    if kind not in _LONG and not isinstance(kind, ListOf | MapOf):
        raise _wrong(name, kind, f"{name} is for str, bytes, lists and dicts")
    if type(bound) is not int or not 0 <= bound < _MOST:
        raise _wrong(name, kind, f"{name}={bound!r} is no length")


def _check_order(said: Mapping[str, Any]) -> None:
    """Raise if there is nothing between the limits."""
    for lows, highs in ((_LOWER, _UPPER), (_LENGTHS[:1], _LENGTHS[1:])):
        low = next((name for name in lows if name in said), None)
        high = next((name for name in highs if name in said), None)
        if low is None or high is None:
            continue
        open_end = {low, high} & {"gt", "lt"}
        if said[low] > said[high] or (open_end and said[low] == said[high]):
            text = f"no value has {low}={said[low]!r} and {high}={said[high]!r}"
            raise BoundError(text, code="record.limits", hint="exchange them, or widen one")


def _wrong(name: str, kind: FieldType, why: str) -> BoundError:
    hint = f"remove {name}, or check the value in your own code"
    return BoundError(f"{why}; the field is {kind}", code="record.limits", hint=hint)


def _wrong_default(default: Any, why: str) -> BoundError:
    hint = "choose a default that a record may hold"
    return BoundError(f"the default {default!r}: {why}", code="record.default", hint=hint)
