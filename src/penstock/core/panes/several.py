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
        return list(map(_merge, self._inner, held, other))

    def result(self, held: list[Any]) -> list[Any]:
        """Return one result for each aggregate."""
        return list(map(_result, self._inner, held))


def _merge(combiner: Combiner[Any, Any, Any], held: Any, other: Any) -> Any:
    return combiner.merge(held, other)


def _result(combiner: Combiner[Any, Any, Any], held: Any) -> Any:
    return combiner.result(held)
