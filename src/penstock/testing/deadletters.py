"""Dead letters as a test reads them."""

from dataclasses import dataclass

from penstock.backbone.logrecord import RawRecord
from penstock.core.deadletter import HEADER_PREFIX, Coordinates

__all__ = ["DeadLetter", "read_dead_letter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that could not be used: why, where it stood, and what it was."""

    code: str
    reason: str
    part: str
    coordinates: Coordinates
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """The record's own headers."""


def read_dead_letter(raw: RawRecord) -> DeadLetter:
    """Return what a record of a dead-letter topic says."""
    headers = tuple(raw.headers() or ())
    marks = {
        name.removeprefix(HEADER_PREFIX): (value or b"").decode()
        for name, value in headers
        if name.startswith(HEADER_PREFIX)
    }
    return DeadLetter(
        code=marks["code"],
        reason=marks["reason"],
        part=marks["part"],
        coordinates=Coordinates(marks["topic"], int(marks["partition"]), int(marks["offset"])),
        key=raw.key(),
        value=raw.value(),
        headers=tuple(header for header in headers if not header[0].startswith(HEADER_PREFIX)),
    )
