"""An expression to a Python function, compiled once."""

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from penstock.core.expression.emit import Emitter
from penstock.core.expression.tree import Expression, Taken
from penstock.core.expression.types import BOOLEAN, VOID
from penstock.core.expression.values import numbers, strictmath, texts, times
from penstock.errors import DataError, DefinitionError, Problem

__all__ = ["compile_predicate", "compile_row", "compile_step"]

RUNTIME: dict[str, Any] = {
    **{
        name: getattr(module, name)
        for module in (numbers, strictmath, texts, times)
        for name in module.__all__
    },
    **{f"truncate_{unit}": cut for unit, cut in times.TRUNCATIONS.items()},
    "nan": math.nan,
    "repeat": repeat,
    "sqrt": math.sqrt,
}
"""What the templates of operations call, beside Python's own functions."""

_ERRORS = (TypeError, AttributeError, ValueError, ArithmeticError, LookupError)


def compile_row(expression: Expression) -> Callable[[Any], Any]:
    """Return the function from a record to the expression's value, None for null.

    The record is an instance of the class the schema describes. The function never fails on the
    values such a record can hold; a record that breaks its schema raises a DataError.
    """
    return _compile(expression)


def compile_predicate(expression: Expression) -> Callable[[Any], bool]:
    """Return the function from a record to whether a condition is true: null counts as false."""
    if expression.type not in (BOOLEAN, VOID):
        message = f"{expression} gives {expression.type}, not a condition"
        raise DefinitionError((Problem("expression.type", message),))
    return _compile(expression, predicate=True)


def compile_step(
    expression: Expression, taken: Sequence[Taken], *, predicate: bool = False
) -> Callable[[Any, Any], Any]:
    """Return the function from a record, and what steps have taken, to the expression's value.

    Its second argument is a sequence of values, one for each of ``taken``.
    """
    return _compile(expression, predicate=predicate, taken=taken, parameters="r, taken")


def _compile(
    expression: Expression,
    *,
    predicate: bool = False,
    taken: Sequence[Taken] = (),
    parameters: str = "r",
) -> Callable[..., Any]:
    emitter = Emitter(taken)
    body = emitter.body(expression.root, predicate=predicate)
    indented = "\n".join(f"        {line}" for line in body.split("\n"))
    source = (
        f"def evaluate({parameters}):\n    try:\n{indented}\n    except ERRORS as error:\n"
        f"        raise failure(error) from error\n"
    )

    def failure(error: Exception) -> DataError:
        message = f"the record does not fit the expression {expression.text!r}: {error}"
        return DataError(message, code="expression.record")

    scope = {**RUNTIME, **emitter.constants, "ERRORS": _ERRORS, "failure": failure}
    # The source is made from a checked tree: names are quoted, values are constants or their repr.
    exec(compile(source, "<expression>", "exec"), scope)  # noqa: S102
    found: Callable[..., Any] = scope["evaluate"]
    return found
