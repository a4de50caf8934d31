"""The values of one state: as they are held in memory, and as bytes on its changelog.

A changelog record's key is the state's name, a zero byte and the place of the value: the key of the
records it belongs to, for an entry of a map with its name. Its value is JSON, behind the instant of
its expiry where the state has a time to live; no value: it was deleted. A name is an identifier, so
no state's records begin with a zero byte: such keys are Penstock's own marks.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

from penstock.core.graph.state import StateSpec
from penstock.core.topic import DEFAULT_MAX_RECORD_BYTES
from penstock.errors import ConfigurationError

__all__ = [
    "MARKER_KEY",
    "MAX_STATE_BYTES",
    "RENAME_HINT",
    "StateCodec",
    "check_size",
    "spec_identity",
]

MARKER_KEY = b"\x00marker"
"""The key of the record that a restore writes first and reads up to."""

MAX_STATE_BYTES = DEFAULT_MAX_RECORD_BYTES - (4 << 10)
"""The largest value that a state, a map's entry or a timer may have, its key included.

What every changelog takes, also on a cluster with Kafka's own limits: a larger one would be refused
at the commit, again and again, when nobody knows any more which record it came from.
"""
RENAME_HINT = (
    "give the state back its type, or the new one another name; penstock reset rebuilds it from the"
    " input"
)
_MOST_ESCAPED = 6
"""A character of a text is at most so many bytes in JSON for each that it is in UTF-8."""
_SHORT = MAX_STATE_BYTES // _MOST_ESCAPED
"""Fewer characters of ASCII than this are never too large."""
_CANONICAL = frozenset({int, bool, str})
"""Values of these types that are equal are the same JSON."""
_MOST_DIGITS = 4000
"""Python reads no numbers that are much longer."""
_LEAST_INT, _MOST_INT = -(10**_MOST_DIGITS), 10**_MOST_DIGITS
_ENDLESS = (b"null", b"NaN", b"Infinity")
"""What a number that is not finite is in JSON: of a float, of a decimal."""
_ENCODER = msgspec.json.Encoder()
_ROUND_TRIP_FAILURES = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)


class StateCodec:
    """Holds, encodes and decodes the values of one state by its declared type."""

    def __init__(self, spec: StateSpec, *, changelog: str) -> None:
        self._spec = spec
        self._changelog = changelog
        self._decoder = msgspec.json.Decoder(spec.type)
        self.prefix = spec.name.encode() + b"\x00"
        """What the changelog keys of this state begin with; the place follows."""
        self.plain = spec.type in _PLAIN_CHECKS
        """Whether values are held as they are; else as JSON."""
        self.refuses: Callable[[Any], str | None] = _PLAIN_CHECKS.get(spec.type, self._refusal)
        """Says why a value cannot be kept, or None. What passes can be restored."""
        self._floats = spec.type is float

    def hold(self, value: Any) -> Any:
        """Return a value as it is held; TypeError where it could not be restored."""
        if not self.plain:
            return self._tried(value)
        if refusal := self.refuses(value):
            raise TypeError(refusal)
        return float(value) if self._floats else value

    def give(self, held: Any) -> Any:
        """Return a held value as the user's code gets it: their own."""
        return held if self.plain else self._decoder.decode(held)

    def json(self, value: Any) -> bytes:
        """Return a value as JSON; TypeError where it could not be restored."""
        if not self.plain:
            return self._tried(value)
        if refusal := self.refuses(value):
            raise TypeError(refusal)
        return _ENCODER.encode(float(value) if self._floats else value)

    @property
    def namer(self) -> Callable[[Any], bytes]:
        """What gives the name of a map's entry as JSON: one for all values that are equal."""
        return self.json if self._spec.type in _CANONICAL else self.name

    def name(self, value: Any) -> bytes:
        """Return the name of a map's entry, whatever its type."""
        return _ENCODER.encode(_canonical(self._decoder.decode(self.json(value))))

    def dump(self, held: Any) -> bytes:
        """Return a held value as the changelog holds it."""
        return _ENCODER.encode(held) if self.plain else held

    def load(self, value: bytes, *, place: bytes) -> Any:
        """Return, as it is held, the value that the changelog has for a place.

        ConfigurationError where it is not of the state's type: the type has changed, or somebody
        else wrote there. Going on without it would give wrong results in silence.
        """
        try:
            decoded = self._decoder.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"the state {self._spec.name!r} cannot be restored: its value for the key "
                f"{place!r} in {self._changelog} is not {_type_name(self._spec.type)}",
                code="state.unreadable",
                detail=str(error),
                hint=RENAME_HINT,
            ) from error
        return decoded if self.plain else value

    def _refusal(self, value: Any) -> str | None:
        try:
            self._tried(value)
        except TypeError as error:
            return str(error)
        return None

    def _tried(self, value: Any) -> bytes:
        """Return a value as JSON that was read again; TypeError where it cannot be."""
        try:
            encoded = _ENCODER.encode(value)
            self._decoder.decode(encoded)
            # JSON has no such number, and null in its place may be of the type as well.
            endless = any(word in encoded for word in _ENDLESS) and _has_no_number(
                msgspec.to_builtins(value, builtin_types=(Decimal,))
            )
        except _ROUND_TRIP_FAILURES as error:
            text = f"{error} (the state {self._spec.name!r} holds {_type_name(self._spec.type)})"
            raise TypeError(text) from error
        if endless:
            raise TypeError(f"a number in the state {self._spec.name!r} is not finite")
        return encoded


