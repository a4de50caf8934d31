"""The two sides of a join as declared: what they read, by which fields, in which partitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from penstock.core.derived.selected import ReadSelection, Selected, read_selection
from penstock.core.hints import did_you_mean
from penstock.core.instants import MICROSECOND
from penstock.core.joins.declared import DeclaredJoin
from penstock.core.operators.broadcast import Broadcast
from penstock.core.records.names import is_field_name
from penstock.core.records.record import is_key_type
from penstock.core.records.schema import Choice, Field, FieldType, Scalar, Schema
from penstock.errors import Problem

__all__ = ["JoinKind", "Pair", "Side", "read_sides"]

JoinKind: TypeAlias = Literal["streams", "lookup", "broadcast", "tables", "foreign"]
"""Two streams; a stream and a table, or one that is broadcast; two tables, by key or not."""

SideKind: TypeAlias = Literal["stream", "table", "broadcast"]


@dataclass(frozen=True, slots=True)
class Side:
    """One side: a stream or table with steps, and the fields that it is joined on."""

    selected: Selected
    selection: ReadSelection
    kind: SideKind
    name: str
    on: tuple[str, ...]
    carried: bool = False
    """Whether its records must go to other partitions first."""

    @property
    def data(self) -> Any:
        """The stream or table."""
        return self.selected.data

    @property
    def schema(self) -> Schema:
        """What its rows are like."""
        return self.selection.schema

    @property
    def partitions(self) -> int:
        """How many partitions its topic has."""
        count: int = self.data.topic.partitions
        return count

    @property
    def keyed(self) -> bool:
        """Whether its records are where the fields say that they are."""
        by_key = self.kind == "table" or self.data.topic.partitioning == "key"
        return by_key and self.data.record.schema.key != () and self.schema.key == self.on

    @property
    def history(self) -> int | None:
        """For how long its rows are kept as they were, in microseconds; None: they are not."""
        span = getattr(self.data, "history", None)
        return None if span is None else span // MICROSECOND

    def fields(self) -> list[Field]:
        """Return the fields that it is joined on."""
        return [found for name in self.on if (found := self.schema.field(name)) is not None]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides, and what kind of join that makes."""

    kind: JoinKind
    left: Side
    right: Side

    def __iter__(self) -> Any:
        """Yield the left side, then the right one."""
        return iter((self.left, self.right))


def read_sides(join: DeclaredJoin) -> Pair | list[Problem]:
    """Return both sides, or everything that is wrong with them."""
    found, problems = [], []
    given = (join.left, join.right)
    for number, each in enumerate(given):
        side = _read(join, each, number)
        if isinstance(side, Side):
            found.append(side)
        else:
            problems += side
    if problems:
        return problems
    left, right = found
    kind = _kind(left, right)
    wrong = [*_names(left, right), *_fields(left, right)]
    if kind is None:
        wrong.append(_no_kind(left, right))
    elif kind in ("lookup", "foreign", "broadcast") and right.on != right.data.record.schema.key:
        key = ", ".join(right.data.record.schema.key)
        text = f"rows of {right.data.name!r} are looked up by their key, which is {key}"
        wrong.append(("join.on", text, _on_hint(left, right)))
    if wrong or kind is None:
        return [Problem(*each, join.place) for each in wrong]
    return _carried(join, Pair(kind, left, right))


def _read(join: DeclaredJoin, given: Any, number: int) -> Side | list[Problem]:
    table = isinstance(given, Broadcast)
    selected = Selected.of(given.table) if table else given
    selection = read_selection(selected, join.place)
    if not isinstance(selection, ReadSelection):
        return selection
    if table and selected.data.kind != "table":
        text = f"{selected.data.name!r} is not a table: only tables are broadcast"
        return [Problem("join.broadcast", text, "declare it with app.table(...)", join.place)]
    if join.names is None:
        name = selected.data.name.replace(".", "_").replace("-", "_")
    else:
        name = join.names[number]
    on = tuple(pair[number] for pair in join.on)
    kind: SideKind = "broadcast" if table else selected.data.kind
    if kind != "stream" and any(not isinstance(step, str) for step in selected.steps):
        text = f"rows of table {selected.data.name!r} cannot be selected here"
        hint = "declare the selection as a table of its own: app.table(...)"
        return [Problem("join.table", text, hint, join.place)]
    return Side(selected, selection, kind, name, on)


