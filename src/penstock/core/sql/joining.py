"""Conditions over two relations: which of them are about one side alone, and which join."""

from dataclasses import replace

from penstock.core.expression.tree import Call, Field, Member, Node, walk
from penstock.core.expression.types import DOUBLE, Struct
from penstock.core.sql.access import all_of, conjuncts
from penstock.core.sql.binder import Scope
from penstock.core.sql.plan import LEFT, RIGHT, PlannedJoin
from penstock.core.sql.syntax import JoinKind

__all__ = ["implied", "plan_join", "split"]


def plan_join(condition: Node, kind: JoinKind) -> PlannedJoin | None:
    """Return the join that a condition over joined rows makes; None: it has no equality."""
    left, right, residual = [], [], []
    for each in conjuncts(condition):
        if isinstance(each, Call) and each.name == "equal":
            one, other = each.arguments
            sides = (_places(one), _places(other))
            if sides == ({RIGHT}, {LEFT}):
                one, other = other, one
            if sides in (({LEFT}, {RIGHT}), ({RIGHT}, {LEFT})):
                left.append(_alone(one))
                right.append(_alone(other))
                continue
        residual.append(each)
    if not left:
        return None
    return PlannedJoin(kind=kind, left=tuple(left), right=tuple(right), residual=all_of(residual))


def split(
    where: Node | None, scope: Scope, *, outer: bool
) -> tuple[tuple[Node | None, ...], Node | None]:
    """Return, of a condition, what each relation fulfils alone, and what is left for later."""
    if not scope.joined:
        return (where,), None
    kept: dict[str, list[Node]] = {LEFT: [], RIGHT: []}
    rest = []
    for each in conjuncts(where):
        places = _places(each)
        # A row that lacks its partner may fulfil a condition over the other relation.
        if places == {LEFT} or (places == {RIGHT} and not outer):
            kept[places.pop()].append(_alone(each))
        else:
            rest.append(each)
    return (all_of(kept[LEFT]), all_of(kept[RIGHT])), all_of(rest)


def implied(kept: tuple[Node | None, ...], join: PlannedJoin | None) -> tuple[Node | None, ...]:
    """Return the conditions of both relations, each with what the other's say of joined values.

    A row whose value has another one as its partner fulfils what that one fulfils, or goes with
    nothing: so of both relations only some keys are read.
    """
    if join is None:
        return kept
    left, right = (list(conjuncts(each)) for each in kept)
    more_left: list[Node] = []
    more_right: list[Node] = []
    for one, other in zip(join.left, join.right, strict=True):
        if not isinstance(one, Field) or not isinstance(other, Field) or not _alike(one, other):
            continue
        if other.nullable <= one.nullable:
            more_right += [_about(each, one, other) for each in left if _only_of(each, one)]
        if join.kind == "inner" and one.nullable <= other.nullable:
            more_left += [_about(each, other, one) for each in right if _only_of(each, other)]
    return all_of(dict.fromkeys(left + more_left)), all_of(dict.fromkeys(right + more_right))


def _alike(one: Field, other: Field) -> bool:
    """Return whether equal values of both are one value: of floating-point numbers they are not."""
    return one.type == other.type and one.type != DOUBLE


def _only_of(condition: Node, column: Field) -> bool:
    return {each.name for each in walk(condition) if isinstance(each, Field)} == {column.name}


def _about(node: Node, column: Field, other: Field) -> Node:
    """Return a condition over one column as the same over another one."""
    match node:
        case Field():
            return other
        case Member(of):
            return replace(node, of=_about(of, column, other))
        case Call(_, arguments):
            return replace(node, arguments=tuple(_about(each, column, other) for each in arguments))
    return node


def _places(node: Node) -> set[str]:
    return {each.name for each in walk(node) if isinstance(each, Field)}


def _alone(node: Node) -> Node:
    """Return a value over joined rows as one over the rows of its only relation."""
    match node:
        case Member(Field("l" | "r", Struct()), name, type_, nullable):
            return Field(name, type_, nullable)
        case Member(of):
            return replace(node, of=_alone(of))
        case Call(_, arguments):
            return replace(node, arguments=tuple(map(_alone, arguments)))
    return node
