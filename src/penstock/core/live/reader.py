"""Reads a filter: the MongoDB filter language as a document.

Everything that is wrong is refused when the query is made, with the operator and its path. Nothing
is ignored.
"""

from collections.abc import Callable
from typing import Any, Literal

from penstock.core.hints import did_you_mean
from penstock.core.live.comparisons import COMPARISONS, equal_to, one_of
from penstock.core.live.filter import Condition, Joined, Node, compiled
from penstock.core.live.geography import GEOGRAPHY
from penstock.core.live.paths import as_object
from penstock.core.live.refusal import refuse
from penstock.core.live.shapes import SHAPES, exists
from penstock.core.live.texts import Pattern, pattern_test, read_pattern_value
from penstock.core.live.values import kind_of

__all__ = ["DEEPEST_FILTER", "LARGEST_FILTER", "read_filter"]

DEEPEST_FILTER = 50
"""How many documents and lists of a filter may stand within each other."""
LARGEST_FILTER = 10_000
"""How many values a filter may have in all."""

_JOINS: dict[str, Literal["all", "any", "none"]] = {"$and": "all", "$or": "any", "$nor": "none"}
_NEAR = {"$near", "$nearSphere"}
_UNSUPPORTED = {"$where", "$text", "$expr", "$jsonSchema"}


def read_filter(given: Any) -> Node:
    """Return what a filter says; a DataError says what is wrong with it, and where."""
    if not isinstance(given, dict):
        raise refuse("a filter is an object", operator="filter", path="")
    _measure(given)
    return _Reader().document(given)


def _measure(given: Any) -> None:
    """Refuse what is too deep or too large, and values that no document holds."""
    count, waiting = 0, [(given, 0)]
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > DEEPEST_FILTER:
            text = f"more than {DEEPEST_FILTER} levels within each other"
            raise refuse(text, operator="filter", path="")
        if count > LARGEST_FILTER:
            raise refuse(f"more than {LARGEST_FILTER:,} values", operator="filter", path="")
        if isinstance(value, dict):
            waiting += ((each, depth + 1) for each in value.values())
        elif isinstance(value, list):
            waiting += ((each, depth + 1) for each in value)
        else:
            _known(value)


def _known(value: Any) -> None:
    try:
        kind_of(value)
    except TypeError as error:
        raise refuse(str(error), operator="filter", path="") from error


