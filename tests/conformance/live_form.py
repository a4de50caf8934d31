"""Cases of filters, orders and live queries: their form, what they expect, and what was found."""

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock import App, record
from penstock.core.graph.data import Table
from penstock.core.grid.documents import decode_document, encode_document, readable
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.grid.messages import Asked, News
from penstock.core.live.copy import ResultCopy
from penstock.core.live.query import Query, read_query
from penstock.core.live.values import order_of
from penstock.errors import DataError

__all__ = ["Case", "Engine", "Followed", "Outcome", "Row", "declared", "row_of"]

REFUSED = "refused"


@record(key="id")
class Row:
    """A document in a table."""

    id: str
    body: str


def declared(app: App, prefix: str = "", *, size: int) -> tuple[Table[Row], LiveQueries]:
    """Declare a table of documents, with live queries on a grid of this size both ways."""
    table = app.table(f"{prefix}documents", Row, partitions=size)
    return table, app.live_queries(f"{prefix}live", table, document="body", rows=size)


def row_of(document: Any, prefix: str = "") -> Row:
    """Return a document as a row; its identity is its key."""
    return Row(prefix + encode_document(document["_id"]), encode_document(document))


@dataclass
class Outcome:
    """What a case asks for, and what was found: at first, then after each write."""

    expected: list[Any] = field(default_factory=list)
    found: list[Any] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every part is right."""
        return self.expected == self.found


class Case:
    """One case: a query, documents before it, writes after it, and what is expected."""

    def __init__(self, given: dict[str, Any]) -> None:
        read = readable(given)
        self.id: str = read["id"]
        self.options: dict[str, Any] = read.get("options", {})
        self.refused = bool(read.get("error"))
        self.given = given.get("query") or {
            name: given[name] for name in ("filter", "sort", "offset", "limit") if name in given
        }
        """The query as a client sends it."""
        self.before: list[Any] = []
        self.writes: list[tuple[str, Any]] = []
        self.expected: list[Any] = []
        self.only_last = False
        """Whether only the last result counts, not each step."""
        self._read(read)

    def query(self) -> Query | None:
        """Return the query; None: it is refused."""
        try:
            return read_query(readable(self.given))
        except DataError:
            return None

    def _read(self, case: dict[str, Any]) -> None:
        if self.refused:
            self.expected = [REFUSED]
        elif "steps" in case:
            self.before = case["before"]
            self.expected = [[[], case["initial"]]]
            for step in case["steps"]:
                operation = next(name for name in ("insert", "update", "delete") if name in step)
                self.writes.append((operation, step[operation]))
                self.expected.append([step["events"], step["result"]])
        elif "sort" in case:
            self.before = case["docs"]
            self.expected = [[[], case["result"]]]
        else:
            docs = [{"_id": f"doc{number}", **each} for number, each in enumerate(case["docs"])]
            self.writes = [("insert", each) for each in docs]
            found = sorted((docs[number]["_id"] for number in case["match"]), key=order_of)
            self.expected = [found]
            self.only_last = True


class Followed:
    """What a client sees of one query: it replays the news, and nothing else."""

    def __init__(self, case: Case, query: Query) -> None:
        self._case = case
        self._query = query
        self._copy = ResultCopy()
        self._number = 0
        self.outcome = Outcome(case.expected)
        self.begun = False

    def play(self, news: list[News]) -> list[Any]:
        """Replay news; return the events that the case asks for."""
        told = []
        for each in news:
            if each.number != self._number + 1:
                raise AssertionError(f"news {each.number} came after {self._number}")
            self._number = each.number
            if each.what == "begin":
                self._copy.begin()
                continue
            if each.what == "ready":
                self.begun = True
                continue
            document = decode_document(each.document)
            self._copy.play(each.what, document, each.index)
            if each.what != "first" and self._asked_for(each):
                told.append([each.what, each.operation, document["_id"], each.index])
        return told

    def _asked_for(self, news: News) -> bool:
        operations = self._case.options.get("operations", ["all"])
        kinds = self._case.options.get("matchTypes", ["all"])
        return ("all" in operations or news.operation in operations) and (
            "all" in kinds or news.what in kinds
        )

    def step(self, news: list[News]) -> None:
        """Take the news of one step."""
        told = self.play(news)
        if not self._case.only_last:
            self.outcome.found.append([told, self.result])

    def end(self) -> Outcome:
        """Return the outcome after the last step."""
        if self._case.only_last:
            self.outcome.found = [sorted(self.result, key=order_of)]
        return self.outcome

    @property
    def result(self) -> list[Any]:
        """The identities of the result; those of a set sorted."""
        found = [each["_id"] for each in self._copy.documents]
        return found if self._query.ordered else sorted(found, key=order_of)


def asked(case: Case, name: str) -> Asked:
    """Return what opens the query of a case."""
    return Asked(id=name, query=json.dumps(case.given))


class Engine(Protocol):
    """Runs cases."""

    def run(self, cases: list[Case]) -> list[Outcome]:
        """Return the outcome of each case."""

    def close(self) -> None:
        """End what it has started."""
