"""What a store of rows implements."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

__all__ = ["RowStore", "StoreMaker"]


@runtime_checkable
class RowStore(Protocol):
    """Rows in an outside store, over a connection that one event loop uses.

    After any error but DataError, and when an answer takes too long, it is closed and another one
    is opened.

    Examples:
        >>> class Nothing:
        ...     async def fetch(self, keys):
        ...         return [None for _ in keys]
        ...     async def close(self): ...
        >>> isinstance(Nothing(), RowStore)
        True
    """

    async def fetch(self, keys: Sequence[Any], /) -> Sequence[Any]:
        """Return for each key, in their order, its row; None where there is none.

        A row is a record, a dict of values by their names, or JSON in bytes. TransientError: the
        store does not answer. DataError: it does not take one of the keys; as a row: this one.
        """

    async def close(self) -> None:
        """Close the connection."""


StoreMaker: TypeAlias = Callable[[], Awaitable[RowStore]]
