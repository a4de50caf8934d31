"""The copy of a result that a client keeps, by the messages that it gets."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = ["Replica"]


class Replica:
    """A result as the messages of a gateway say; ``documents`` is it now, in its order.

    LookupError where an event does not fit: then messages were lost.
    """

    def __init__(self) -> None:
        self.ordered = False
        self.ready = False
        """Whether it is whole; after ``must-refetch`` the former result stays until it is."""
        self.number = 0
        self.token = ""
        self._keys: list[bytes] = []
        self._held: dict[bytes, Any] = {}
        self._coming: list[Any] | None = None

    @property
    def documents(self) -> list[Any]:
        """The result."""
        return [self._held[key] for key in self._keys]

    def take(self, message: Mapping[str, Any]) -> bool:
        """Take a message; return whether the documents may have changed."""
        kind = message["type"]
        self.token = message.get("token", self.token)
        if kind == "begin":
            self.ordered, self._coming = message["ordered"], []
        elif kind == "first" and self._coming is not None:
            self._coming += message["documents"]
        elif kind == "ready":
            self._replace(self._coming or [], message)
            return True
        elif kind == "results":
            self._replace(message["documents"], message)
            return True
        elif kind == "changes":
            self._change(message)
            return True
        elif kind == "resumed":
            self.number, self.ready = message["number"], True
        elif kind == "must-refetch":
            self.ready, self.token = False, ""
        return False

    def _replace(self, documents: Iterable[Any], message: Mapping[str, Any]) -> None:
        held = {_key(each): each for each in documents}
        self._held, self._keys = held, list(held)
        self._coming = None
        self.number, self.ready = message["number"], True

    def _change(self, message: Mapping[str, Any]) -> None:
        if message["after"] != self.number:
            raise LookupError(f"changes after {self.number} are missing")
        events = message["events"]
        if message.get("squashed"):
            for event in events:
                if event["what"] in ("remove", "changeIndex"):
                    self._take_out(event["document"])
            for event in events:
                if event["what"] != "remove":
                    self._put(event, moved=False)
        else:
            for event in events:
                if event["what"] == "remove":
                    self._take_out(event["document"])
                else:
                    self._put(event, moved=event["what"] == "changeIndex")
        self.number = message["number"]

    def _put(self, event: Mapping[str, Any], *, moved: bool) -> None:
        document = event["document"]
        key = _key(document)
        if moved:
            self._take_out(document)
        if event["what"] == "change":
            if key not in self._held:
                raise LookupError(f"the result has no {document['_id']!r}")
        elif key in self._held:
            raise LookupError(f"the result has {document['_id']!r} already")
        else:
            index = event.get("index")
            self._keys.insert(len(self._keys) if index is None else index, key)
        self._held[key] = document

    def _take_out(self, document: Mapping[str, Any]) -> None:
        key = _key(document)
        if key not in self._held:
            raise LookupError(f"the result has no {document['_id']!r}")
        del self._held[key]
        self._keys.remove(key)


def _key(document: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(document["_id"])
