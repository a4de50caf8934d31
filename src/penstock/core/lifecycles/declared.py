"""What a user has said of a life cycle, before anything is read or checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from penstock.errors import Place

__all__ = ["DeclaredLifeCycle", "Entering", "Move"]


@dataclass(frozen=True, slots=True)
class Move:
    """A legal way from some states to another, on a record or after a time.

    One without a target stays where it is: the record is expected there, and changes nothing.
    """

    sources: tuple[str, ...]
    target: str | None
    stream: int | None = None
    """The number of the stream whose record it takes; None: it takes time alone."""
    where: str = ""
    after: timedelta | None = None
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Entering:
    """What is recorded with the change when a state begins: names and expressions."""

    state: str
    fields: tuple[tuple[str, str], ...]
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredLifeCycle:
    """The states that a key goes through, and what leads from one to another."""

    states: tuple[str, ...]
    """The first is where every key begins."""
    reads: tuple[Any, ...] = ()
    moves: tuple[Move, ...] = ()
    entries: tuple[Entering, ...] = ()
    resting: tuple[str, ...] = ()
    """States that may last for ever."""
    place: Place | None = field(default=None, compare=False, repr=False)
