"""Syntax to a typed tree: names found in the schema, every type checked, all faults collected."""

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice

from penstock.core.expression.calls import FUNCTION_RULES, call_signature
from penstock.core.expression.coercion import RuleError, cast, widen
from penstock.core.expression.fault import Fault
from penstock.core.expression.functions import CASTS, FUNCTIONS, OPERATORS
from penstock.core.expression.parsing import syntax
from penstock.core.expression.parsing.literals import TYPES
from penstock.core.expression.rules import OPERATOR_RULES, choose, comparison
from penstock.core.expression.taken import (
    TAKEN_FUNCTIONS,
    StepRecords,
    about_step,
    one_taken,
    several_taken,
)
from penstock.core.expression.tree import Field, Literal, Member, Node, walk
from penstock.core.expression.types import (
    BIGINT,
    DOUBLE,
    INT,
    INTERVAL,
    VOID,
    Array,
    Decimal,
    Map,
    Struct,
    from_field_type,
)
from penstock.core.hints import did_you_mean
from penstock.core.records import schema as schemas
from penstock.core.records.schema import FieldType, Schema

__all__ = ["Binder", "field_of"]

RULES = OPERATOR_RULES | FUNCTION_RULES

MAX_NODES = 2_000
"""How many operations an expression may come to."""

_NEVER = {
    "current_timestamp": "an expression has no clock; use the record's event time",
    "current_date": "an expression has no clock; use the record's event time",
    "now": "an expression has no clock; use the record's event time",
    "rand": "an expression gives the same value each time",
    "uuid": "an expression gives the same value each time",
    "count": "aggregates are not part of expressions",
    "sum": "aggregates are not part of expressions",
    "avg": "aggregates are not part of expressions",
    "min": "aggregates are not part of expressions; least() compares fields",
    "max": "aggregates are not part of expressions; greatest() compares fields",
}


class Binder:
    """Makes the tree of one expression; ``faults`` holds what is wrong with it.

    ``steps`` are those of a pattern that the expression may refer to, by name.
    """

    def __init__(self, schema: Schema, steps: Mapping[str, StepRecords] | None = None) -> None:
        self._schema = schema
        self._steps = steps or {}
        self.faults: list[Fault] = []

    def whole(self, found: syntax.Syntax, expect: FieldType | None) -> Node | None:
        """Return the tree, its value as the type that is expected; None where there are faults."""
        node = self._bind(found)
        if node is None:
            return None
        try:
            return _checked(node, expect)
        except RuleError as error:
            self._fault(found, error)
            return None

    def _fault(self, spot: syntax.Syntax, error: RuleError) -> None:
        end = spot.start + error.width if error.width else spot.end
        self.faults.append(Fault(error.code, error.message, spot.start, end, error.hint))

    def _bind(self, found: syntax.Syntax) -> Node | None:
        """Return the tree of a part; None where it, or a part of it, has a fault."""
        try:
            return self._node(found)
        except RuleError as error:
            self._fault(found, error)
            return None

    def _node(self, found: syntax.Syntax) -> Node | None:  # noqa: PLR0911 - one for each kind
        match found:
            case syntax.Constant(value=value, type=type_):
                return Literal(value, type_)
            case syntax.Interval(microseconds=length):
                return Literal(length, INTERVAL)
            case syntax.Name():
                return self._named(found)
            case syntax.Member(of=of, name=name):
                return self._member(found, of, name)
            case syntax.Item(of=of, index=index):
                return self._call("[]", (of, index))
            case syntax.Cast(operand=operand, type=type_):
                node = self._bind(operand)
                return node and cast(node, type_)
            case syntax.Case():
                return self._case(found)
            case syntax.Call(name=name, arguments=arguments):
                return self._call(OPERATORS.get(name, name), arguments)

    def _named(self, found: syntax.Name) -> Node:
        """Return what a name stands for."""
        field = field_of(self._schema, found.name)
        return Field(field.name, from_field_type(field.type), field.nullable)

    def _member(self, found: syntax.Syntax, of: syntax.Syntax, name: str) -> Node | None:
        if (step := self._step(of)) is not None:
            return self._one_taken(step, name, found)
        node = self._bind(of)
        return node and _member(node, name, self._near(of, name))

    def _near(self, of: syntax.Syntax, name: str) -> str:
        """Return a hint for a field of what has none: that of a record with a similar name."""
        if not isinstance(of, syntax.Name):
            return ""
        records = {
            field.name: [each.name for each in field.type.schema.fields]
            for field in self._schema.fields
            if isinstance(field.type, schemas.Nested)
        }
        near = [each for each in get_close_matches(of.name, records, n=3) if name in records[each]]
        return f"did you mean '{near[0]}.{name}'?" if near else ""

    def _step(self, of: syntax.Syntax) -> str | None:
        """Return the step of a pattern that a name stands for; fields of the record go first."""
        if isinstance(of, syntax.Name) and of.name in self._steps:
            return None if self._schema.field(of.name) else of.name
        return None

    def _one_taken(self, step: str, name: str, spot: syntax.Syntax) -> Node | None:
        field = syntax.Name(name=name, start=spot.start, end=spot.end)
        node = self._in_step(step, field)
        return node and one_taken(step, self._steps[step], node)

    def _several_taken(self, name: str, argument: syntax.Syntax) -> Node | None:
        found = about_step(argument, self._steps)
        if found is None:
            example = f"{name}({next(iter(self._steps))}.field)"
            raise RuleError(f"{name} takes a field of a step", f"{example}, for example")
        step, rest = found
        node = None if rest is None else self._in_step(step, rest)
        if rest is not None and node is None:
            return None
        return several_taken(name, step, self._steps[step], node)

    def _in_step(self, step: str, found: syntax.Syntax) -> Node | None:
        """Return the tree of a part that is about the records of a step."""
        inner = Binder(self._steps[step].schema)
        node = inner._bind(found)
        self.faults += inner.faults
        return node

    def _case(self, found: syntax.Case) -> Node | None:
        subject = self._bind(found.subject) if found.subject else None
        branches = [(self._bind(when), self._bind(then)) for when, then in found.branches]
        otherwise = self._bind(found.otherwise) if found.otherwise else None
        incomplete = (found.subject and not subject) or (found.otherwise and not otherwise)
        pairs = [(when, then) for when, then in branches if when and then]
        if incomplete or len(pairs) < len(branches):
            return None
        if subject is not None:
            pairs = [(comparison("=", (subject, when)), then) for when, then in pairs]
        return choose(tuple(pairs), otherwise, what="CASE")

    def _call(self, name: str, arguments: tuple[syntax.Syntax, ...]) -> Node | None:
        if self._steps and name in TAKEN_FUNCTIONS and len(arguments) == 1:
            return self._several_taken(name, arguments[0])
        nodes = tuple(node for node in map(self._bind, arguments) if node is not None)
        if name not in RULES and name not in FUNCTIONS and name not in CASTS:
            raise _unknown_function(name)
        return _resolve(name, nodes) if len(nodes) == len(arguments) else None


