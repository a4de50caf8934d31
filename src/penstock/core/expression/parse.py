"""From text to expression, or to everything that is wrong with it."""

from collections.abc import Mapping
from typing import Any

from penstock.core.expression.binder import Binder
from penstock.core.expression.fault import Fault, FaultError, definition_error
from penstock.core.expression.parsing.grammar import read
from penstock.core.expression.taken import StepRecords
from penstock.core.expression.tree import Expression
from penstock.core.records.schema import FieldType, Schema

__all__ = ["examine", "from_json", "parse"]


def parse(text: str, schema: Schema, *, expect: FieldType | None = None) -> Expression:
    """Return the expression that a text states about records of a schema.

    ``expect`` is the type of field its value is for (``Scalar("bool")`` for a condition): a number
    is widened to it, anything else refused. Raises DefinitionError with all problems, each with its
    place in the text.
    """
    found = examine(text, schema, expect=expect)
    if isinstance(found, Expression):
        return found
    raise definition_error(found, text)


def examine(
    text: str,
    schema: Schema,
    *,
    expect: FieldType | None = None,
    steps: Mapping[str, StepRecords] | None = None,
) -> Expression | tuple[Fault, ...]:
    """Return the expression, or what is wrong with the text.

    With ``steps`` it may refer to what steps of a pattern have taken: ``sum(start.price)``.
    """
    binder = Binder(schema, steps)
    try:
        root = binder.whole(read(text), expect)
    except FaultError as error:
        return (error.fault,)
    return Expression(root, text, schema) if root is not None else tuple(binder.faults)


def from_json(value: dict[str, Any]) -> Expression:
    """Return the expression that :meth:`Expression.to_json` wrote; it is read and checked again."""
    return parse(value["text"], Schema.from_json(value["schema"]))
