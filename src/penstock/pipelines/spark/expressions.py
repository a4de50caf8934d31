"""Expressions on Spark: a checked tree to SQL text of our own making, and to a Column.

Spark never sees the user's text. It would substitute ``${...}`` in it by the session's settings,
even inside quotes, and would call any function it names. What is written here holds operations of
the table, names of fields in backticks, and constants in which nothing but letters, digits, spaces
and ``_.,:/-`` stands between quotes; any other text travels as hexadecimal digits.
"""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from penstock.core.expression import Expression
from penstock.core.expression.operations import APART, OPERATIONS, Operation
from penstock.core.expression.tree import Call, Field, Literal, Member, Node, Taken, walk
from penstock.core.expression.types import BIGINT, VOID
from penstock.core.expression.values.times import days_of
from penstock.core.instants import micros
from penstock.core.matching.matching import is_plain_like, like_to_regex
from penstock.pipelines.spark.patterns import register_search, searched

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["column", "spark_sql"]

_END = r"\z"
"""How Java writes the end of a text."""
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _.,:/-]*")


def column(expression: Expression) -> "Column":
    """Return the expression as a Column over a DataFrame whose columns are the record's fields.

    It means the same whether or not the session is in ANSI mode, and never fails on a record; the
    session's time zone must be UTC, as that of ``pipelines.session`` is.
    """
    from pyspark.sql import SparkSession, functions

    register_search(SparkSession.active())
    return functions.expr(spark_sql(expression))


def spark_sql(expression: Expression) -> str:
    """Return the expression in Spark SQL."""
    return _sql(expression.root)


def _sql(node: Node) -> str:
    match node:
        case Literal():
            return _literal(node)
        case Field(name):
            return f"`{name}`"
        case Member(of, name):
            return f"{_sql(of)}.`{name}`"
        case Call():
            return _call(node)
        case Taken():
            raise TypeError(f"only patterns know what the step {node.step!r} has taken")


def _call(node: Call) -> str:
    match node:
        case Call("rlike", (text, Literal(str() as pattern))):
            return searched(_sql(text), pattern, written=_text(pattern))
        case Call("like", (text, Literal(str() as pattern))) if not is_plain_like(pattern):
            # Spark's own LIKE goes back and tries again at each percent sign.
            return f"rlike({_sql(text)}, {_text(like_to_regex(pattern, end=_END))})"
    operation = OPERATIONS[node.name]
    arguments = [
        APART[operation.merges].format(_sql(argument))
        if _merges(operation, argument)
        else _sql(argument)
        for argument in node.arguments
    ]
    return operation.spark.format(
        *arguments,
        all=", ".join(arguments),
        rest=", ".join(arguments[1:]),
        conjunction=" AND ".join(arguments),
        disjunction=" OR ".join(arguments),
        branches=_branches(arguments) if node.name == "case" else "",
        type=str(node.type).upper(),
    )


def _merges(operation: Operation, argument: Node) -> bool:
    """Return whether Spark might merge an operation with one below it."""
    calls = (node for node in walk(argument) if isinstance(node, Call))
    return bool(operation.merges) and any(
        OPERATIONS[call.name].merges == operation.merges for call in calls
    )


def _branches(arguments: list[str]) -> str:
    *pairs, otherwise = arguments
    cases = zip(pairs[::2], pairs[1::2], strict=True)
    return " ".join([*(f"WHEN {when} THEN {then}" for when, then in cases), f"ELSE {otherwise}"])


def _literal(node: Literal) -> str:  # noqa: PLR0911 - one for each kind of constant
    match node.value:
        case None:
            return "NULL" if node.type == VOID else f"CAST(NULL AS {str(node.type).upper()})"
        case bool() as value:
            return str(value).lower()
        case int() as value:
            return _signed(f"{value}L" if node.type == BIGINT else str(value))
        case float() as value:
            return _signed(f"{value!r}D")
        case Decimal() as value:
            return f"CAST({_signed(f'{value:f}BD')} AS {str(node.type).upper()})"
        case datetime() as value:
            return f"timestamp_micros({_signed(f'{micros(value)}L')})"
        case date() as value:
            return f"date_from_unix_date({_signed(str(days_of(value)))})"
        case value:
            return _text(str(value))


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number


def _text(value: str) -> str:
    if _PLAIN_TEXT.fullmatch(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex()}' AS STRING)"
