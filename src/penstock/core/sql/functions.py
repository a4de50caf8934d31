"""The aggregates of queries: their names, what they take, and the combiners that compute them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.core.aggregates.aggregate import form_of
from penstock.core.aggregates.approximatedistinct import ApproximateDistinct
from penstock.core.aggregates.collect import Collect
from penstock.core.aggregates.count import Count
from penstock.core.aggregates.distinct import Distinct
from penstock.core.aggregates.extremes import Max, Min
from penstock.core.aggregates.quantile import Quantile
from penstock.core.aggregates.sums import Mean, Sum
from penstock.core.aggregates.top import Top
from penstock.core.aggregates.variance import Variance
from penstock.core.expression.coercion import RuleError, cast, widen
from penstock.core.expression.tree import Literal, Node
from penstock.core.expression.types import (
    DOUBLE,
    VOID,
    Decimal,
    is_comparable,
    is_numeric,
    to_field_type,
)
from penstock.core.panes.combiner import Combiner
from penstock.core.records.schema import Scalar
from penstock.core.sql.plan import Totalled
from penstock.core.sql.reader import COUNT_ALL, COUNT_DISTINCT

__all__ = ["AGGREGATES", "totalled"]

_INT = Scalar("int")
_MOST_TOP = 1000
"""The most values that ``top`` keeps."""


@dataclass(frozen=True, slots=True)
class _Function:
    """How an aggregate is made: of its options, which are numbers in the text."""

    make: Callable[..., Combiner[Any, Any, Any]]
    options: tuple[str, ...] = ()
    argument: bool = True


def _quantile(share: float) -> Quantile:
    if not 0 <= share <= 1:
        raise RuleError(f"the share is {share:g}", "between 0 and 1: 0.99, for example")
    return Quantile(float(share))


def _top(count: float) -> Top:
    if count != int(count) or not 1 <= count <= _MOST_TOP:
        raise RuleError(f"top keeps {count:g} values", f"a whole number from 1 to {_MOST_TOP}")
    return Top(int(count))


AGGREGATES: Mapping[str, _Function] = {
    COUNT_ALL: _Function(Count, argument=False),
    "count": _Function(Count),
    COUNT_DISTINCT: _Function(Distinct),
    "approx_count_distinct": _Function(ApproximateDistinct),
    "sum": _Function(Sum),
    "avg": _Function(Mean),
    "mean": _Function(Mean),
    "min": _Function(Min),
    "max": _Function(Max),
    "variance": _Function(Variance),
    "var_samp": _Function(Variance),
    "approx_percentile": _Function(_quantile, ("share",)),
    "collect_list": _Function(Collect),
    "top": _Function(_top, ("count",)),
}


def totalled(name: str, arguments: tuple[Node, ...]) -> Totalled:
    """Return an aggregate of these arguments; RuleError where they do not fit."""
    function = AGGREGATES[name]
    shown = name.partition("(")[0]
    wanted = (1 if function.argument else 0) + len(function.options)
    if len(arguments) != wanted:
        words = ", ".join(("value", *function.options))
        raise RuleError(f"{shown} takes {shown}({words})", code="query.aggregate")
    if not function.argument:
        return Totalled(combiner=function.make(), value=None, takes=_INT, gives=_INT)
    options = [_number(shown, each) for each in arguments[1:]]
    combiner = function.make(*options)
    form = form_of(combiner)
    value = arguments[0]
    if form.takes in ("numbers", "floats") and not is_numeric(value.type):
        raise RuleError(f"{shown} takes numbers, not {value.type}")
    if form.takes == "comparable" and (not is_comparable(value.type) or value.type == VOID):
        raise RuleError(f"{shown} takes values that have an order, not {value.type}")
    if form.takes == "floats":
        decimal = isinstance(value.type, Decimal)
        value = cast(value, DOUBLE) if decimal else widen(value, DOUBLE)
    kind = _INT if form.takes == "presence" else to_field_type(value.type)
    if kind is None or form.gives is None:
        raise RuleError(f"{shown} takes no {value.type}")
    return Totalled(combiner=combiner, value=value, takes=kind, gives=form.gives(kind))


def _number(name: str, node: Node) -> float:
    value = node.value if isinstance(node, Literal) else None
    if value is None or not is_numeric(node.type):
        raise RuleError(f"the option of {name} is a number that is written out")
    return float(value)
