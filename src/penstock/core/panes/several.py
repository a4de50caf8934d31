"""Several aggregates over the same elements, as one combiner."""

from collections.abc import Sequence
from typing import Any

from penstock.core.panes.combiner import Combiner

__all__ = ["Several"]


class Several:
    """One accumulator for each aggregate, side by side; a value has one part for each."""

    def __init__(self, inner: Sequence[Combiner[Any, Any, Any]]) -> None:
        self._inner = tuple(inner)

    def zero(self) -> list[Any]:
        """Return an empty accumulator."""
        return [each.zero() for each in self._inner]

    def add(self, held: list[Any], value: Sequence[Any]) -> list[Any]:
        """Give each aggregate its part of the value."""
        for index, each in enumerate(self._inner):
            held[index] = each.add(held[index], value[index])
        return held

    def merge(self, held: list[Any], other: list[Any]) -> list[Any]:
        """Merge aggregate by aggregate."""
        pairs = zip(self._inner, held, other, strict=True)
        return [each.merge(one, two) for each, one, two in pairs]

    def result(self, held: list[Any]) -> list[Any]:
        """Return one result for each aggregate."""
        return [each.result(one) for each, one in zip(self._inner, held, strict=True)]
