"""Plans of Spark as trees that can be walked, and put together anew with other inputs.

PySpark has no way to them; these are calls into the JVM. Inputs are known by the alias that they
got, see ``stateful``, and numbered in the order in which they are met from the top down.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.pipelines.program.stateful import is_input, several

__all__ = ["PlanEditor", "analyzed", "nodes", "refuse_unsupported"]


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


class PlanEditor:
    """Makes frames of plans."""

    def __init__(self, spark: SparkSession, inputs: Sequence[str]) -> None:
        self.spark = spark
        self._inputs = inputs
        java: Any = spark.sparkContext._jvm  # noqa: SLF001
        self._java = java
        self._nil = getattr(getattr(java.scala.collection.immutable, "Nil$"), "MODULE$")
        self._none = getattr(getattr(java.scala, "None$"), "MODULE$")

    def frame(self, plan: Any) -> DataFrame:
        """Return a frame that computes a plan."""
        classic = self._java.org.apache.spark.sql.classic
        session = self.spark._jsparkSession  # noqa: SLF001
        return DataFrame(classic.Dataset.ofRows(session, plan), self.spark)

    def values(self, plan: Any, expressions: Sequence[Any], names: Sequence[str]) -> DataFrame:
        """Return a frame with the values of expressions over the rows of a plan."""
        listed = [self._alias(each, name) for each, name in zip(expressions, names, strict=True)]
        logical = self._java.org.apache.spark.sql.catalyst.plans.logical
        return self.frame(logical.Project(self._seq(listed), plan))

    def replaced(
        self,
        plan: Any,
        rows_of: Callable[[int, str], DataFrame | None],
        *,
        first: int = 0,
        hints: bool = True,
    ) -> Any:
        """Return a plan with the rows of these frames for its inputs; None leaves one as it is.

        ``rows_of`` gets the number of an input, counted from ``first``, and its alias. The columns
        of a frame are taken by their names. Without ``hints`` those about what was replaced, such
        as to broadcast it, are left out.
        """
        return self._replaced(plan, rows_of, iter(range(first, first + _MOST)), hints=hints)

    def _replaced(
        self,
        node: Any,
        rows_of: Callable[[int, str], DataFrame | None],
        numbers: Iterator[int],
        *,
        hints: bool,
    ) -> Any:
        if is_input(node, self._inputs):
            found = rows_of(next(numbers), node.alias())
            return node if found is None else self._fed(node, found)
        before = several(node.children())
        after = [self._replaced(each, rows_of, numbers, hints=hints) for each in before]
        if all(one is other for one, other in zip(before, after, strict=True)):
            return node
        if not hints and node.nodeName() == "ResolvedHint":
            return after[0]
        return node.withNewChildren(self._seq(after))

    def _fed(self, node: Any, rows: DataFrame) -> Any:
        """Return an input's node over other rows, its columns known under the ids they had."""
        given = {each.name(): each for each in several(analyzed(rows).output())}
        columns = [
            self._alias(given[each.name()], each.name(), number=each.exprId())
            for each in several(node.child().output())
        ]
        logical = self._java.org.apache.spark.sql.catalyst.plans.logical
        fed = logical.Project(self._seq(columns), analyzed(rows))
        return node.withNewChildren(self._seq([fed]))

    def _alias(self, expression: Any, name: str, *, number: Any = None) -> Any:
        catalyst = self._java.org.apache.spark.sql.catalyst.expressions
        number = catalyst.NamedExpression.newExprId() if number is None else number
        return catalyst.Alias(expression, name, number, self._nil, self._none, self._nil)

    def _seq(self, values: Sequence[Any]) -> Any:
        listed = self._java.java.util.ArrayList()
        for each in values:
            listed.add(each)
        return self._java.PythonUtils.toSeq(listed)


_MOST = 1000
"""No plan has so many inputs."""
