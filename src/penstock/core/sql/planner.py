"""Syntax to a plan: names are found, types are checked, and all that is wrong is told at once."""

from collections.abc import Mapping

from penstock.core.expression.fault import Fault, FaultError
from penstock.core.expression.parsing import syntax
from penstock.core.expression.tree import Node
from penstock.core.expression.types import BOOLEAN, VOID, is_comparable
from penstock.core.hints import did_you_mean
from penstock.core.records.schema import Schema
from penstock.core.sql.access import access_of, all_of, conjuncts
from penstock.core.sql.binder import GroupBinder, Grouping, RowBinder, Scope, Side
from penstock.core.sql.functions import AGGREGATES
from penstock.core.sql.joining import implied, plan_join, split
from penstock.core.sql.plan import Column, Ordering, Plan, PlannedJoin, Reading
from penstock.core.sql.reader import read_select
from penstock.core.sql.syntax import Item, Select, Source

__all__ = ["plan_query", "relations_of"]


def relations_of(text: str) -> tuple[str, ...]:
    """Return the relations that a query names; FaultError where it cannot be read."""
    found = read_select(text)
    return tuple(source.name for source in _sources(found))


def plan_query(text: str, catalog: Mapping[str, Schema]) -> Plan | tuple[Fault, ...]:
    """Return the plan of a query over relations by their names, or everything wrong with it."""
    try:
        return _Planner(text, read_select(text), catalog).plan()
    except FaultError as error:
        return (error.fault,)
    except _FaultsError as refused:
        return refused.faults


class _FaultsError(Exception):
    def __init__(self, faults: list[Fault]) -> None:
        super().__init__()
        self.faults = tuple(faults)


