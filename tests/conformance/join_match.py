"""Compares what came out of a join with what a case expects."""

import json
from collections.abc import Iterator
from typing import Any

from join_form import Case, Shown
from join_shown import same_value

Row = list[Any]


class Seen:
    """Everything that came out so far, and what was compared already."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.all: list[Shown] = []
        self._fresh: list[Shown] = []
        self.table: dict[str, Shown] = {}
        self._old: dict[int, Any] = {}
        self._expected: set[str] = set()
        """Keys that are in the table, if what is expected came."""
        rules = case.get("rule", ())
        self._knows_deletes = "needless-delete" in rules or "old-values" in case.get("needs", ())

    def take(self, came: list[Shown]) -> None:
        """Take note of results."""
        for each in came:
            if each.withdrawn:
                continue
            name = json.dumps(each.key)
            before = self.table.pop(name, None)
            self._old[id(each)] = None if before is None else before.value
            if each.value is not None:
                self.table[name] = each
            elif before is None and self._knows_deletes:
                continue  # nothing was there: no change
            self.all.append(each)
            self._fresh.append(each)

    def check(self, step: Case) -> Iterator[str]:
        """Yield what differs from what a step, or the end, expects."""
        checks = {word for word in ("out", "all", "table", "out_values") if word in step}
        if not checks:
            return
        if "out" in step and not self._in_order(self._fresh, self._there(step["out"])):
            yield self._differs("out", self._fresh, step["out"])
        if "out_values" in step:
            found = [each.value for each in self._fresh]
            if found != step["out_values"]:
                yield f"out_values: got {found}, expected {step['out_values']}"
        if "all" in step and not self._as_multiset(self.all, self._there(step["all"], fresh=True)):
            yield self._differs("all", self.all, step["all"])
        if "table" in step and not self._as_multiset(list(self.table.values()), step["table"]):
            yield self._differs("table", list(self.table.values()), step["table"])
        self._fresh = []

    def _there(self, expected: list[Row], *, fresh: bool = False) -> list[Row]:
        """Return what is expected without deletions of what was not there."""
        if not self._knows_deletes:
            return expected
        there = set() if fresh else self._expected
        kept = []
        for row in expected:
            name = json.dumps(row[0])
            if row[1] is None and name not in there:
                continue
            (there.discard if row[1] is None else there.add)(name)
            kept.append(row)
        return kept

    def _in_order(self, found: list[Shown], expected: list[Row]) -> bool:
        order = self._case.get("order", "key")
        if order == "free":
            return self._as_multiset(found, expected)
        if order == "exact":
            return len(found) == len(expected) and all(map(self._same, found, expected))
        keys = {json.dumps(each.key) for each in found} | {json.dumps(row[0]) for row in expected}
        for key in keys:
            one = [each for each in found if json.dumps(each.key) == key]
            other = [row for row in expected if json.dumps(row[0]) == key]
            if len(one) != len(other) or not all(map(self._same, one, other)):
                return False
        return True

    def _as_multiset(self, found: list[Shown], expected: list[Row]) -> bool:
        left = list(expected)
        for each in found:
            match = next((row for row in left if self._same(each, row)), None)
            if match is None:
                return False
            left.remove(match)
        return not left

    def _same(self, found: Shown, expected: Row) -> bool:
        if found.key != expected[0] or not same_value(found.value, expected[1]):
            return False
        if len(expected) > 2 and found.ms is not None and found.ms != expected[2]:
            return False
        return len(expected) < 4 or self._old.get(id(found)) == expected[3]

    def _differs(self, what: str, found: list[Shown], expected: list[Row]) -> str:
        got = [list(each[:3]) for each in found]
        return f"{what}:\n      got      {json.dumps(got)}\n      expected {json.dumps(expected)}"
