"""A copy of a query's result that is kept current by its events, as a client keeps it."""

from typing import Any

from penstock.core.live.order import IDENTITY
from penstock.core.live.values import order_of

__all__ = ["ResultCopy"]


class ResultCopy:
    """Replays events over the first result; ``documents`` is the result then, in its order."""

    def __init__(self) -> None:
        self.documents: list[Any] = []

    def begin(self) -> None:
        """Begin anew: the whole result comes next."""
        self.documents.clear()

    def add(self, document: Any, index: int | None) -> None:
        """Take in a document, at its place where the result has an order."""
        self.documents.insert(len(self.documents) if index is None else index, document)

    def change(self, document: Any) -> None:
        """Replace a document where it stands."""
        self.documents[self._place(document)] = document

    def move(self, document: Any, index: int | None) -> None:
        """Replace a document, and put it elsewhere."""
        self.remove(document)
        self.add(document, index)

    def remove(self, document: Any) -> None:
        """Take out a document."""
        del self.documents[self._place(document)]

    def play(self, match: str, document: Any, index: int | None = None) -> None:
        """Do what an event says."""
        if match in ("add", "first"):
            self.add(document, index)
        elif match == "change":
            self.change(document)
        elif match == "changeIndex":
            self.move(document, index)
        elif match == "remove":
            self.remove(document)

    def _place(self, document: Any) -> int:
        identity = order_of(document[IDENTITY])
        for place, each in enumerate(self.documents):
            if order_of(each[IDENTITY]) == identity:
                return place
        raise LookupError(f"the result has no {document[IDENTITY]!r}")
