"""Names and types in a query: which relation a name is of, and what stands over groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.aggregates.aggregate import form_of
from penstock.core.expression.binder import Binder
from penstock.core.expression.coercion import RuleError
from penstock.core.expression.parsing import syntax
from penstock.core.expression.tree import Field, Member, Node
from penstock.core.expression.types import Struct, from_field_type
from penstock.core.hints import did_you_mean
from penstock.core.records.schema import Schema
from penstock.core.sql.functions import AGGREGATES, totalled
from penstock.core.sql.plan import LEFT, RIGHT, Totalled

__all__ = ["GroupBinder", "Grouping", "RowBinder", "Scope", "Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """One relation of a query, by the name that the query has for it."""

    alias: str
    schema: Schema
    nullable: bool = False
    """Whether a row may lack it: the second relation of a left join."""


class Scope:
    """The relations whose columns names may stand for."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self.sides = sides
        self.joined = len(sides) > 1

    def side(self, alias: str) -> Side | None:
        """Return the relation of this name."""
        return next((side for side in self.sides if side.alias == alias), None)

    def column(self, side: Side, name: str) -> Node:
        """Return a column of a relation; RuleError where it has none of this name."""
        found = side.schema.field(name)
        if found is None:
            hint = did_you_mean(name, [each.name for each in side.schema.fields])
            text = f"{side.alias} has no column {name!r}"
            raise RuleError(text, hint, code="query.unknown-column")
        type_ = from_field_type(found.type)
        if not self.joined:
            return Field(name, type_, found.nullable)
        place = LEFT if side is self.sides[0] else RIGHT
        row = Field(place, Struct(side.schema), side.nullable)
        return Member(row, name, type_, side.nullable or found.nullable)

    def named(self, name: str) -> Node:
        """Return the column that a bare name stands for; RuleError: none, or several."""
        having = [side for side in self.sides if side.schema.field(name) is not None]
        if len(having) == 1:
            return self.column(having[0], name)
        if having:
            hint = " or ".join(f"{side.alias}.{name}" for side in having)
            text = f"both relations have a column {name!r}"
            raise RuleError(text, f"write {hint}", code="query.ambiguous")
        known = [each.name for side in self.sides for each in side.schema.fields]
        names = " and ".join(side.alias for side in self.sides)
        text = f"{names} {'have' if self.joined else 'has'} no column {name!r}"
        raise RuleError(text, did_you_mean(name, known), code="query.unknown-column")


class RowBinder(Binder):
    """Binds what stands over rows: ``where``, ``on``, what is grouped by, arguments."""

    def __init__(
        self, scope: Scope, clause: str, *, aliases: Mapping[str, Node] | None = None
    ) -> None:
        super().__init__(scope.sides[0].schema)
        self._scope = scope
        self._clause = clause
        self._aliases = aliases or {}
        """What names stand for that are columns of no relation; in ORDER BY they go first."""

    def _named(self, found: syntax.Name) -> Node:
        if self._clause == "ORDER BY" and found.name in self._aliases:
            return self._aliases[found.name]
        try:
            return self._scope.named(found.name)
        except RuleError as error:
            if error.code == "query.unknown-column" and found.name in self._aliases:
                return self._aliases[found.name]
            raise

    def _member(self, found: syntax.Syntax, of: syntax.Syntax, name: str) -> Node | None:
        """Bind ``relation.column``, or a field of a record that a column holds."""
        side = self._scope.side(_dotted(of))
        if side is not None:
            plain = isinstance(of, syntax.Name) and self._has(of.name)
            if side.schema.field(name) is not None or not plain:
                return self._scope.column(side, name)
        return super()._member(found, of, name)

    def _has(self, name: str) -> bool:
        return any(side.schema.field(name) is not None for side in self._scope.sides)

    def _call(self, name: str, arguments: tuple[syntax.Syntax, ...]) -> Node | None:
        if name in AGGREGATES:
            shown = name.partition("(")[0]
            hint = "HAVING has conditions over groups" if self._clause == "WHERE" else ""
            text = f"{shown} is an aggregate, and there are none in {self._clause}"
            raise RuleError(text, hint, code="query.aggregate", width=len(shown))
        return super()._call(name, arguments)


@dataclass(slots=True)
class Grouping:
    """What a query groups by, and the aggregates that were found so far."""

    groups: tuple[Node, ...]
    totals: list[Totalled] = field(default_factory=list)

    def group(self, node: Node) -> Node | None:
        """Return the field of a group that a value over rows is, None where it is none."""
        if node not in self.groups:
            return None
        return Field(f"g{self.groups.index(node)}", node.type, node.nullable)

    def total(self, found: Totalled) -> Node:
        """Return the field of a group that holds an aggregate."""
        if found not in self.totals:
            self.totals.append(found)
        name = f"a{self.totals.index(found)}"
        return Field(name, from_field_type(found.gives), form_of(found.combiner).nullable)


class GroupBinder(RowBinder):
    """Binds what stands over groups: ``select``, ``having`` and ``order by`` of a grouped query."""

    def __init__(
        self,
        scope: Scope,
        clause: str,
        grouping: Grouping,
        *,
        aliases: Mapping[str, Node] | None = None,
    ) -> None:
        super().__init__(scope, clause, aliases=aliases)
        self._grouping = grouping

    def _node(self, found: syntax.Syntax) -> Node | None:
        if self._clause == "ORDER BY" and isinstance(found, syntax.Name):
            return self._named(found)
        if not isinstance(found, syntax.Constant):
            rows = RowBinder(self._scope, "an aggregate")
            over_rows = rows.whole(found, None)
            if over_rows is not None and (node := self._grouping.group(over_rows)) is not None:
                return node
        return super()._node(found)

    def _named(self, found: syntax.Name) -> Node:
        if found.name in self._aliases:
            return self._aliases[found.name]
        over_rows = self._scope.named(found.name)
        if (node := self._grouping.group(over_rows)) is not None:
            return node
        raise self._loose(found.name)

    def _member(self, found: syntax.Syntax, of: syntax.Syntax, name: str) -> Node | None:
        side = self._scope.side(_dotted(of))
        if side is not None and side.schema.field(name) is not None:
            raise self._loose(name)
        return super()._member(found, of, name)

    def _call(self, name: str, arguments: tuple[syntax.Syntax, ...]) -> Node | None:
        if name not in AGGREGATES:
            return super()._call(name, arguments)
        rows = RowBinder(self._scope, "an aggregate")
        nodes = [rows.whole(each, None) for each in arguments]
        self.faults += rows.faults
        bound = tuple(node for node in nodes if node is not None)
        if len(bound) < len(nodes):
            return None
        return self._grouping.total(totalled(name, bound))

    def _loose(self, name: str) -> RuleError:
        return RuleError(
            f"{name!r} is neither grouped by nor within an aggregate",
            f"group by {name}, or take max({name}), for example",
            code="query.not-grouped",
        )


def _dotted(found: syntax.Syntax) -> str:
    """Return a name with points as the name of a relation: ``watch.highest``."""
    match found:
        case syntax.Name(name=name):
            return name
        case syntax.Member(of=syntax.Name(name=of), name=name):
            return f"{of}.{name}"
    return ""