def _kind(left: Side, right: Side) -> JoinKind | None:
    match left.kind, right.kind:
        case "stream", "stream":
            return "streams"
        case "stream", "table":
            return "lookup"
        case "stream", "broadcast":
            return "broadcast"
        case "table", "table":
            same = left.on == left.schema.key and right.on == right.schema.key
            return "tables" if same else "foreign"
    return None


def _no_kind(left: Side, right: Side) -> tuple[str, str, str]:
    text = f"a {left.kind} cannot be joined with a {right.kind}"
    hint = (
        "turn it round: the stream comes first"
        if right.kind == "stream"
        else ("join the tables without broadcast(...)")
    )
    return "join.kind", text, hint


def _names(left: Side, right: Side) -> list[tuple[str, str, str]]:
    hint = 'names=("first", "second") says what the sides are called'
    wrong = []
    names: tuple[Any, Any] = (left.name, right.name)
    keys = {*left.on, *(left.schema.key if right.kind == "broadcast" else ())}
    if left.name == right.name:
        wrong.append(("join.names", f"both sides are called {left.name!r}", hint))
    for name in dict.fromkeys(names):
        if not is_field_name(name):
            wrong.append(("join.names", f"{name!r} is not a name for a side", hint))
        elif name in keys or name in ("at", "withdrawn"):
            wrong.append(("join.names", f"{name!r} is a side and a field of the results", hint))
    return wrong


def _fields(left: Side, right: Side) -> list[tuple[str, str, str]]:
    wrong = []
    if not left.on:
        return [("join.on", "it names no field", _on_hint(left, right))]
    for side in (left, right):
        for name in side.on:
            field = side.schema.field(name)
            if field is None:
                known = [each.name for each in side.schema.fields]
                text = f"{side.name} has no field {name!r}"
                wrong.append(("join.on", text, did_you_mean(name, known)))
            elif not is_key_type(field.type):
                text = f"{side.name}.{name} is {field.type}"
                hint = "join on a text, an int, a bool, a date or an instant"
                wrong.append(("join.on", text, hint))
    if wrong:
        return wrong
    for one, other in zip(left.fields(), right.fields(), strict=True):
        if _plain(one.type) != _plain(other.type):
            text = (
                f"{left.name}.{one.name} is {one.type}, {right.name}.{other.name} is {other.type}"
            )
            wrong.append(("join.on", text, "select the same type on both sides"))
    return wrong


def _plain(kind: FieldType) -> FieldType:
    return Scalar("text") if isinstance(kind, Choice) else kind


def _on_hint(left: Side, right: Side) -> str:
    key = right.data.record.schema.key
    pairs = ", ".join(f'"field of {left.name}": "{name}"' for name in key)
    return f"on={{{pairs}}}" if pairs else 'on="order", for example'


def _carried(join: DeclaredJoin, pair: Pair) -> Pair | list[Problem]:
    """Return the sides with what must be repartitioned, or say that it was not asked for."""
    left, right = pair
    if pair.kind not in ("streams", "lookup"):
        if pair.kind == "tables" and left.partitions != right.partitions:
            text = f"{left.data.name} has {left.partitions} partitions, "
            text += f"{right.data.name} has {right.partitions}"
            hint = "declare both tables with the same number of partitions"
            return [Problem("join.partitions", text, hint, join.place)]
        return pair
    carry_left = not left.keyed
    carry_right = pair.kind == "streams" and not right.keyed
    reasons = [
        f"{side.data.name} is not keyed by {', '.join(side.on)}"
        for side, carry in ((left, carry_left), (right, carry_right))
        if carry
    ]
    if left.partitions != right.partitions and not (carry_left or carry_right):
        reasons.append(
            f"{left.data.name} has {left.partitions} partitions, "
            f"{right.data.name} has {right.partitions}"
        )
        carry_left = True
    if reasons and not join.repartition:
        hint = "repartition=True sends the records through a topic keyed so"
        if pair.kind == "lookup":
            hint += f"; broadcast({right.data.name}) needs none"
        return [Problem("join.partitions", "; ".join(reasons), hint, join.place)]
    return Pair(pair.kind, replace(left, carried=carry_left), replace(right, carried=carry_right))
