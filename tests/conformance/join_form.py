"""A case of joins.json as an application: its records, its joins, and what its results say."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from join_combiners import Letters, SetOf, Trace

from penstock import App, EventTime, merge, record
from penstock.aggregates import combine, count, maximum, minimum, total
from penstock.core.graph.data import Stream, Table
from penstock.core.graph.graph import Graph
from penstock.core.rules.check import verified
from penstock.tables import broadcast

Case = dict[str, Any]
DISORDER = 30 * 24 * 3600 * 1000
"""In milliseconds, where only the case moves event time: marks are so far ahead of it."""
STREAMS = {
    "stream-stream": (True, True),
    "stream-table": (True, False),
    "stream-global": (True, False),
}
OWN = {"table-aggregate", "table-filter", "merge", "branch", "repartition"}


class UnsupportedError(Exception):
    """The case needs something that is not offered."""


class Feed(NamedTuple):
    """A record on its way to a topic."""

    data: Any
    key: bytes | None
    value: bytes | None
    ms: int


class Shown(NamedTuple):
    """A result: its key, value and time, and whether it takes an earlier one back."""

    key: Any
    value: Any
    ms: int | None
    withdrawn: bool = False


@dataclass
class Declared:
    """The application of a case."""

    case: Case
    app: App
    inputs: dict[str, Any]
    results: list[Any]
    """What takes the results; several for branches."""
    show: Callable[[Any, dict[str, Any]], tuple[Any, Any]]
    """From a result's JSON to key and value."""
    keys: dict[str, Any] = field(default_factory=dict)
    begins: int = 0
    """Where the times of the case begin; a broker takes the time 0 for now."""

    @property
    def graph(self) -> Graph:
        return verified(self.app.graph)


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def declare(case: Case, *, on: str, name: str = "case") -> Declared:
    """Return the application of a case."""
    return _Declaring(case, on, name).declared()


def feeds(declared: Declared, step: Case) -> Iterator[Feed]:
    """Yield the records of a step, and the marks that move event time."""
    for each in step.get("in", ()):
        yield _feed(declared, *each)
    if "watermark" in step:
        for data in declared.inputs.values():
            if isinstance(data, Stream):
                key = next((k for k in declared.keys.get(data.name, ())), "mark")
                yield _feed_row(data, key, None, step["watermark"] + DISORDER + declared.begins)


def marks(case: Case, inputs: dict[str, Any]) -> int:
    """Return how many marks a case has."""
    streams = sum(isinstance(data, Stream) for data in inputs.values())
    return streams * sum("watermark" in step for step in case["steps"])


def _feed(declared: Declared, name: str, key: Any, value: Any, ms: int) -> Feed:
    data, ms = declared.inputs[name], ms + declared.begins
    if isinstance(data, Table) and (value is None or key is None):
        raw = None if value is None else _row(data, key, value, ms)
        return Feed(data, None if key is None else text(key).encode(), raw, ms)
    declared.keys.setdefault(data.name, []).append(key)
    return _feed_row(data, key, value, ms)


def _feed_row(data: Any, key: Any, value: Any, ms: int) -> Feed:
    keyed = bool(data.record.schema.key)
    return Feed(data, text(key).encode() if keyed else None, _row(data, key, value, ms), ms)


def _row(data: Any, key: Any, value: Any, ms: int) -> bytes:
    made: dict[str, Any] = {"json_key": None if key is None else text(key), "ms": ms}
    made["json"] = None if value is None else text(value)
    for each in data.record.schema.fields:
        kind, _, name = each.name.partition("_")
        if each.name in {"key", "value"}:
            made[each.name] = key if each.name == "key" else value
        elif kind == "on":
            found = value.get(name) if isinstance(value, dict) else None
            made[each.name] = None if found is None else text(found)
        elif kind == "of":
            made[each.name] = value.get(name) if isinstance(value, dict) else None
    return json.dumps(made, default=str).encode()


