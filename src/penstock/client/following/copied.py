"""The copy of one result that a client keeps, and what each message changes in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from penstock.client.connection import broken
from penstock.client.refusals import error_of
from penstock.core.feeds.replica import Replica
from penstock.core.grid.documents import readable

__all__ = ["LiveChange", "LiveCopy", "LiveEvent"]

_TAKEN = frozenset(("begin", "first", "ready", "changes", "results", "resumed", "must-refetch"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEvent:
    """What became of one document."""

    what: Literal["add", "change", "changeIndex", "remove"]
    document: Any
    """As it is now; of ``remove`` its ``_id`` alone."""
    operation: str = ""
    """What was done to it: insert, update or delete; none, if another one was written."""
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveChange:
    """What is new: a whole result, or the events since the last change."""

    kind: Literal["result", "changes"]
    events: tuple[LiveEvent, ...] = ()
    squashed: bool = False
    """Whether the events are the difference between two results, not of one write."""


class LiveCopy:
    """The result of one query after the last change that was given."""

    def __init__(self, *, resume: str = "") -> None:
        self._copy = Replica()
        self._copy.token = resume
        self.stale_seconds: float | None = None
        """How old the result may be, as the gateway said last; None: not known."""

    @property
    def documents(self) -> list[Any]:
        """The result: a list in its order, or the members of a set."""
        return [readable(each) for each in self._copy.documents]

    @property
    def token(self) -> str:
        """Where it stands, for another client to ``resume`` from; empty: nowhere yet."""
        return self._copy.token

    def forget(self) -> None:
        """Ask for the whole result the next time."""
        self._copy.token = ""

    def take(self, message: Mapping[str, Any]) -> LiveChange | None:
        """Take a message; return what it changes. Raise what ends it, or a LookupError."""
        kind = message.get("type")
        if kind == "error":
            self._fail(message.get("problem") or {})
        if kind not in _TAKEN or not self._copy.take(message):
            return None
        if kind != "changes":
            return LiveChange(kind="result")
        events = tuple(
            LiveEvent(
                what=each["what"],
                document=readable(each["document"]),
                operation=each.get("operation", ""),
                index=each.get("index"),
            )
            for each in message["events"]
        )
        return LiveChange(kind="changes", events=events, squashed=message.get("squashed", False))

    def _fail(self, problem: Mapping[str, Any]) -> None:
        error = error_of(int(problem.get("status", 0)), msgspec.json.encode(problem))
        if error.code == "live.behind":
            self.forget()
            raise broken("the client read slower than the result changes")
        raise error