class _Reader:
    """Reads documents of conditions, and the conditions of one field."""

    def __init__(self) -> None:
        self._choices = 0
        """How many ``$or`` and ``$nor`` the part that is read stands in."""
        self._named: dict[str, Callable[[str, Any], Node]] = {
            "$ne": lambda path, operand: _not(self._equals("$eq", path, operand)),
            "$in": self._in,
            "$nin": lambda path, operand: _not(self._in(path, operand, "$nin")),
            "$not": self._not,
            "$all": self._all,
            "$exists": self._exists,
            "$elemMatch": self._element,
        }

    def document(self, given: dict[str, Any]) -> Node:
        """Read a document of conditions: all of them hold."""
        nodes: list[Node] = []
        for name, value in given.items():
            if name in _JOINS:
                nodes.append(self._joined(name, value))
            elif name == "$comment":
                continue
            elif name.startswith("$"):
                raise self._unknown(name, "", top=True)
            else:
                nodes.append(self._field(name, value))
        return nodes[0] if len(nodes) == 1 else Joined("all", tuple(nodes))

    def _joined(self, name: str, value: Any) -> Node:
        if not isinstance(value, list) or not value:
            raise refuse("it takes a list of filters, one at least", operator=name, path="")
        for each in value:
            if not isinstance(each, dict):
                raise refuse(f"{each!r} is not a filter", operator=name, path="")
        self._choices += name != "$and"
        nodes = tuple(self.document(each) for each in value)
        self._choices -= name != "$and"
        return Joined(_JOINS[name], nodes)

    def _field(self, path: str, value: Any) -> Node:
        """Read what is said of one field: a value that it equals, a pattern, or operators."""
        if pattern := read_pattern_value(value):
            return self._pattern(path, pattern)
        if _is_operators(value):
            return self._operations(path, value)
        return self._equals("$eq", path, value)

    def _operations(self, path: str, given: dict[str, Any]) -> Node:
        """Read operators on one field: all of them hold."""
        nodes = [
            self._operation(path, name, operand, given)
            for name, operand in given.items()
            if name != "$options"
        ]
        if "$options" in given and "$regex" not in given:
            raise refuse("it belongs to $regex, which is missing", operator="$options", path=path)
        return nodes[0] if len(nodes) == 1 else Joined("all", tuple(nodes))

    def _operation(self, path: str, name: str, operand: Any, beside: dict[str, Any]) -> Node:
        if name == "$regex":
            return self._regex(path, operand, beside.get("$options"))
        if (make := self._named.get(name)) is not None:
            return make(path, operand)
        if name in COMPARISONS:
            return self._compare(name, path, operand)
        if name in SHAPES or name in GEOGRAPHY:
            return self._shape(name, path, operand)
        raise self._unknown(name, path, top=False)

    def _equals(self, name: str, path: str, operand: Any) -> Node:
        if read_pattern_value(operand):
            raise refuse("a pattern cannot be compared", operator=name, path=path)
        return Condition(path, name, operand, equal_to(operand))

    def _compare(self, name: str, path: str, operand: Any) -> Node:
        if name == "$eq":
            return self._equals(name, path, operand)
        if read_pattern_value(operand):
            raise refuse("a pattern cannot be compared", operator=name, path=path)
        return Condition(path, name, operand, COMPARISONS[name](operand))

    def _shape(self, name: str, path: str, operand: Any) -> Node:
        if name in _NEAR and self._choices:
            raise refuse("it cannot stand in $or or $nor", operator=name, path=path)
        make = SHAPES.get(name) or GEOGRAPHY[name]
        whole = name == "$size" or name in GEOGRAPHY
        return Condition(path, name, operand, make(operand, path), into=not whole)

    def _pattern(self, path: str, pattern: Pattern) -> Node:
        return Condition(path, "$regex", pattern, pattern_test(pattern, path=path))

    def _regex(self, path: str, operand: Any, options: Any) -> Node:
        pattern = read_pattern_value(operand)
        if pattern is None and not isinstance(operand, str):
            raise refuse("it takes a text", operator="$regex", path=path)
        if options is not None and not isinstance(options, str):
            raise refuse("it takes a text", operator="$options", path=path)
        if pattern is None:
            return self._pattern(path, Pattern(operand, options or ""))
        if options is None:
            return self._pattern(path, pattern)
        return self._pattern(path, Pattern(pattern.text, options))

    def _in(self, path: str, operand: Any, name: str = "$in") -> Node:
        if not isinstance(operand, list):
            raise refuse("it takes a list", operator=name, path=path)
        patterns = [found for each in operand if (found := read_pattern_value(each))]
        values = [each for each in operand if not read_pattern_value(each)]
        if any(_is_operators(each) for each in values):
            raise refuse("it takes values, not operators", operator=name, path=path)
        test = one_of(values, [pattern_test(each, path=path) for each in patterns])
        return Condition(path, "$regex" if patterns else "$in", operand, test)

    def _not(self, path: str, operand: Any) -> Node:
        if pattern := read_pattern_value(operand):
            return _not(self._pattern(path, pattern))
        if not _is_operators(operand):
            text = "it takes operators on the field, or a pattern"
            raise refuse(text, operator="$not", path=path, hint="use $ne for a value")
        return _not(self._operations(path, operand))

    def _all(self, path: str, operand: Any) -> Node:
        if not isinstance(operand, list):
            raise refuse("it takes a list", operator="$all", path=path)
        if not operand:
            return Joined("any", ())
        elements = [isinstance(each, dict) and "$elemMatch" in each for each in operand]
        if any(elements):
            if not all(elements) or any(len(each) > 1 for each in operand):
                raise refuse("$elemMatch stands alone or not at all", operator="$all", path=path)
            nodes = tuple(self._element(path, each["$elemMatch"]) for each in operand)
            return Joined("all", nodes)
        if any(_is_operators(each) for each in operand):
            raise refuse("it takes values, not operators", operator="$all", path=path)
        return Joined("all", tuple(self._field(path, each) for each in operand))

    def _exists(self, path: str, operand: Any) -> Node:
        found = Condition(path, "$exists", operand, exists)
        wanted = operand is not None and operand is not False and operand != 0
        return found if wanted else _not(found)

    def _element(self, path: str, operand: Any) -> Node:
        """Read what one element of an array fulfils: operators on it, or a filter of objects."""
        if not isinstance(operand, dict):
            raise refuse("it takes an object", operator="$elemMatch", path=path)
        first = next(iter(operand), "")
        if _is_operators(operand) and first not in _JOINS:
            matches = compiled(self._operations("", operand))
            test = _any_element(matches)
        else:
            test = _any_object(compiled(self.document(operand)))
        return Condition(path, "$elemMatch", operand, test, into=False)

    def _unknown(self, name: str, path: str, *, top: bool) -> Exception:
        known = [*_JOINS] if top else [*COMPARISONS, *SHAPES, *GEOGRAPHY, *self._named, "$regex"]
        if name in _UNSUPPORTED:
            hint = "write what it says with the other operators"
            return refuse("Penstock does not support it", operator=name, path=path, hint=hint)
        where = "at the top of a filter" if top else "on a field"
        text = f"there is no such operator {where}"
        return refuse(text, operator=name, path=path, hint=did_you_mean(name, known))


def _is_operators(value: Any) -> bool:
    """Return whether a value is a document of operators rather than a value to compare with."""
    if not isinstance(value, dict) or read_pattern_value(value):
        return False
    return next(iter(value), "").startswith("$")


def _not(node: Node) -> Node:
    return Joined("none", (node,))


def _any_element(matches: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and any(matches(each) for each in value)


def _any_object(matches: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        if type(value) is not list:
            return False
        for each in value:
            if type(each) is dict and matches(each):
                return True
            if type(each) is list and matches(as_object(each)):
                return True
        return False

    return test