class _Declaring:
    def __init__(self, case: Case, on: str, name: str) -> None:
        self.case, self.on, self.name = case, on, name
        self.app = App(name)
        self.rows: dict[str, list[tuple[Any, Any]]] = {}
        for step in case["steps"]:
            for each in step.get("in", ()):
                self.rows.setdefault(each[0], []).append((each[1], each[2]))
        self.inputs: dict[str, Any] = {}

    def declared(self) -> Declared:
        case, kind = self.case, self.case["kind"]
        make = {
            "table-aggregate": self._aggregate,
            "table-filter": self._filter,
            "merge": self._merge,
            "branch": self._branch,
            "repartition": self._repartition,
        }.get(kind, self._join)
        results, show = make()
        return Declared(case, self.app, self.inputs, results, show)

    # What the inputs are

    def _input(self, name: str, *, stream: bool) -> Any:
        if name in self.inputs:
            return self.inputs[name]
        rows = self.rows.get(name, [])
        whose = self.rows.values() if self.case["kind"] == "merge" else (rows,)
        keyless = stream and any(key is None for each in whose for key, _ in each)
        cls = self._class(rows, keyless=keyless, stream=stream)
        shown = f"{self.name}.{name}" if self.on == "spark" or self.name != "case" else name
        if stream:
            watermark = self.case.get("time") == "watermark"
            disorder = timedelta(milliseconds=DISORDER) if watermark else None
            time = EventTime(disorder=disorder, follows="newest", idle_after=None)
            data: Any = self.app.stream(shown, cls, partitions=1, event_time=time)
        else:
            history = None
            if name in self.case.get("versioned", ()):
                history = timedelta(milliseconds=self.case.get("history", 300_000))
            data = self.app.table(shown, cls, partitions=1, history=history)
        self.inputs[name] = data
        return data

    def _class(self, rows: list[tuple[Any, Any]], *, keyless: bool, stream: bool) -> type:
        hints: dict[str, Any] = {"json_key": str | None if keyless else str}
        hints["json"] = str | None if stream else str
        hints["ms"] = int
        for field_name in self._fields():
            hints[f"on_{field_name}"] = str | None
        for field_name, kind in self._typed(rows).items():
            hints[f"of_{field_name}"] = kind | None
        if self.case["kind"] in ("branch", "table-filter"):
            for number, field_name in enumerate(("key", "value")):
                values = [row[number] for row in rows if row[number] is not None]
                kinds = {type(each) for each in values}
                if len(kinds) == 1 and kinds <= {int, float, str}:
                    hints[field_name] = kinds.pop() | None
        made = type("Row", (), {"__annotations__": hints, "__module__": __name__})
        return record(key=None if keyless else "json_key", time="ms")(made)

    def _fields(self) -> set[str]:
        """Fields of values whose values are keys."""
        named = {self.case.get("on"), self.case.get("group")}
        for each in self.case.get("then", ()):
            on = each.get("on", "")
            named.add(on.split()[0] if on else None)
        return {each for each in named if each}

    def _typed(self, rows: list[tuple[Any, Any]]) -> dict[str, Any]:
        """Fields of values that expressions read."""
        kind = self.case["kind"]
        if kind not in ("table-aggregate", "table-filter", "branch"):
            return {}
        found: dict[str, Any] = {}
        for _, value in rows:
            if isinstance(value, dict):
                for name, each in value.items():
                    if each is not None and isinstance(each, str | int | float):
                        both = {found.get(name), type(each)} == {int, float}
                        found[name] = float if both else type(each)
        summed = str(self.case.get("aggregate"))
        for name, text_kind in found.items():
            # Sums of texts are decimal.
            if text_kind is str and (f"sum({name})" in summed or (name, summed) == ("v", "sum")):
                found[name] = Decimal
        return found

    def _selected(self, name: str, *, stream: bool) -> Any:
        data = self._input(name, stream=stream)
        return data.where("json is not null") if stream else data

    # What is done with them

    def _join(self) -> tuple[list[Any], Any]:
        case, kind = self.case, self.case["kind"]
        streams = STREAMS.get(kind, (False, False))
        left = self._selected("left", stream=streams[0])
        right = self._selected("left" if case.get("self") else "right", stream=streams[1])
        joined = self._joined((left, right), case, kind)
        show = _shows_pair(_shows_row, _shows_row)
        for number, then in enumerate(case.get("then", ()), start=1):
            shape = self.app.table if kind in ("table-table", "foreign-key") else self.app.stream
            if "left row" in str(then.get("on", "")):
                field_name = f"on_{then['on'].split()[0]}"
                path = ".".join(["left"] * number)
                joined = joined.select(
                    json_key="json_key",
                    left="left",
                    right="right",
                    **{field_name: f"{path}.{field_name}"},
                )
            so_far = shape(f"{self.name}.then{number}", joined, on=self.on, partitions=1)
            settings = {**case, **then}
            next_kind = settings["kind"]
            other = self._selected(then["with"], stream=STREAMS.get(next_kind, (False, False))[1])
            first, second, shows = so_far, other, (show, _shows_row)
            if then.get("swap"):
                first, second, shows = other, so_far, (_shows_row, show)
            joined = self._joined((first, second), settings, next_kind)
            show, kind = _shows_pair(*shows), next_kind
        shape = self.app.table if kind in ("table-table", "foreign-key") else self.app.stream
        results = shape(f"{self.name}.results", joined, on=self.on, partitions=1)
        return [results], show

    def _joined(self, sides: tuple[Any, Any], case: Case, kind: str) -> Any:
        left, right = sides
        names = ("left", "right")
        how = case.get("join", "inner")
        on: Any = "json_key"
        if case.get("on"):
            field_name = case["on"].split()[0]
            on = {f"on_{field_name}": "json_key"}
        if kind == "table-table":
            on = "json_key"
        if kind == "stream-global":
            return left.join(broadcast(right), on=on, how=how, names=names)
        if kind in ("table-table", "foreign-key"):
            return left.join(right, on=on, how=how, names=names)
        repartition = True  # where it is needed: records without a key, or joined on another field
        if kind == "stream-table":
            wait = None
            if case.get("wait"):
                wait = timedelta(0)
            elif case.get("grace"):
                wait = timedelta(milliseconds=case["grace"])
            return left.join(right, on=on, how=how, wait=wait, names=names, repartition=repartition)
        joined = left.join(
            right,
            on=on,
            how=how,
            before=timedelta(milliseconds=case["before"]),
            after=timedelta(milliseconds=case["after"]),
            lateness=timedelta(milliseconds=case.get("grace") or 0),
            names=names,
            repartition=repartition,
        )
        return joined.results("early") if case.get("emit") == "eager" else joined

    def _aggregate(self) -> tuple[list[Any], Any]:
        case = self.case
        if case.get("emit") == "two-results":
            raise UnsupportedError("two results for one change")
        left = self._input("left", stream=False)
        asked = case["aggregate"]
        several = isinstance(asked, list)
        aggregates = {
            f"result{number}": self._one(each)
            for number, each in enumerate(asked if several else [asked])
        }
        empty = "keep" if "group-kept-empty" in case.get("rule", ()) else "delete"
        grouped = left.group(by=f"on_{case['group']}", empty=empty)
        aggregated = grouped.aggregate(**aggregates)
        if hold := case.get("hold"):
            span = timedelta(milliseconds=hold["time"]) if "time" in hold else None
            aggregated = aggregated.hold(span, groups=hold.get("groups"))
        table = self.app.table(f"{self.name}.results", aggregated, on=self.on, partitions=1)

        def show(_key: Any, row: dict[str, Any]) -> tuple[Any, Any]:
            values = [row[name] for name in aggregates]
            return json.loads(row[f"on_{case['group']}"]), values if several else values[0]

        return [table], show

    def _one(self, asked: str) -> Any:
        name, _, of = asked.partition("(")
        of = f"of_{of.rstrip(')') or 'v'}"
        if name == "count":
            return count()
        made = {
            "sum": lambda: total(of),
            "max": lambda: maximum(of),
            "min": lambda: minimum(of),
            "set": lambda: combine(of, SetOf(), gives=list[str]),
            "letters": lambda: combine(of, Letters(), gives=str),
            "trace": lambda: combine(of, Trace(), gives=str),
        }.get(name)
        if made is None:
            raise UnsupportedError(asked)
        return made()

    def _filter(self) -> tuple[list[Any], Any]:
        left = self._input("left", stream=False)
        where = left.where(self._condition(self.case["where"], left))
        table = self.app.table(f"{self.name}.results", where, on=self.on, partitions=1)
        return [table], lambda _key, row: _shows_row(row)

    def _condition(self, condition: str, data: Any) -> str:
        names = {each.name for each in data.record.schema.fields}
        words = condition.replace("(", " ( ").replace(")", " ) ").split()
        return " ".join(f"of_{word}" if f"of_{word}" in names else word for word in words)

    def _merge(self) -> tuple[list[Any], Any]:
        streams = [self._selected(name, stream=True) for name in self.rows or ("left", "right")]
        merged = self.app.stream(f"{self.name}.results", merge(*streams), on=self.on, partitions=1)
        return [merged], lambda _key, row: _shows_row(row)

    def _branch(self) -> tuple[list[Any], Any]:
        case = self.case
        left = self._input("left", stream=True)
        conditions = [self._condition(each, left) for each in case["conditions"]]
        show = lambda _key, row: _shows_row(row)  # noqa: E731
        if any("out_values" in step for step in case["steps"]):
            either = " or ".join(f"coalesce({each}, false)" for each in conditions)
            out = self.app.stream(
                f"{self.name}.results", left.where(either), on=self.on, partitions=1
            )
            return [out], show
        branches = left.branch(*conditions)
        if not case.get("default"):
            branches = branches[:-1]
        return [
            self.app.stream(f"{self.name}.results{number}", each, on=self.on, partitions=1)
            for number, each in enumerate(branches)
        ], show

    def _repartition(self) -> tuple[list[Any], Any]:
        left = self._input("left", stream=True)
        keyed = left.where("json_key is not null").select(
            json_key="coalesce(json_key, '')", json="json", ms="ms"
        )
        out = self.app.stream(
            f"{self.name}.results", keyed.repartition(by="json_key"), on=self.on, partitions=1
        )
        return [out], lambda _key, row: _shows_row(row)


def _shows_row(row: dict[str, Any] | None) -> tuple[Any, Any]:
    if row is None:
        return None, None
    key, value = row.get("json_key"), row.get("json")
    return (
        None if key is None else json.loads(key),
        None if value is None else json.loads(value),
    )


def _shows_pair(left: Any, right: Any) -> Any:
    def of(shows: Any, row: Any) -> tuple[Any, Any]:
        if row is None:
            return None, None
        return shows(row) if shows is _shows_row else shows(None, row)

    def show(_key: Any, row: dict[str, Any]) -> tuple[Any, Any]:
        one, other = of(left, row.get("left")), of(right, row.get("right"))
        key = one[0] if row.get("left") is not None else other[0]
        return key, [one[1], other[1]]

    return show
