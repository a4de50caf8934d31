"""Pane state as bytes: one value to read and one to write per key and batch."""

from typing import Any

import msgspec

from penstock.core.panes.machine import KeyState, WindowState
from penstock.errors import DataError

__all__ = ["decode", "encode", "pack", "unpack"]

_VERSION = 1
_BIG_INT, _BIG_KEYS = 1, 2
"""The codes of whole numbers that 64 bits do not hold, and of dicts that have such keys."""


def _from_extension(code: int, data: memoryview) -> Any:
    if code == _BIG_KEYS:
        return dict(_DECODER.decode(data))
    return int.from_bytes(data, "big", signed=True)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(strict=True, ext_hook=_from_extension)


def encode(value: Any) -> bytes:
    """Return plain data (null, numbers, texts, bytes, lists, dicts) as bytes."""
    try:
        return _ENCODER.encode(value)
    except OverflowError:
        return _ENCODER.encode(_with_extensions(value))


def decode(encoded: bytes) -> Any:
    """Return the plain data that bytes hold; tuples have become lists."""
    return _DECODER.decode(encoded)


def pack(key: KeyState) -> bytes:
    """Return the state as bytes that :func:`unpack` reads, also in a later release."""
    rows = [
        (
            *window,
            state.held,
            state.trigger,
            state.unseen,
            state.panes,
            state.settled,
            state.ended,
            state.closed,
            state.hold,
            state.live,
        )
        for window, state in key.windows.items()
    ]
    return encode([_VERSION, key.ordinal, rows])


def unpack(packed: bytes) -> KeyState:
    """Return the state that bytes hold; DataError where they are not this release's."""
    version, *rest = decode(packed)
    if version != _VERSION:
        raise DataError(
            f"pane state of version {version}, this release reads {_VERSION}",
            code="state.version",
            hint="rebuild it from the log",
        )
    ordinal, rows = rest
    return KeyState({(row[0], row[1]): _window_state(row) for row in rows}, ordinal)


def _window_state(row: list[Any]) -> WindowState:
    state = WindowState(*row[2:])
    if state.live:
        state.live = [((start, end), value) for (start, end), value in state.live]
    return state


def _with_extensions(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int() if _is_big(value):
            size = value.bit_length() // 8 + 1
            return msgspec.msgpack.Ext(_BIG_INT, value.to_bytes(size, "big", signed=True))
        case list() | tuple():
            return [_with_extensions(each) for each in value]
        case dict() if any(_is_big(key) for key in value):
            pairs = [[_with_extensions(part) for part in pair] for pair in value.items()]
            return msgspec.msgpack.Ext(_BIG_KEYS, _ENCODER.encode(pairs))
        case dict():
            return {key: _with_extensions(each) for key, each in value.items()}
    return value


def _is_big(value: Any) -> bool:
    return isinstance(value, int) and not -(2**63) <= value < 2**64
