"""Expressions: one language for conditions and values, the same answer on every engine.

A text in Spark SQL's dialect is read once, checked against a schema, and becomes a small typed
tree. Spark runs the tree natively (``penstock.pipelines.spark.expressions``), everything else as a
compiled Python function. docs/expressions.md states the language and its meaning.
"""

from penstock.core.expression.compile import compile_predicate, compile_row, compile_step
from penstock.core.expression.fault import Fault
from penstock.core.expression.parse import examine, from_json, parse
from penstock.core.expression.tree import Expression

__all__ = [
    "Expression",
    "Fault",
    "compile_predicate",
    "compile_row",
    "compile_step",
    "examine",
    "from_json",
    "parse",
]
