"""How values become one result, piece by piece: the seam for every aggregate."""

from typing import Any, Protocol, TypeVar

__all__ = ["Combiner"]

V_contra = TypeVar("V_contra", contravariant=True)
A = TypeVar("A")
R_co = TypeVar("R_co", covariant=True)


class Combiner(Protocol[V_contra, A, R_co]):
    """An accumulator's four steps. ``merge`` is associative; ``zero`` is its neutral element.

    The accumulator is plain data (numbers, texts, lists, dicts), because it is kept as state.
    """

    def zero(self) -> A:
        """Return an empty accumulator."""

    def add(self, held: A, value: V_contra) -> A:
        """Return the accumulator with one more value; it may change the one given."""

    def merge(self, held: A, other: A) -> A:
        """Return what both accumulators hold; it may change the first."""

    def result(self, held: Any) -> R_co:
        """Return the result of what is held."""