def check_size(name: str, size: int) -> None:
    """Raise a ValueError where something is larger than the changelog takes."""
    if size > MAX_STATE_BYTES:
        raise ValueError(f"{name} would take {size} bytes, its key included: {MAX_STATE_BYTES} can")


def spec_identity(spec: StateSpec) -> str:
    """Return a text that is another one when the state's values may no longer be readable."""
    try:
        schema = _ENCODER.encode(msgspec.json.schema(spec.type)).decode()
    except (TypeError, RuntimeError):  # some types have no schema; their names must do
        schema = str(spec.type)
    return f"{spec} {schema}"


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _canonical(name: Any) -> Any:
    """Return of names that are equal always the same one."""
    if isinstance(name, float):
        return name + 0.0  # of the two zeros, the positive
    if isinstance(name, datetime) and name.tzinfo is not None:
        return name.astimezone(UTC)
    if isinstance(name, Decimal) and name.is_finite():
        sign, digits, exponent = name.as_tuple()
        kept = len(digits)
        while kept > 1 and digits[kept - 1] == 0:
            kept -= 1
        left_out = len(digits) - kept
        return Decimal((sign, digits[:kept], int(exponent) + left_out)) if name else Decimal(0)
    return name


def _has_no_number(value: Any) -> bool:
    """Return whether a number that is not finite is somewhere in lists and maps."""
    if isinstance(value, float | Decimal):
        return not isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_no_number, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_no_number, value))


def _exactly(kind: type) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if type(value) is kind:
            return None
        return f"a state of {kind.__name__} was given {type(value).__name__}"

    return check


def _is_int(value: Any) -> str | None:
    if type(value) is int:
        if _LEAST_INT < value < _MOST_INT:
            return None
        return f"a state of int was given a number of more than {_MOST_DIGITS} digits"
    return f"a state of int was given {type(value).__name__}"


def _is_float(value: Any) -> str | None:
    if type(value) is float:
        return None if isfinite(value) else f"a state of float was given {value}"
    if type(value) is not int:
        return f"a state of float was given {type(value).__name__}"
    try:
        exact = float(value) == value
    except OverflowError:
        exact = False
    return None if exact else "a state of float was given a whole number that no float is equal to"


def _is_text(value: Any) -> str | None:
    if type(value) is not str:
        return f"a state of str was given {type(value).__name__}"
    if value.isascii() and len(value) < _SHORT:
        return None
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        return f"a state of str was given what is no text: {error}"
    if size * _MOST_ESCAPED > MAX_STATE_BYTES:
        size = len(_ENCODER.encode(value))
        if size > MAX_STATE_BYTES:
            return f"a state of str was given {size} bytes of JSON: {MAX_STATE_BYTES} can be kept"
    return None


# The plain types cannot be changed in place, and are checked without a trial encoding.
_PLAIN_CHECKS: dict[Any, Callable[[Any], str | None]] = {
    int: _is_int,
    bool: _exactly(bool),
    float: _is_float,
    str: _is_text,
    bytes: _exactly(bytes),
}
