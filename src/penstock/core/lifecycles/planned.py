"""A life cycle with its conditions read: all that its machine needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.expression import Expression
from penstock.core.operators.operator import Input
from penstock.core.records.schema import Field

__all__ = ["PlannedLifeCycle", "ReadMove"]


@dataclass(frozen=True, slots=True)
class ReadMove:
    """A move on a record, its condition read; without a target the record changes nothing."""

    sources: tuple[str, ...]
    target: str | None
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class PlannedLifeCycle:
    """Plain values that can travel."""

    inputs: tuple[Input, ...]
    states: tuple[str, ...]
    key: tuple[Field, ...]
    """The fields of the key, as results have them."""
    moves: tuple[tuple[ReadMove, ...], ...]
    """For each input."""
    timeouts: Mapping[str, tuple[int, str]]
    """By state: after how many microseconds it ends, and where it leads."""
    entries: Mapping[str, tuple[tuple[str, Expression], ...]]
    entry_fields: tuple[Field, ...]
