"""The values of one state as bytes on its changelog.

A changelog record's key is the state's name, a zero byte and the key of the records the value
belongs to; its value is the state's value as JSON; no value: the key was deleted. A name is an
identifier, so no state's records begin with a zero byte: such keys are Penstock's own marks.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from penstock.core.state import StateSpec
from penstock.errors import ConfigurationError

__all__ = ["MARKER_KEY", "StateCodec"]

MARKER_KEY = b"\x00marker"
"""The key of the record that a restore writes first and reads up to."""

_ENCODER = msgspec.json.Encoder()
_ROUND_TRIP_FAILURES = (msgspec.MsgspecError, TypeError, ValueError, RecursionError)


class StateCodec:
    """Encodes and decodes the values of one state by its declared type."""

    def __init__(self, spec: StateSpec, *, changelog: str) -> None:
        self._spec = spec
        self._changelog = changelog
        self._decoder = msgspec.json.Decoder(spec.type)
        self.prefix = spec.name.encode() + b"\x00"
        """What the changelog keys of this state begin with; the record's key follows."""
        self.refuses: Callable[[Any], str | None] = _SCALAR_CHECKS.get(spec.type, self._tried)
        """Says why a value cannot be kept, or None. What passes can be restored."""

    def encode(self, value: Any) -> bytes:
        """Return a value that was not refused as bytes."""
        return _ENCODER.encode(value)

    def decode(self, value: bytes, *, record_key: bytes) -> Any:
        """Return the value that the changelog holds for a record's key.

        ConfigurationError where it is not of the state's type: the type has changed, or somebody
        else wrote there. Going on without it would give wrong results in silence.
        """
        try:
            return self._decoder.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"the state {self._spec.name!r} cannot be restored: its value for the key "
                f"{record_key!r} in {self._changelog} is not {_type_name(self._spec.type)}",
                code="state.unreadable",
                detail=str(error),
                hint="give the state back its type, or give the new one another name",
            ) from error

    def _tried(self, value: Any) -> str | None:
        try:
            self._decoder.decode(_ENCODER.encode(value))
        except _ROUND_TRIP_FAILURES as error:
            return f"{error} (the state {self._spec.name!r} holds {_type_name(self._spec.type)})"
        return None


def _type_name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _exactly(kind: type) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if type(value) is kind:
            return None
        return f"a state of {kind.__name__} was given {type(value).__name__}"

    return check


def _is_float(value: Any) -> str | None:
    if type(value) not in {float, int}:
        return f"a state of float was given {type(value).__name__}"
    return None if isfinite(value) else f"a state of float was given {value}"


# The common types are checked without a trial encoding: this runs once per record.
_SCALAR_CHECKS: dict[Any, Callable[[Any], str | None]] = {
    int: _exactly(int),
    bool: _exactly(bool),
    float: _is_float,
}
