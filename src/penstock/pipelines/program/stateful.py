"""What the state of a DataFrame's plan is made of, in words that are the same at every start.

Spark keeps state by the place of an operator in the plan, and does not know what it means. The text
names the operators that keep state, with their keys, functions and types, and everything computed
before them. It leaves out what comes after the last one, and what happens inside Python functions.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame

__all__ = ["is_input", "keeps_state", "repeats_alike", "several", "state_aspects", "steps_behind"]

_SECOND = 1_000_000
_KINDS = {
    "Aggregate": "aggregation",
    "Deduplicate": "deduplication",
    "DeduplicateWithinWatermark": "deduplication within the watermark",
    "Distinct": "deduplication",
    "Join": "join of streams",
    "GlobalLimit": "limit",
    "FlatMapGroupsInPandasWithState": "keyed state",
    "TransformWithStateInPySpark": "keyed state",
}
_WORDS = {"Filter": "where", "Project": "with", "Expand": "with"}
_PLAIN = "AttributeReference"
_CONSTANT = ("LocalRelation", "OneRowRelation", "Range")
"""What a plan may read beside its inputs, and finds the same each time."""

_WINDOW = re.compile(
    r"named_struct\('start', knownnullable\(precisetimestampconversion\(\(\("
    r"precisetimestampconversion\((?P<at>.+?)\) - CASE WHEN \(\(\(.+? - (?P<offset>-?\d+)L\)"
    r" % (?P<slide>\d+)L\).+?'end', .+? \+ (?P<size>\d+)L\)\)\)\)"
)
"""What Spark makes of ``window(at, ...)``."""
_SEED = re.compile(r"\b(rand|randn|uuid|shuffle|randstr)\((.*?,? ?)-?\d+L?\)")
"""A function that was given no seed has another one at each start."""


def state_aspects(frame: DataFrame, inputs: Sequence[str]) -> dict[str, str]:
    """Return what each operator with state keeps, and of what; empty for a plan without state.

    ``inputs`` are the aliases of the frames that the plan is made of; what they are is not told.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no other way
    found: dict[str, str] = {}
    for operator in reversed(list(_operators(plan, inputs))):
        kind, number = _KINDS[operator.nodeName()], 1
        name = kind
        while name in found:
            number += 1
            name = f"{kind} {number}"
        found[name] = _kept(operator)
        fed = [line for child in several(operator.children()) for line in _feeding(child, inputs)]
        found[f"{name}, of"] = "; ".join(dict.fromkeys(fed))
    return found


def steps_behind(frame: DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what is computed behind the last operator with state; all, of a plan without."""
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no other way
    return list(_feeding(plan, inputs))


def repeats_alike(frame: DataFrame, inputs: Sequence[str], *, keyed: bool) -> bool:
    """Return whether a batch that is computed again gives rows that are split as they were.

    They may not be where the plan reads a table that can change, or calls a function that gives
    another value each time. State without keys in the output is split by its values, and a sum of
    floats depends on the order in which they come.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no other way
    if not plan.deterministic():
        return False
    leaves = several(plan.collectLeaves())
    if any(not leaf.isStreaming() and leaf.nodeName() not in _CONSTANT for leaf in leaves):
        return False
    return keyed or not any(True for _ in _operators(plan, inputs))


def _operators(node: Any, inputs: Sequence[str]) -> Iterator[Any]:
    """Yield the operators with state, from the output down to the inputs."""
    if is_input(node, inputs):
        return
    if keeps_state(node):
        yield node
    for child in several(node.children()):
        yield from _operators(child, inputs)


def keeps_state(node: Any) -> bool:
    """Return whether a node of a stream's plan has state."""
    if node.nodeName() not in _KINDS or not node.isStreaming():
        return False
    if node.nodeName() == "Join":
        return all(child.isStreaming() for child in several(node.children()))
    return True


def _kept(node: Any) -> str:
    """Return keys, functions and types of an operator with state."""
    match node.nodeName():
        case "Aggregate":
            given = several(node.aggregateExpressions())
            made = _list(function for each in given for function in _functions(each))
            keys = _list(several(node.groupingExpressions()))
            return f"by {keys or 'nothing'}: {made or 'nothing'}"
        case "Join":
            on = node.condition()
            condition = _text(on.get()) if on.isDefined() else "nothing"
            sides = (_list(several(child.output())) for child in several(node.children()))
            return f"{node.joinType().sql().lower()} on {condition}, keeps {' and '.join(sides)}"
        case "TransformWithStateInPySpark":
            return f"by {_list(several(node.leftAttributes()))}"
        case "FlatMapGroupsInPandasWithState":
            state = node.stateType().simpleString()
            return f"by {_list(several(node.groupingAttributes()))}: {state}"
        case "Distinct":
            return f"by {_list(several(node.output()))}"
    return f"by {_list(several(node.expressions()))}"


def _feeding(node: Any, inputs: Sequence[str]) -> Iterator[str]:
    """Yield what is computed before an operator, up to the inputs or the operator before it."""
    if is_input(node, inputs):
        yield f"reads {node.alias()}"
        return
    if keeps_state(node):
        yield f"what the {_KINDS[node.nodeName()]} gives"
        return
    name = node.nodeName()
    made = [_text(each) for each in several(node.expressions()) if _class(each) != _PLAIN]
    if name == "EventTimeWatermark":
        yield f"watermark on {_text(node.eventTime())}"
    elif made:
        yield f"{_WORDS.get(name, name)} {', '.join(dict.fromkeys(made))}"
    elif name not in (*_WORDS, "SubqueryAlias"):
        yield name
    for child in several(node.children()):
        yield from _feeding(child, inputs)


def is_input(node: Any, inputs: Sequence[str]) -> bool:
    """Return whether a node is one of the inputs, and not a later frame of the same alias."""
    if node.nodeName() != "SubqueryAlias" or node.alias() not in inputs:
        return False
    return not any(_has_input(child, inputs) for child in several(node.children()))


def _has_input(node: Any, inputs: Sequence[str]) -> bool:
    if node.nodeName() == "SubqueryAlias" and node.alias() in inputs:
        return True
    return any(_has_input(child, inputs) for child in several(node.children()))


def _list(expressions: Iterable[Any]) -> str:
    found = (f"{_text(each)} ({each.dataType().simpleString()})" for each in expressions)
    return ", ".join(dict.fromkeys(found))


def _functions(expression: Any) -> Iterator[Any]:
    """Yield the aggregate functions in an expression; what is made of their results is not kept."""
    if _class(expression) == "AggregateExpression":
        yield expression
        return
    for child in several(expression.children()):
        yield from _functions(child)


def _text(expression: Any) -> str:
    text = _WINDOW.sub(_window_text, str(expression.sql())).replace("`", "")
    return _SEED.sub(r"\1(\2)", text)


def _window_text(found: re.Match[str]) -> str:
    spans = {name: f"{int(found[name]) / _SECOND:g}s" for name in ("size", "slide", "offset")}
    extra = "" if spans["slide"] == spans["size"] else f" every {spans['slide']}"
    extra += "" if spans["offset"] == "0s" else f" from {spans['offset']}"
    return f"window({found['at']}, {spans['size']}{extra})"


def _class(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


def several(found: Any) -> list[Any]:
    """Return what a sequence of Scala's holds."""
    return [found.apply(index) for index in range(found.size())]
