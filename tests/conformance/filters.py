"""Runs cases of filters, orders and live queries; prints ``N passed, M failed`` last.

    python tests/conformance/filters.py FILE --engine driver

The kind of a file is seen by the keys of its cases: ``steps`` are live queries, ``sort`` orders,
else filters.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "own_python.py"))

import argparse
import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

from penstock.core.live.query import read_query
from penstock.core.live.result import Event, live_result
from penstock.core.live.values import order_of
from penstock.errors import DataError

ENGINES = ("core",)


def decoded(value: Any) -> Any:
    """Return a value of a case: a ``$date`` is an instant."""
    if isinstance(value, dict):
        if set(value) == {"$date"}:
            return datetime.fromisoformat(value["$date"])
        return {name: decoded(each) for name, each in value.items()}
    return [decoded(each) for each in value] if isinstance(value, list) else value


class Subscription:
    """One live query over a collection of its own."""

    def __init__(self, query: Any, before: list[Any]) -> None:
        self.table = {order_of(each["_id"]): each for each in before}
        self.query = read_query(query)
        self.live = live_result(self.query, refill=self._first)
        self.live.begin(list(self.table.values()))

    def _first(self, count: int) -> list[Any]:
        found = [each for each in self.table.values() if self.query.matches(each)]
        return sorted(found, key=self.query.place)[:count]

    def write(self, step: dict[str, Any]) -> list[Event]:
        """Do the write of a step and return the events."""
        operation = next(name for name in ("insert", "update", "delete") if name in step)
        given = step[operation]
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


def run_filter(case: dict[str, Any]) -> tuple[Any, Any]:
    docs = [{"_id": f"doc{n}", **each} for n, each in enumerate(case.get("docs", []))]
    try:
        query = read_query({"filter": case["filter"]})
    except DataError as error:
        return ("refused" if case.get("error") else case["match"]), "refused" if error else ""
    found = [index for index, each in enumerate(docs) if query.matches(each)]
    return ("refused" if case.get("error") else case["match"]), found


def run_sort(case: dict[str, Any]) -> tuple[Any, Any]:
    query = {name: case[name] for name in ("filter", "sort", "offset", "limit") if name in case}
    expected = "refused" if case.get("error") else case["result"]
    try:
        subscription = Subscription(query, case["docs"])
    except DataError:
        return expected, "refused"
    return expected, subscription.result


def run_live(case: dict[str, Any]) -> tuple[Any, Any]:
    subscription = Subscription(case["query"], case["before"])
    expected: list[Any] = [case["initial"]]
    got: list[Any] = [subscription.result]
    options = case.get("options", {})
    for step in case["steps"]:
        events = subscription.write(step)
        operations = options.get("operations", ["all"])
        kinds = options.get("matchTypes", ["all"])
        told = [
            [each.match, each.operation, each.document["_id"], each.index]
            for each in events
            if ("all" in operations or each.operation in operations)
            and ("all" in kinds or each.match in kinds)
        ]
        expected += [step["events"], step["result"]]
        got += [told, subscription.result]
    return expected, got


def runner_of(case: dict[str, Any]) -> Callable[[dict[str, Any]], tuple[Any, Any]]:
    if "steps" in case:
        return run_live
    return run_sort if "sort" in case else run_filter


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", choices=ENGINES, default="core")
    options = parser.parse_args()
    cases = json.loads(options.file.read_text())["cases"]
    failed = 0
    for case in cases:
        read = decoded(case)
        expected, got = runner_of(read)(read)
        if expected != got:
            failed += 1
            print(f"{case['id']}: expected {expected}, got {got}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
