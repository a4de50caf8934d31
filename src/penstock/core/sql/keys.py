"""Values as keys: of groups and joins, where equal is equal, and of an order."""

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["hashable", "ordered"]

_NAN = ("NaN",)
"""What stands for NaN, which is equal to itself here and above all other numbers."""


class _Reversed:
    """A value whose order is the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(other.value == self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def hashable(value: Any) -> Any:
    """Return what stands for a value as part of a key."""
    return _NAN if isinstance(value, float) and value != value else value  # noqa: PLR0124


def ordered(directions: Sequence[tuple[bool, bool]]) -> Callable[[Sequence[Any]], Any]:
    """Return what makes a key of an order of values: (descending, nulls first) for each."""

    def key(values: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for value, (descending, nulls_first) in zip(values, directions, strict=True):
            if value is None:
                found.append((0 if nulls_first else 2,))
                continue
            nan = isinstance(value, float) and value != value  # noqa: PLR0124
            place = (1, (nan, 0.0 if nan else value))
            found.append((1, _Reversed(place)) if descending else place)
        return found

    return key
