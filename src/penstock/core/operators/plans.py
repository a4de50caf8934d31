"""Plans whose every result is final: over a finished range they are the same."""

from typing import Self

__all__ = ["StatefulPlan", "StatelessPlan"]


class _FinalPlan:
    __slots__ = ()

    def finished(self) -> Self:
        """Return the same: every result is final."""
        return self


class StatelessPlan(_FinalPlan):
    """A plan whose machine remembers nothing; each result is final."""

    __slots__ = ()

    @property
    def stateful(self) -> bool:
        """Return False: nothing is remembered."""
        return False


class StatefulPlan(_FinalPlan):
    """A plan whose machine remembers what it has read; each result is final."""

    __slots__ = ()

    @property
    def stateful(self) -> bool:
        """Return True: it remembers what it has read."""
        return True
