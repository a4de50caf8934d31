"""The values of one state: as they are held in memory, and as bytes on its changelog.

A changelog record's key is the state's name, a zero byte and the place of the value: the key of the
records it belongs to, for an entry of a map with its name. Its value is JSON, behind the instant of
its expiry where the state has a time to live; no value: it was deleted. A name is an identifier, so
no state's records begin with a zero byte: such keys are Penstock's own marks.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec

from penstock.core.state import StateSpec
from penstock.errors import ConfigurationError

__all__ = ["MARKER_KEY", "StateCodec", "spec_identity"]

MARKER_KEY = b"\x00marker"
"""The key of the record that a restore writes first and reads up to."""

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
        self.refuses: Callable[[Any], str | None] = _PLAIN_CHECKS.get(spec.type, self._tried)
        """Says why a value cannot be kept, or None. What passes can be restored."""

    def hold(self, value: Any) -> Any:
        """Return a value as it is held; TypeError where it could not be restored."""
        if not self.plain:
            return self.json(value)
        if refusal := self.refuses(value):
            raise TypeError(refusal)
        return value

    def give(self, held: Any) -> Any:
        """Return a held value as the user's code gets it: their own."""
        return held if self.plain else self._decoder.decode(held)

    def json(self, value: Any) -> bytes:
        """Return a value as JSON; TypeError where it could not be restored."""
        if refusal := self.refuses(value):
            raise TypeError(refusal)
        return _ENCODER.encode(value)

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
                hint="give the state back its type, or the new one another name; penstock reset"
                " rebuilds it from the input",
            ) from error
        return decoded if self.plain else value

    def _tried(self, value: Any) -> str | None:
        try:
            self._decoder.decode(_ENCODER.encode(value))
        except _ROUND_TRIP_FAILURES as error:
            return f"{error} (the state {self._spec.name!r} holds {_type_name(self._spec.type)})"
        return None


def spec_identity(spec: StateSpec) -> str:
    """Return a text that is another one when the state's values may no longer be readable."""
    try:
        schema = _ENCODER.encode(msgspec.json.schema(spec.type)).decode()
    except (TypeError, RuntimeError):  # some types have no schema; their names must do
        schema = str(spec.type)
    return f"{spec} {schema}"


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


def _is_text(value: Any) -> str | None:
    if type(value) is not str:
        return f"a state of str was given {type(value).__name__}"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"a state of str was given what is no text: {error}"
    return None


# The plain types cannot be changed in place, and are checked without a trial encoding.
_PLAIN_CHECKS: dict[Any, Callable[[Any], str | None]] = {
    int: _exactly(int),
    bool: _exactly(bool),
    float: _is_float,
    str: _is_text,
}
