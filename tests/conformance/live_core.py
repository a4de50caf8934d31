"""Cases of live queries on the pure result alone, without a grid and without a log."""

from typing import Any

from live_form import REFUSED, Case, Outcome

from penstock.core.live.query import Query
from penstock.core.live.result import Event, live_result
from penstock.core.live.values import order_of

__all__ = ["CoreEngine"]


class CoreEngine:
    """Runs each case on a result of its own."""

    def run(self, cases: list[Case]) -> list[Outcome]:
        """Return the outcome of each case."""
        return [_run(case) for case in cases]

    def close(self) -> None:
        """There is nothing to end."""


class _Subscription:
    """One live query over a collection of its own."""

    def __init__(self, query: Query, before: list[Any]) -> None:
        self.table = {order_of(each["_id"]): each for each in before}
        self.query = query
        self.live = live_result(self.query, refill=self._first)
        self.live.begin(list(self.table.values()))

    def _first(self, count: int) -> list[Any]:
        found = [each for each in self.table.values() if self.query.matches(each)]
        return sorted(found, key=self.query.place)[:count]

    def write(self, operation: Any, given: Any) -> list[Event]:
        """Do a write and return the events."""
        identity = given if operation == "delete" else given["_id"]
        document = None if operation == "delete" else given
        self.table.pop(order_of(identity), None)
        if document is not None:
            self.table[order_of(identity)] = document
        return self.live.write(operation, identity, document)

    @property
    def result(self) -> list[Any]:
        """The identities of the result; those of a set sorted."""
        found = [each["_id"] for each in self.live.documents]
        return found if self.query.ordered else sorted(found, key=order_of)


def _run(case: Case) -> Outcome:
    if (query := case.query()) is None:
        return Outcome(case.expected, [REFUSED])
    subscription = _Subscription(query, case.before)
    operations = case.options.get("operations", ["all"])
    kinds = case.options.get("matchTypes", ["all"])
    found: list[Any] = [[[], subscription.result]]
    for operation, given in case.writes:
        told = [
            [each.match, each.operation, each.document["_id"], each.index]
            for each in subscription.write(operation, given)
            if ("all" in operations or each.operation in operations)
            and ("all" in kinds or each.match in kinds)
        ]
        found.append([told, subscription.result])
    if case.only_last:
        found = [sorted(subscription.result, key=order_of)]
    return Outcome(case.expected, found)
