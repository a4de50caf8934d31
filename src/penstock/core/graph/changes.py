"""Changes of a table's rows, as a service that asks for them is told."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["Change", "Row", "rows_state"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change of one row of a table: what it is now, and what it was before.

    Annotate the first parameter of a service with it, to be told of deletions too: ``now`` is then
    None. ``before`` is the row of the last change of this key that the service has handled; None:
    there was none. A change whose handling failed was not handled.

    Examples:
        >>> @app.service(reads=hot, writes=alarms)
        ... def tell(change: Change[Alarm]) -> Alarm | None:
        ...     if change.now is None:
        ...         return Alarm(change.key, f"no longer {change.before.text}")
        >>> from penstock.testing import Driver
        >>> driver = Driver(app)
        >>> driver.pipe(hot, Alarm("boiler", "hot"))
        >>> driver.delete(hot, "boiler")
        >>> driver.read(alarms)
        [Alarm(device='boiler', text='no longer hot')]
    """

    key: str
    """The key of the row, as text."""
    before: T | None
    now: T | None

    @property
    def deleted(self) -> bool:
        """Whether the row was deleted.

        Examples:
            >>> Change("boiler", Alarm("boiler", "hot"), None).deleted
            True
        """
        return self.now is None


class Row(NamedTuple):
    """A record of a table on its way to a service that asks for changes."""

    state: str
    """The state that has the rows before."""
    now: Any


def rows_state(table: str) -> str:
    """Return the name of the state that keeps the rows of a table for its changes.

    No parameter has such a name.
    """
    return f"rows of {table}"
