"""What a user has said of a join, before anything is read or checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from penstock.core.derived.steps import Declared
from penstock.errors import Place

__all__ = ["DeclaredJoin", "How", "On", "Span"]

How: TypeAlias = Literal["inner", "left", "outer"]
On: TypeAlias = str | tuple[str, ...] | Mapping[str, str]
Span: TypeAlias = str | timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredJoin:
    """Two streams or tables, where their fields are equal, and what becomes of a pair."""

    left: Any
    right: Any
    on: tuple[tuple[str, str], ...]
    """Fields of the left and of the right side that are equal."""
    how: How
    before: Any
    after: Any
    """Spans as the user gave them; None: none."""
    lateness: Any
    wait: Any
    repartition: bool
    names: tuple[str, str] | None
    emits: Literal["final", "early"] = "final"
    steps: tuple[Declared, ...] = ()
    given: tuple[Any, ...] | None = None
    """What is read in place of ``reads``."""
    place: Place | None = field(default=None, compare=False, repr=False)
