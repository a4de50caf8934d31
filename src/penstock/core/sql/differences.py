"""What changed between two answers of one query: rows that came, changed, or went."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

__all__ = ["Changed", "Differences"]

Row = tuple[Any, ...]
_ENCODER = msgspec.json.Encoder(enc_hook=str)


@dataclass(frozen=True, slots=True)
class Changed:
    """A row before and after; None: there was none, or there is none any more."""

    before: Row | None
    after: Row | None


class Differences:
    """Remembers an answer, and says how the next one differs.

    ``identity`` are the columns that tell rows apart. Without any, only a whole row does: it comes
    or goes, and never changes.
    """

    def __init__(self, identity: Sequence[int]) -> None:
        self._identity = tuple(identity)
        self._held: dict[bytes, tuple[bytes, Row]] = {}

    def __len__(self) -> int:
        """Return how many rows are remembered."""
        return len(self._held)

    @property
    def rows(self) -> list[Row]:
        """The rows that are remembered."""
        return [row for _, row in self._held.values()]

    def next(self, rows: Iterable[Row]) -> list[Changed]:
        """Take the next answer; return what changed: what went, then the rest in its order."""
        coming = self._keyed(rows)
        held, self._held = self._held, coming
        gone = [Changed(row, None) for key, (_, row) in held.items() if key not in coming]
        found = []
        for key, (text, row) in coming.items():
            before = held.get(key)
            if before is None:
                found.append(Changed(None, row))
            elif before[0] != text:
                found.append(Changed(before[1], row))
        return gone + found

    def _keyed(self, rows: Iterable[Row]) -> dict[bytes, tuple[bytes, Row]]:
        found: dict[bytes, tuple[bytes, Row]] = {}
        seen: Counter[bytes] = Counter()
        for row in rows:
            text = _ENCODER.encode(row)
            if self._identity:
                key = _ENCODER.encode([row[at] for at in self._identity])
            else:
                seen[text] += 1
                key = b"%d %s" % (seen[text], text)
            found[key] = text, row
        return found
