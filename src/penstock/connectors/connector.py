"""What a connector implements: a source is live or positioned, a sink writes batches.

Of a *live* source everything happens once (a socket, a keyboard): it puts items into a
``Feed``, and what it does not take when it comes is gone. A *positioned* source can be read
again (a file, a table): it is divided into splits, each of which is opened at a position and read.
The runner commits the records and the position in one transaction, which makes it exactly once.

Both give items: bytes, of which ``parse`` (or JSON) makes records, or records themselves.

A *sink* writes rows in batches, each with the position behind it.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from penstock.core.graph.parts import Sink, Source
from penstock.errors import DataError

__all__ = [
    "AWAY",
    "WHOLE",
    "AttachedConnector",
    "BatchLimits",
    "Feed",
    "Item",
    "LiveConnector",
    "Moving",
    "Position",
    "PositionedConnector",
    "Reading",
    "Row",
    "RowChange",
    "RowsRefusedError",
    "Telling",
    "Trying",
    "Writer",
    "WritingConnector",
]

AWAY = "connector.away"
"""The code of a TransientError that says: the outside system does not answer. It is tried again for
as long as that takes; of other transient errors in a row there is a limit."""

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


@runtime_checkable
class AttachedConnector(Protocol):
    """A positioned source that holds something while it is read: a connection, what it has seen."""

    def attach(self) -> AbstractContextManager[PositionedConnector]:
        """Return what is read instead, from the committed positions until something fails."""


@runtime_checkable
class Moving(Protocol):
    """A reading whose position may change although there are no items."""

    def moved(self) -> Position | None:
        """Return a position that is to be kept, asked when there were no items; None: none is.

        It is kept when the next items are asked for.
        """


@runtime_checkable
class Telling(Protocol):
    """A positioned connector that has something to say beside its items."""

    def complaint(self) -> str:
        """Return what is wrong although reading goes on, which makes the source degraded."""

    def facts(self) -> Mapping[str, str]:
        """Return facts that the source's reports show, beside its counts."""


RowChange: TypeAlias = Literal["add", "withdraw", "delete"]
"""What a row is: a record (of a table: the row that holds now), one that takes an earlier result
of a stream back, or the deletion of a row of a table."""


class Row(msgspec.Struct, frozen=True):
    """One record of the stream or table that a sink reads."""

    record: Any
    """The record, decoded and checked; of a deletion, an object with the fields of the key."""
    value: bytes
    """The record as it stands on the log: JSON in one line; of a deletion, nothing."""
    offset: int
    """Its offset in its partition, which makes it known again."""
    change: RowChange = "add"
    key: bytes | None = None
    """Its key on the log."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    """Its headers on the log."""


class RowsRefusedError(DataError):
    """A writer wrote nothing, because the outside system does not take some of the rows.

    ``refusals`` has for each of them, by its place in the batch, the system's own words. They
    become dead letters, and the writer is given the others again.
    """

    def __init__(self, refusals: Mapping[int, str]) -> None:
        super().__init__(f"{len(refusals)} rows were refused", code="sink.refused")
        self.refusals = dict(refusals)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How many records of one partition a sink collects before it writes them."""

    rows: int = 10_000
    size: int = 8 << 20
    """Bytes of their values."""
    span: timedelta = timedelta(seconds=1)
    """How long the first record of a batch waits for others."""


class Writer(Protocol):
    """An outside system that is open for one run of a sink.

    TransientError from any method means: try again later, from what was written with its position.
    ConfigurationError means: a person must act.
    """

    def positions(self) -> Mapping[int, int]:
        """Return for each partition the offset behind what was written, where that is kept."""

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:
        """Write rows of one partition and the position behind them: all of it or nothing.

        RowsRefusedError where the system does not take some of them.
        """

    def close(self) -> None:
        """Release what is open."""


@runtime_checkable
class WritingConnector(Protocol):
    """An outside system that takes records.

    One that has ``takes_deletions = True`` can be given a table: its rows may be deletions.

    It is exactly once where its writer keeps positions with the rows. Where the writer returns no
    positions, the sink goes on from the offsets of its group, and rows may be written again.
    """

    @property
    def limits(self) -> BatchLimits:
        """How large a batch is at most."""

    def open(self, sink: Sink) -> Writer:
        """Open the outside system; nobody else may write for this sink while it is open."""


@runtime_checkable
class Trying(Protocol):
    """A connector that can try its connection; ``penstock check --online`` asks it to."""

    def attempt(self, part: Source | Sink, /) -> str:
        """Return what was found, in words; TransientError or ConfigurationError: what is wrong."""
