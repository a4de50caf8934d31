"""What a source of changes says about one row of a table of the outside system."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = ["Captured", "Kind"]

Kind: TypeAlias = Literal["read", "insert", "update", "delete", "truncate"]


class Captured(msgspec.Struct, frozen=True, gc=False):
    """A row that was read, inserted, updated or deleted; or all rows of a table are gone.

    Without ``parse``, a source makes the record of ``now`` and, where that is nothing, deletes the
    row of the key in ``before``.

    Examples:
        >>> made = Captured("insert", "shop.orders", {"id": 7})
        >>> made.kind, made.now["id"]
        ('insert', 7)
    """

    kind: Kind
    """``"read"``: it was there when the source began."""
    table: str
    now: Mapping[str, Any] | None
    """The row by the names of its columns; nothing where it is gone."""
    before: Mapping[str, Any] | None = None
    """The row before, where the system gives it; at a deletion at least its key."""
    at: datetime | None = None
    """When it was committed."""
