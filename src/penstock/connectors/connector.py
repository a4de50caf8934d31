"""What a connector implements: a source is live, or positioned.

Of a *live* source everything happens once (a socket, a keyboard): it puts items into a
:class:`Feed`, and what it does not take when it comes is gone. A *positioned* source can be read
again (a file, a table): it is divided into splits, each of which is opened at a position and read.
The runner commits the records and the position in one transaction, which makes it exactly once.

Both give items: bytes, of which ``parse`` (or JSON) makes records, or records themselves.
"""

from collections.abc import Sequence
from threading import Event
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from penstock.errors import DataError

__all__ = ["WHOLE", "Feed", "Item", "LiveConnector", "Position", "PositionedConnector", "Reading"]

WHOLE = ""
"""The name of the only split of a source that is not divided."""

Position: TypeAlias = Any
"""How far a split has been read: any JSON value but null. Only the connector knows its meaning."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """One thing that a source gives, and where it is."""

    content: Any
    """Bytes; or a record of the stream's type, or whatever else the source's ``parse`` takes."""
    at: int = 0
    """Its place in its split, as the connector counts; dead letters and messages name it."""

    def fault(self) -> DataError | None:
        """Return why it cannot become a record, whatever ``parse`` says; None: it may."""
        return None


I = TypeVar("I", bound=Item)  # noqa: E741 - the letter says what it stands for


class Feed(Protocol):
    """Where a live connector puts its items."""

    @property
    def stop(self) -> Event:
        """Set when the connector is to return."""

    def put(self, item: Item) -> None:
        """Take one item; this waits while the log is behind, and so must whoever sends."""

    def settle(self) -> None:
        """Wait until every item put so far is on the log."""

    def tell(self, fact: str, text: str) -> None:
        """Show a fact beside the source's counts: ``"listening on"``, ``"127.0.0.1:9999"``."""

    def complain(self, trouble: str) -> None:
        """Report why items do not get in, which makes the source degraded; empty: they do."""


@runtime_checkable
class LiveConnector(Protocol):
    """A source whose items happen once."""

    def run(self, feed: Feed) -> None:
        """Put items into the feed until there are no more, or until ``feed.stop`` is set."""


class Reading(Protocol[I]):
    """One pass over one split, from a position on."""

    @property
    def ended(self) -> bool:
        """Whether there will be no more items."""

    def read(self) -> Sequence[I]:
        """Return the next items, a bounded number; none where there are none yet."""

    def position_after(self, item: I) -> Position:
        """Return the position behind one of the items that were read last.

        Items behind it are not used: the split may be opened again at this position.
        """

    def close(self) -> None:
        """Release what is open."""


@runtime_checkable
class PositionedConnector(Protocol):
    """A source whose items can be read again, from any position.

    TransientError from any method means: try again later, from the committed positions.
    ConfigurationError means: a person must act.
    """

    @property
    def grows(self) -> bool:
        """Whether splits may be added while it runs; such a source does not end."""

    def splits(self) -> Sequence[str]:
        """Return the names of all splits; a source that grows is asked again while it runs.

        A name is identity: the position of a split is kept under it.
        """

    def open(self, split: str, position: Position | None, /) -> Reading[Any]:
        """Start reading a split; ConfigurationError where it is not what was read so far."""
