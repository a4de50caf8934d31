"""What a query may take: memory that it holds, and time, as whoever runs it says."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from penstock.errors import PenstockError

__all__ = ["Budget", "QueryError", "weight"]

T = TypeVar("T")

_LOOK_ROWS = 256
"""How often it is asked whether the time is over, in rows."""
_HELD = 60
"""What a value costs beside its characters, about."""


class QueryError(PenstockError):
    """A query that is not answered: it would take too much; say what it may leave out."""


class Budget:
    """The memory that one query may hold at once, and ``look``, which raises when time is over."""

    def __init__(self, size: int, *, name: str, look: Callable[[], None]) -> None:
        self._left = size
        self._size = size
        self._name = name
        self._look = look

    def spend(self, size: int) -> None:
        """Hold so many bytes more; QueryError ``query.memory`` where there is no room."""
        self._left -= size
        if self._left < 0:
            raise QueryError(
                f"the query would hold more than {self._size} bytes",
                code="query.memory",
                hint=f"select fewer rows or groups, or raise {self._name}",
            )

    def timed(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield rows; look now and then whether the time is over."""
        self._look()
        for number, row in enumerate(rows):
            if not number % _LOOK_ROWS:
                self._look()
            yield row


def weight(values: Iterable[Any]) -> int:
    """Return the bytes that some values take, about."""
    return sum(_HELD + (len(value) if isinstance(value, str | bytes) else 0) for value in values)
