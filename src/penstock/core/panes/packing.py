"""A key's pane state as bytes: one value to read and one to write per key and batch."""

from typing import Any

import msgspec

from penstock.core.panes.machine import KeyState, WindowState
from penstock.errors import DataError

__all__ = ["pack", "unpack"]

_VERSION = 1
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(strict=True)
_FIELDS = tuple(WindowState.__slots__)


def pack(key: KeyState) -> bytes:
    """Return the state as bytes that :func:`unpack` reads, also in a later release."""
    rows = [
        [*window, *(getattr(state, name) for name in _FIELDS)]
        for window, state in key.windows.items()
    ]
    return _ENCODER.encode([_VERSION, key.ordinal, rows])


def unpack(packed: bytes) -> KeyState:
    """Return the state that bytes hold; DataError where they are not this release's."""
    version, *rest = _DECODER.decode(packed)
    if version != _VERSION:
        raise DataError(
            f"pane state of version {version}, this release reads {_VERSION}",
            code="state.version",
            hint="rebuild it from the log",
        )
    ordinal, rows = rest
    return KeyState({(row[0], row[1]): _window_state(row) for row in rows}, ordinal)


def _window_state(row: list[Any]) -> WindowState:
    state = WindowState(**dict(zip(_FIELDS, row[2:], strict=True)))
    state.live = [((start, end), value) for (start, end), value in state.live]
    return state
