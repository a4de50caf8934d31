"""The record types that go between the parts of live queries, each on a topic of its own."""

from typing import Any

from penstock.core.records.record import RecordType, record, record_type

__all__ = ["ASKED", "MATCHED", "NEWS", "PLACED", "Asked", "Matched", "News", "Placed"]


@record(key="id")
class Asked:
    """Somebody wants to follow a query, or still does: gateways write it again and again."""

    id: str
    """Names the query: whoever asks the same has the same."""
    query: str
    """The query as JSON, with instants as in documents."""
    again: bool = True
    """Whether its result is wanted as a whole; else the query is only to live on."""


@record(key="cell")
class Placed:
    """What a cell is told of a query; each cell of its row gets one."""

    cell: str
    """A key of the partition that is the cell's column."""
    id: str
    life: int
    """Grows each time that the query is opened anew."""
    what: str
    """``open``, ``again`` or ``close``."""
    query: str = ""


@record(key="id")
class Matched:
    """What a cell says of a query."""

    id: str
    life: int
    column: int
    what: str
    """``open``, ``first``, ``ready``, ``write``, ``again`` or ``close``."""
    offset: int = -1
    """The offset of the write in the table; of ``ready`` that of the last write seen."""
    query: str = ""
    operation: str = "none"
    identity: str = ""
    document: str | None = None


@record(key="id")
class News:
    """What is new in the result of a query, in order: replaying it gives the result."""

    id: str
    life: int
    number: int
    """Counts the news of this life from 1 on, without a gap."""
    what: str
    """``begin``, ``first``, ``ready``,
    ``add``, ``change``, ``changeIndex``, ``remove``, ``end``."""
    operation: str = "none"
    index: int | None = None
    document: str = ""
    positions: dict[str, int] = {}  # noqa: RUF012 - records copy their defaults
    """The offset of the write that caused it, by partition; of ``ready`` those that it holds."""
    more: bool = False
    """Whether the write that caused it has caused more, which comes next."""


def _type_of(cls: type[Any]) -> RecordType[Any]:
    found: RecordType[Any] | None = record_type(cls)
    if found is None:
        raise TypeError(f"{cls.__name__} is no record type")
    return found


ASKED, PLACED, MATCHED, NEWS = (_type_of(each) for each in (Asked, Placed, Matched, News))
