"""What is done to each record of a stream: conditions, new fields, a list's items one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from penstock.core.expression import Expression, examine
from penstock.core.expression.tree import Field as FieldNode
from penstock.core.hints import did_you_mean
from penstock.core.records.names import FIELD_NAME_HINT, field_name_problem
from penstock.core.records.schema import Field, FieldType, ListOf, Scalar, Schema
from penstock.errors import Place, Problem

__all__ = ["Declared", "Flattened", "SelectionStep", "TextReader", "step_words"]

_BOOL = Scalar("bool")


@dataclass(frozen=True, slots=True)
class Flattened:
    """A step: the items of a list, each in a record of its own, in the list's place."""

    field: str


Declared: TypeAlias = str | tuple[tuple[str, str], ...] | Flattened
"""A text is a condition; pairs are the fields that take the place of those before."""


@dataclass(frozen=True, slots=True)
class SelectionStep:
    """One step, read: a condition, the fields that take the place of those before, or a list."""

    condition: Expression | None = None
    fields: tuple[tuple[str, Expression], ...] = ()
    flattens: str = ""
    """The list whose items take its place."""
    schema: Schema | None = None
    """What records are like behind it, where it makes new ones."""


class TextReader:
    """Reads the texts of a declaration one after the other, and keeps what is wrong with each.

    ``schema`` is what records are like behind the steps that were read. A key or an event time is
    kept where all its fields are taken over as they are, under whatever name.
    """

    def __init__(self, schema: Schema, place: Place | None) -> None:
        self.problems: list[Problem] = []
        self.schema = schema
        self._place = place

    def step(self, step: Any) -> SelectionStep | None:
        """Read a condition, fields or a list, which the texts that follow are about."""
        if isinstance(step, str):
            condition = self.expression(step, expect=_BOOL)
            return SelectionStep(condition=condition) if condition else None
        if not isinstance(step, tuple | Flattened):  # the author's, before it was checked
            self.wrong("expression.text", f"{step!r} is not an expression", _EXPRESSION)
            return None
        made = self._flattened(step) if isinstance(step, Flattened) else self._fields(step)
        if made is not None and made.schema is not None:
            self.schema = made.schema
        return made

    def expression(self, text: Any, *, expect: FieldType | None = None) -> Expression | None:
        """Read one text; None: something is wrong with it."""
        if not isinstance(text, str):  # the author's declaration, before it was checked
            self.wrong("expression.text", f"{text!r} is not an expression", _EXPRESSION)
            return None
        found = examine(text, self.schema, expect=expect)
        if isinstance(found, Expression):
            return found
        self.problems += [fault.problem(text, self._place) for fault in found]
        return None

    def wrong(self, code: str, message: str, hint: str = "") -> None:
        """Keep something that is wrong."""
        self.problems.append(Problem(code, message, hint, self._place))

    def named(self, code: str, name: Any) -> bool:
        """Return whether a field can have this name; what is wrong with it is kept."""
        wrong = field_name_problem(name)
        if wrong is not None:
            self.wrong(code, wrong, FIELD_NAME_HINT)
        return wrong is None

    def _fields(self, step: tuple[tuple[str, str], ...]) -> SelectionStep | None:
        named = [self.named("select.name", name) for name, _ in step]
        if not all(named):
            return None
        found = [(name, self.expression(text)) for name, text in step]
        fields = []
        for name, expression in found:
            if expression is None:
                return None
            if expression.field_type is None:
                self.wrong("select.type", f"{name}: {expression.text!r} is always null")
                return None
            fields.append(_field(name, expression, self.schema))
        if not fields:
            self.wrong("select.none", "it selects no fields", '.select(device="device")')
            return None
        read = tuple((name, each) for name, each in found if each)
        return SelectionStep(fields=read, schema=_selected(self.schema, tuple(fields), read))

    def _flattened(self, step: Flattened) -> SelectionStep | None:
        field = self.schema.field(step.field)
        if field is None:
            names = [each.name for each in self.schema.fields]
            text = f"{self.schema.name} has no field {step.field!r}"
            self.wrong("flatten.field", text, did_you_mean(step.field, names))
            return None
        if not isinstance(field.type, ListOf):
            text = f"{field.name!r} is {field.type}, not a list"
            self.wrong("flatten.field", text, "a list's items become records")
            return None
        item = Field(name=field.name, type=field.type.item)
        fields = tuple(item if each is field else each for each in self.schema.fields)
        return SelectionStep(flattens=field.name, schema=replace(self.schema, fields=fields))


_EXPRESSION = 'an expression is a text: "celsius * 1.8 + 32"'


def step_words(steps: tuple[SelectionStep, ...]) -> str:
    """Return steps in words, to see whether they are still the same."""
    return "; ".join(
        f"flatten {step.flattens}"
        if step.flattens
        else step.condition.text
        if step.condition is not None
        else ", ".join(f"{name} = {each.text}" for name, each in step.fields)
        for step in steps
    )


def _field(name: str, expression: Expression, schema: Schema) -> Field:
    """Return the field that takes a value; a field that is taken over stays what it is."""
    if isinstance(expression.root, FieldNode):
        taken = schema.field(expression.root.name)
        if taken is not None:
            return replace(taken, name=name)
    kind: Any = expression.field_type
    nullable = expression.nullable
    return Field(name=name, type=kind, nullable=nullable, optional=nullable)


def _selected(
    before: Schema, fields: tuple[Field, ...], read: tuple[tuple[str, Expression], ...]
) -> Schema:
    taken: dict[str, str] = {}
    for name, expression in read:
        if isinstance(expression.root, FieldNode):
            taken.setdefault(expression.root.name, name)
    whole = all(name in taken for name in before.key)
    return Schema(
        name=before.name,
        fields=fields,
        key=tuple(taken[name] for name in before.key) if whole else (),
        time=taken.get(before.time) if before.time else None,
    )
