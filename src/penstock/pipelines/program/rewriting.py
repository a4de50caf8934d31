"""Plans of Spark as trees that can be walked, and put together anew with other inputs.

PySpark has no way to them; these are calls into the JVM. Inputs are known by the alias that they
got, see ``stateful``, and numbered in the order in which they are met from the top down.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.pipelines.program.stateful import is_input, several

__all__ = ["PlanEditor", "PlanTemplate", "analyzed", "nodes", "refuse_unsupported"]


def analyzed(frame: DataFrame) -> Any:
    """Return the plan of a frame, with every name resolved."""
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no other way


def nodes(plan: Any, inputs: Sequence[str]) -> Iterator[Any]:
    """Yield the nodes of a plan from the top down, each input as one node."""
    yield plan
    if not is_input(plan, inputs):
        for child in several(plan.children()):
            yield from nodes(child, inputs)


def refuse_unsupported(frame: DataFrame, mode: str) -> None:
    """Raise what Spark raises if it is to run a frame as a stream and cannot."""
    java: Any = frame.sparkSession.sparkContext._jvm  # noqa: SLF001
    modes = java.org.apache.spark.sql.streaming.OutputMode
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(analyzed(frame), getattr(modes, mode.capitalize())())


@dataclass(slots=True)
class _Place:
    """A node of a template that is an input, or has inputs below it."""

    node: Any
    below: list["_Place | None"] = field(default_factory=list)
    """One for each child; None: what has no inputs, and stays."""
    number: int | None = None
    """Of an input."""
    alias: str = ""
    columns: list[tuple[str, Any]] = field(default_factory=list)
    """Of an input: the names and ids of its columns."""
    is_hint: bool = False


class PlanTemplate:
    """A plan that was walked once, to be put together with other rows many times.

    A walk is hundreds of calls into the JVM, which a small batch would notice. Inputs are numbered
    from ``first``.
    """

    def __init__(self, plan: Any, inputs: Sequence[str], *, first: int = 0) -> None:
        self.plan = plan
        self._inputs = inputs
        self._count = first
        self.top = self._walked(plan)

    def _walked(self, node: Any) -> _Place | None:
        if is_input(node, self._inputs):
            number, self._count = self._count, self._count + 1
            columns = [(str(each.name()), each.exprId()) for each in several(node.child().output())]
            return _Place(node, number=number, alias=str(node.alias()), columns=columns)
        below = [self._walked(each) for each in several(node.children())]
        if not any(below):
            return None
        return _Place(node, below, is_hint=node.nodeName() == "ResolvedHint")


RowsOf = Callable[[int, str], DataFrame | None]
"""The rows for an input, from its number and its alias; None leaves it as it is."""


class PlanEditor:
    """Makes frames of plans, in one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        java: Any = spark.sparkContext._jvm  # noqa: SLF001
        catalyst = java.org.apache.spark.sql.catalyst
        # Each name on the way to a class is a call of its own.
        self._dataset = java.org.apache.spark.sql.classic.Dataset
        self._project = catalyst.plans.logical.Project
        self._named = catalyst.expressions.Alias
        self._new_number = catalyst.expressions.NamedExpression.newExprId
        self._list, self._to_seq = java.java.util.ArrayList, java.PythonUtils.toSeq
        self._nil = getattr(getattr(java.scala.collection.immutable, "Nil$"), "MODULE$")
        self._none = getattr(getattr(java.scala, "None$"), "MODULE$")

    def frame(self, plan: Any) -> DataFrame:
        """Return a frame that computes a plan."""
        session = self.spark._jsparkSession  # noqa: SLF001
        return DataFrame(self._dataset.ofRows(session, plan), self.spark)

    def values(self, plan: Any, expressions: Sequence[Any], names: Sequence[str]) -> DataFrame:
        """Return a frame with the values of expressions over the rows of a plan."""
        listed = [
            self._alias(each, name, self._new_number())
            for each, name in zip(expressions, names, strict=True)
        ]
        return self.frame(self._project(self._seq(listed), plan))

    def replaced(self, template: PlanTemplate, rows_of: RowsOf, *, hints: bool = True) -> Any:
        """Return the plan of a template with the rows of these frames for its inputs.

        The columns of a frame are taken by their names. Without ``hints`` those about what was
        replaced, such as to broadcast it, are left out.
        """
        found = self._replaced(template.top, rows_of, hints=hints)
        return template.plan if found is None else found

    def _replaced(self, place: _Place | None, rows_of: RowsOf, *, hints: bool) -> Any:
        """Return what takes the place of a node; None: it stays."""
        if place is None:
            return None
        if place.number is not None:
            rows = rows_of(place.number, place.alias)
            return None if rows is None else self._fed(place, rows)
        after = [self._replaced(each, rows_of, hints=hints) for each in place.below]
        if all(each is None for each in after):
            return None
        if place.is_hint and not hints:
            return after[0]
        if any(each is None for each in after):
            before = several(place.node.children())
            pairs = zip(before, after, strict=True)
            after = [one if other is None else other for one, other in pairs]
        return place.node.withNewChildren(self._seq(after))

    def _fed(self, place: _Place, rows: DataFrame) -> Any:
        """Return an input's node over other rows, its columns known under the ids they had."""
        plan = analyzed(rows)
        given = {str(each.name()): each for each in several(plan.output())}
        columns = [self._alias(given[name], name, number) for name, number in place.columns]
        fed = self._project(self._seq(columns), plan)
        return place.node.withNewChildren(self._seq([fed]))

    def _alias(self, expression: Any, name: str, number: Any) -> Any:
        return self._named(expression, name, number, self._nil, self._none, self._nil)

    def _seq(self, values: Sequence[Any]) -> Any:
        listed = self._list()
        for each in values:
            listed.add(each)
        return self._to_seq(listed)