class _Planner:
    """Makes the plan of one query."""

    def __init__(self, text: str, found: Select, catalog: Mapping[str, Schema]) -> None:
        self._text = text
        self._select = found
        self._catalog = catalog
        self._faults: list[Fault] = []
        self._scope = Scope(())

    def plan(self) -> Plan:
        """Return the plan."""
        select = self._select
        self._scope = Scope(self._sides())
        join = self._join()
        where = self._bound(select.where, RowBinder(self._scope, "WHERE"), condition=True)
        grouping = self._grouping()
        columns = self._columns(grouping)
        aliases = {column.name: column.node for column in columns}
        having = self._having(grouping, aliases)
        order = self._order(grouping, aliases)
        if select.distinct:
            self._check_distinct(columns, order)
        if self._faults:
            raise _FaultsError(self._faults)
        if join is not None and join.kind == "inner":
            where, join = all_of([*conjuncts(where), *conjuncts(join.residual)]), join.alone()
        kept, rest = split(where, self._scope, outer=join is not None and join.kind == "left")
        return Plan(
            text=self._text,
            readings=self._readings(implied(kept, join)),
            join=join,
            where=rest,
            groups=grouping.groups if grouping else None,
            totals=tuple(grouping.totals) if grouping else (),
            having=having,
            columns=columns,
            distinct=select.distinct,
            order=order,
            limit=select.limit,
            offset=select.offset,
            named=self._identity(grouping, columns),
        )

    def _sides(self) -> list[Side]:
        sides: list[Side] = []
        for source in _sources(self._select):
            schema = self._catalog.get(source.name)
            if schema is None:
                hint = did_you_mean(source.name, self._catalog)
                self._wrong(source, "query.unknown-relation", f"there is no {source.name!r}", hint)
                continue
            if any(side.alias == source.alias for side in sides):
                text = f"both relations are called {source.alias!r}"
                self._wrong(source, "query.alias", text, f"{source.name} as other")
            outer = bool(sides) and self._select.join is not None
            nullable = outer and self._select.join.kind == "left"  # type: ignore[union-attr]
            sides.append(Side(source.alias, schema, nullable))
        if self._faults:
            raise _FaultsError(self._faults)
        return sides

    def _join(self) -> PlannedJoin | None:
        join = self._select.join
        if join is None:
            return None
        # Within ON both relations have a row.
        inner = Scope([Side(side.alias, side.schema) for side in self._scope.sides])
        node = self._bound(join.on, RowBinder(inner, "ON"), condition=True)
        if node is None:
            return None
        found = plan_join(node, join.kind)
        if found is None:
            text = "a join needs an equality between the two relations"
            self._wrong(join.on, "query.join", text, "on a.key = b.key")
        return found

    def _grouping(self) -> Grouping | None:
        select = self._select
        outputs = [item.expression for item in select.items if item.expression is not None]
        outputs += [each.expression for each in select.order]
        grouped = select.group or select.having is not None
        if not grouped and not any(map(_has_aggregate, outputs)):
            return None
        groups = []
        for each in select.group:
            node = self._group(each)
            if node is not None and not is_comparable(node.type):
                text = f"rows cannot be grouped by {node.type}"
                self._wrong(each, "query.group", text, "group by one of its fields")
            elif node is not None:
                groups.append(node)
        return Grouping(tuple(groups))

    def _group(self, found: syntax.Syntax) -> Node | None:
        """Return what rows are grouped by: an expression, or a column by its place or its alias."""
        item = self._item_at(found, "GROUP BY")
        if item is None and isinstance(found, syntax.Name):
            named = [each for each in self._select.items if each.alias == found.name]
            columns = [side for side in self._scope.sides if side.schema.field(found.name)]
            item = named[0] if named and not columns else None
        meant = found if item is None or item.expression is None else item.expression
        return self._bound(meant, RowBinder(self._scope, "GROUP BY"))

    def _columns(self, grouping: Grouping | None) -> tuple[Column, ...]:
        columns: list[Column] = []
        for item in self._select.items:
            if item.expression is None:
                columns += self._star(item, grouping)
                continue
            binder = self._output("SELECT", grouping)
            if (node := self._bound(item.expression, binder)) is not None:
                columns.append(Column(name=item.alias or _name(item), node=node))
        seen: set[str] = set()
        for column in columns:
            if column.name in seen:
                items = self._select.items
                item = next((each for each in items[::-1] if _name(each) == column.name), items[-1])
                self._wrong(
                    item,
                    "query.columns",
                    f"two columns are called {column.name!r}",
                    f"give one of them another name: {column.name} as other",
                )
                break
            seen.add(column.name)
        return tuple(columns)

    def _star(self, item: Item, grouping: Grouping | None) -> list[Column]:
        sides = [side for side in self._scope.sides if item.of in ("", side.alias)]
        if not sides:
            hint = did_you_mean(item.of, [side.alias for side in self._scope.sides])
            self._wrong(item, "query.unknown-relation", f"there is no {item.of!r} here", hint)
            return []
        if grouping is not None:
            hint = "name what you group by, and aggregates"
            self._wrong(item, "query.not-grouped", "a grouped query has no *", hint)
            return []
        return [
            Column(name=field.name, node=self._scope.column(side, field.name))
            for side in sides
            for field in side.schema.fields
            if field.name.isidentifier()
        ]

    def _having(self, grouping: Grouping | None, aliases: Mapping[str, Node]) -> Node | None:
        if grouping is None:
            return None
        binder = GroupBinder(self._scope, "HAVING", grouping, aliases=aliases)
        return self._bound(self._select.having, binder, condition=True)

    def _order(
        self, grouping: Grouping | None, aliases: Mapping[str, Node]
    ) -> tuple[Ordering, ...]:
        found = []
        for each in self._select.order:
            item = self._item_at(each.expression, "ORDER BY")
            meant = each.expression if item is None or item.expression is None else item.expression
            clause = "ORDER BY" if item is None else "SELECT"
            node = self._bound(meant, self._output(clause, grouping, aliases))
            if node is None:
                continue
            if not is_comparable(node.type):
                self._wrong(each.expression, "query.order", f"{node.type} has no order", "")
            found.append(
                Ordering(node=node, descending=each.descending, nulls_first=each.nulls_first)
            )
        return tuple(found)

    def _output(
        self, clause: str, grouping: Grouping | None, aliases: Mapping[str, Node] | None = None
    ) -> RowBinder:
        if grouping is None:
            return RowBinder(self._scope, clause, aliases=aliases)
        return GroupBinder(self._scope, clause, grouping, aliases=aliases)

    def _item_at(self, found: syntax.Syntax, clause: str) -> Item | None:
        """Return the item that a bare number stands for; None: it is none."""
        if not isinstance(found, syntax.Constant) or not isinstance(found.value, int):
            return None
        items = self._select.items
        if isinstance(found.value, bool) or not 1 <= found.value <= len(items):
            text = f"{clause} {found.value}: there are {len(items)} columns"
            self._wrong(found, "query.position", text, "")
            return None
        item = items[found.value - 1]
        if item.expression is None:
            self._wrong(found, "query.position", f"{clause} {found.value}: that is *", "name it")
        return item

    def _check_distinct(self, columns: tuple[Column, ...], order: tuple[Ordering, ...]) -> None:
        nodes = [column.node for column in columns]
        for column in columns:
            if not is_comparable(column.type):
                item = self._select.items[0]
                text = f"DISTINCT takes no column of {column.type}: {column.name}"
                self._wrong(item, "query.distinct", text, "leave it out")
        for each, found in zip(order, self._select.order, strict=False):
            if each.node not in nodes:
                text = "with DISTINCT, rows are ordered by columns of the answer"
                self._wrong(found.expression, "query.distinct", text, "select it as well")

    def _readings(self, kept: tuple[Node | None, ...]) -> tuple[Reading, ...]:
        return tuple(
            Reading(
                name=source.name,
                schema=side.schema,
                access=access_of(side.schema, keep),
                keep=keep,
            )
            for source, side, keep in zip(
                _sources(self._select), self._scope.sides, kept, strict=True
            )
        )

    def _identity(self, grouping: Grouping | None, columns: tuple[Column, ...]) -> dict[str, int]:
        """Return the columns that tell rows of the answer apart; none where nothing does."""
        if self._select.distinct:
            wanted = [column.node for column in columns]
        elif grouping is not None:
            fields = [grouping.group(node) for node in grouping.groups]
            wanted = [node for node in fields if node is not None]
            if not wanted:
                return {}
        else:
            keys = [(side, name) for side in self._scope.sides for name in side.schema.key]
            if any(not side.schema.key for side in self._scope.sides):
                return {}
            wanted = [self._scope.column(side, name) for side, name in keys]
        found = {}
        for node in wanted:
            at = next((i for i, column in enumerate(columns) if column.node == node), None)
            if at is None:
                return {}
            found[columns[at].name] = at
        return found

    def _bound(
        self, found: syntax.Syntax | None, binder: RowBinder, *, condition: bool = False
    ) -> Node | None:
        if found is None:
            return None
        node = binder.whole(found, None)
        self._faults += binder.faults
        if node is not None and condition and node.type not in (BOOLEAN, VOID):
            text = f"a condition is needed, and this gives {node.type}"
            self._wrong(found, "expression.type", text, "compare it, as in ... <> 0")
            return None
        return node

    def _wrong(
        self, spot: "Source | Item | syntax.Syntax", code: str, message: str, hint: str
    ) -> None:
        self._faults.append(Fault(code, message, spot.start, spot.end, hint))


def _sources(found: Select) -> list[Source]:
    return [found.source, *([found.join.source] if found.join else [])]


def _name(item: Item) -> str:
    """Return what a column is called that was given no name."""
    match item.expression:
        case None:
            return ""
        case syntax.Name(name=name) | syntax.Member(name=name):
            return item.alias or name
    return item.alias or item.text


def _has_aggregate(found: syntax.Syntax) -> bool:
    match found:
        case syntax.Call(name=name, arguments=arguments):
            return name in AGGREGATES or any(map(_has_aggregate, arguments))
        case syntax.Member(of=of) | syntax.Cast(operand=of):
            return _has_aggregate(of)
        case syntax.Item(of=of, index=index):
            return _has_aggregate(of) or _has_aggregate(index)
        case syntax.Case(subject=subject, branches=branches, otherwise=otherwise):
            parts = [subject, otherwise, *(each for pair in branches for each in pair)]
            return any(part is not None and _has_aggregate(part) for part in parts)
    return False