def _checked(node: Node, expect: FieldType | None) -> Node:
    if node.type == INTERVAL:
        raise RuleError("an interval is only added to a timestamp")
    if sum(1 for _ in islice(walk(node), MAX_NODES + 1)) > MAX_NODES:
        message = f"the expression comes to more than {MAX_NODES} operations"
        raise RuleError(message, code="expression.too-large")
    if expect is None:
        return node
    wanted = from_field_type(expect)
    whole = node.type in (INT, BIGINT)
    number = whole or isinstance(node.type, Decimal)
    if (
        node.type in (wanted, VOID)
        or (wanted == BIGINT and whole)
        or ((wanted == DOUBLE or isinstance(wanted, Decimal)) and number)
    ):
        return widen(node, wanted)
    raise RuleError(f"the expression gives {node.type}, and {expect} is needed")


def field_of(schema: Schema, name: str) -> schemas.Field:
    """Return a field that an expression names; RuleError where there is none of this name."""
    field = schema.field(name)
    if field is None:
        hint = did_you_mean(name, [each.name for each in schema.fields])
        if name == "None":
            hint = "what is missing is null: x is null, x is not null"
        message = f"{schema.name} has no field {name!r}"
        raise RuleError(message, hint, code="expression.unknown-field")
    if not name.isidentifier():
        raise RuleError(f"the name {name!r} has characters that expressions do not take")
    return field


def _member(of: Node, name: str, near: str) -> Node:
    match of.type:
        case Struct(schema):
            field = field_of(schema, name)
            nullable = of.nullable or field.nullable
            return Member(of, name, from_field_type(field.type), nullable)
        case Array():
            hint = f"take one item: [0].{name}"
        case Map():
            hint = f"write ['{name}']"
        case _:
            hint = near
    raise RuleError(f"{of.type} has no field {name!r}", hint)


def _unknown_function(name: str) -> RuleError:
    near = get_close_matches(name, [*FUNCTIONS, *OPERATORS, *FUNCTION_RULES, *CASTS], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "docs/expressions.md lists them all"
    return RuleError(
        f"{name} is not a function of expressions",
        _NEVER.get(name, hint),
        code="expression.unknown-function",
        width=len(name),
    )


def _resolve(name: str, nodes: tuple[Node, ...]) -> Node:
    if name in RULES:
        return RULES[name](name, nodes)
    if name in CASTS:
        if len(nodes) != 1:
            raise RuleError(f"{name} takes 1 argument, not {len(nodes)}")
        return cast(nodes[0], TYPES[name])
    return call_signature(name, FUNCTIONS[name], nodes)
