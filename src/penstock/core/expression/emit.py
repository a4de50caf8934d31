"""A tree to Python source: one expression, with null checks only where a value may be null.

Every node becomes a piece of source that gives its value. A condition also has one that says
whether it is true, and one whether it is false: a predicate then needs no third value.
"""

import keyword
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal as DecimalValue
from typing import Any, ClassVar

from penstock.core.expression.operations import OPERATIONS, Operation
from penstock.core.expression.tree import Call, Field, Literal, Member, Node, Taken
from penstock.core.expression.types import BOOLEAN, DOUBLE, Decimal
from penstock.core.matching.matching import PLAIN_LIKE, like_matcher, searcher

__all__ = ["Emitter"]

_MAX_PARENTHESES = 80
"""Python's parser takes 200 open at a time; past this many a piece becomes a statement."""

_ATOM = re.compile(r"[a-z]?[0-9]+|None|True|False")
_SIGNS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_or_equal": "<=",
    "greater": ">",
    "greater_or_equal": ">=",
}
_TESTS = (*_SIGNS, "between", "in", "like", "rlike")
_DOUBLES = {
    "equal": "{0} == {1} or ({0} != {0} and {1} != {1})",
    "not_equal": "{0} != {1} and ({0} == {0} or {1} == {1})",
    "less": "{0} < {1} or ({1} != {1} and {0} == {0})",
    "less_or_equal": "{0} <= {1} or {1} != {1}",
    "greater": "{0} > {1} or ({0} != {0} and {1} == {1})",
    "greater_or_equal": "{0} >= {1} or {0} != {0}",
}
"""Comparisons of doubles, NaN equal to itself and above all others."""

_LITERAL_RIGHT = {"greater": "not {0} <= {1}", "greater_or_equal": "not {0} < {1}"}
_LITERAL_LEFT = {"less": "not {0} >= {1}", "less_or_equal": "not {0} > {1}"}
"""The same beside a number that is not NaN: no test for NaN is needed."""


class Emitter:
    """Writes the source of one tree; statements, constants and fields collect beside it.

    ``taken`` says at which place of the list ``taken`` the value of each step of a pattern is.
    """

    def __init__(self, taken: Sequence[Taken] = ()) -> None:
        self._fields: dict[str, str] = {}
        self._places = taken
        self._taken: dict[int, str] = {}
        self._count = 0
        self._statements: list[str] = []
        self.constants: dict[str, Any] = {}

    def body(self, root: Node, *, predicate: bool) -> str:
        """Return the body of a function of ``r``; a predicate is true or false, never null."""
        result = self._true(root) if predicate else self._value(root)
        lines = [*self._statements, f"return {result}"]
        reads = []
        read_from = [(_access("r", field), name) for field, name in self._fields.items()]
        read_from += [(f"taken[{place}]", name) for place, name in self._taken.items()]
        for read, name in read_from:
            word = re.compile(rf"\b{name}\b")
            if sum(len(word.findall(line)) for line in lines) == 1:
                lines = [word.sub(lambda _, read=read: read, line) for line in lines]  # type: ignore[misc]
            else:
                reads.append(f"{name} = {read}")
        return "\n".join([*reads, *lines])

    def _value(self, node: Node) -> str:
        """Return source that gives the value, None for null."""
        match node:
            case Literal():
                return self._literal(node)
            case Field(name):
                return self._fields.setdefault(name, f"f{len(self._fields)}")
            case Member(of, name):
                guards, (source,) = self._guarded((of,))
                return _guard(guards, _access(source, name))
            case Taken():
                place = self._places.index(node)
                return self._taken.setdefault(place, f"g{place}")
            case Call():
                node = _plainer(node)
                form = self._FORMS.get(node.name)
                return self._short(form(self, node) if form else self._operation(node))

    def _true(self, node: Node, *, wanted: bool = True) -> str:
        """Return source that is true where the condition is, false where it is false or null.

        With ``wanted`` false: true where the condition is false.
        """
        if isinstance(node, Call):
            node = _plainer(node)
        match node:
            case Literal(value):
                return repr(value is wanted)
            case Call("not", (operand,)):
                return self._true(operand, wanted=not wanted)
            case Call("and" | "or" as name, operands):
                word = " and " if (name == "and") is wanted else " or "
                return self._short(
                    f"({word.join(self._true(each, wanted=wanted) for each in operands)})"
                )
            case Call() if node.nullable and _is_test(node):
                guards, test = self._test(node)
                test = test if wanted else f"not {test}"
                return self._short(f"({' and '.join([*guards, test])})")
        source = self._value(node)
        if node.nullable:
            return f"({source} is {wanted})"
        return source if wanted else f"(not {source})"

    def _test(self, node: Call) -> tuple[list[str], str]:
        """Return the guards of a strict condition, and its source after them."""
        arguments = node.arguments[:1] if node.name in ("in", "like", "rlike") else node.arguments
        guards, sources = self._guarded(arguments)
        match node.name:
            case "between":
                test = self._ranged(node, sources)
            case "in":
                values = frozenset(
                    each.value for each in node.arguments[1:] if isinstance(each, Literal)
                )
                test = f"({sources[0]} in {self._constant(values)})"
            case "like" | "rlike":
                test = self._matched(node, sources[0])
            case name if name in _SIGNS:
                test = self._compared(node, sources)
            case _:
                test = self._filled(OPERATIONS[node.name], node, sources)
        return guards, test

    def _strict_test(self, node: Call) -> str:
        return _guard(*self._test(node))

    def _operation(self, node: Call) -> str:
        operation = OPERATIONS[node.name]
        if operation.lenient:
            return self._filled(operation, node, [self._value(each) for each in node.arguments])
        guards, sources = self._guarded(node.arguments)
        return _guard(guards, self._filled(operation, node, sources))

    def _filled(self, operation: Operation, node: Call, sources: list[str]) -> str:
        template = operation.python
        sources = [
            self._atom(source) if template.count(f"{{{index}}}") > 1 else source
            for index, source in enumerate(sources)
        ]
        words: dict[str, object] = {"all": ", ".join(sources), "sum": " + ".join(sources)}
        if "{t}" in template:
            words["t"] = self._new()
        if isinstance(node.type, Decimal):
            words |= {"p": node.type.precision, "s": node.type.scale}
        if isinstance(first := node.arguments[0].type, Decimal):
            words["s0"] = first.scale
        return template.format(*sources, **words)

    def _compared(self, node: Call, sources: list[str]) -> str:
        left, right = node.arguments
        template = f"{{0}} {_SIGNS[node.name]} {{1}}"
        if left.type == DOUBLE:
            if isinstance(right, Literal):
                template = _LITERAL_RIGHT.get(node.name, template)
            elif isinstance(left, Literal):
                template = _LITERAL_LEFT.get(node.name, template)
            else:
                template = _DOUBLES[node.name]
                sources = [self._atom(source) for source in sources]
        return f"({template.format(*sources)})"

    def _ranged(self, node: Call, sources: list[str]) -> str:
        value, low, high = sources
        if node.arguments[0].type == DOUBLE and not all(
            isinstance(bound, Literal) for bound in node.arguments[1:]
        ):
            value, below = self._atom(value), "double_less_or_equal"
            return f"({below}({low}, {value}) and {below}({value}, {high}))"
        return f"({low} <= {value} <= {high})"

    def _matched(self, node: Call, source: str) -> str:
        pattern = node.arguments[1].value if isinstance(node.arguments[1], Literal) else ""
        if node.name == "rlike":
            return f"{self._constant(searcher(pattern))}({source})"
        plain = PLAIN_LIKE.fullmatch(pattern)
        if plain is None:
            return f"{self._constant(like_matcher(pattern))}({source})"
        before, text, after = plain.groups()
        text = repr(re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL))
        if before and after:
            return f"({text} in {source})"
        if before or after:
            return f"{source}.{'endswith' if before else 'startswith'}({text})"
        return f"({source} == {text})"

    def _both(self, node: Call) -> str:
        """Return AND or OR: only among operands that may be null is there a third value."""
        word, decisive = (" and ", False) if node.name == "and" else (" or ", True)
        pieces = [self._value(each) for each in node.arguments if not each.nullable]
        found = ""
        for source in (self._value(each) for each in node.arguments if each.nullable):
            if found:
                one, two = self._new(), self._new()
                test = f"({one} := {found}) is {decisive} or ({two} := {source}) is {not decisive}"
                found = self._short(f"({one} if {test} else {two})")
            else:
                found = source
        return f"({word.join([*pieces, found] if found else pieces)})"

    def _not(self, node: Call) -> str:
        guards, (source,) = self._guarded(node.arguments)
        return _guard(guards, f"(not {source})")

    def _is_null(self, node: Call) -> str:
        (operand,) = node.arguments
        if not operand.nullable:
            return repr(node.name != "is_null")
        return f"({self._value(operand)} {'is' if node.name == 'is_null' else 'is not'} None)"

    def _same(self, node: Call) -> str:
        sources = [self._value(each) for each in node.arguments]
        literal = any(isinstance(each, Literal) for each in node.arguments)
        if node.arguments[0].type != DOUBLE or literal:
            return f"({sources[0]} == {sources[1]})"
        return f"({_DOUBLES['equal'].format(*map(self._atom, sources))})"

    def _case(self, node: Call) -> str:
        *branches, otherwise = node.arguments
        pieces = [
            f"{self._value(value)} if {self._true(condition)} else "
            for condition, value in zip(branches[::2], branches[1::2], strict=True)
        ]
        return f"({''.join(pieces)}{self._value(otherwise)})"

    def _coalesce(self, node: Call) -> str:
        pieces: list[str] = []
        for operand in node.arguments:
            source = self._value(operand)
            if not operand.nullable:
                return f"({''.join(pieces)}{source})"
            guard, name = self._guarded_source(source)
            pieces.append(f"{name} if {guard} else ")
        return f"({''.join(pieces)}None)"

    def _guarded(self, nodes: tuple[Node, ...]) -> tuple[list[str], list[str]]:
        """Return tests that say no argument is null, and the arguments after those tests."""
        guards, sources = [], []
        for node in nodes:
            source = self._value(node)
            if node.nullable:
                guard, source = self._guarded_source(source)
                guards.append(guard)
            sources.append(source)
        return guards, sources

    def _guarded_source(self, source: str) -> tuple[str, str]:
        if _ATOM.fullmatch(source):
            return f"{source} is not None", source
        name = self._new()
        return f"({name} := {source}) is not None", name

    def _atom(self, source: str) -> str:
        """Return a name for a piece of source that is used more than once."""
        if _ATOM.fullmatch(source):
            return source
        name = self._new()
        self._statements.append(f"{name} = {source}")
        return name

    def _short(self, source: str) -> str:
        return self._atom(source) if source.count("(") > _MAX_PARENTHESES else source

    def _new(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _constant(self, value: object) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def _literal(self, node: Literal) -> str:
        match node.value:
            case DecimalValue() | datetime() | date():
                return self._constant(node.value)
            case int() | float() as number if str(number)[0] == "-":
                return f"({number!r})"
        return repr(node.value)

    _FORMS: ClassVar[dict[str, Callable[["Emitter", Call], str]]] = {
        "and": _both,
        "or": _both,
        "not": _not,
        "is_null": _is_null,
        "is_not_null": _is_null,
        "same": _same,
        "case": _case,
        "coalesce": _coalesce,
        **dict.fromkeys(_TESTS, _strict_test),
    }


def _guard(guards: list[str], source: str) -> str:
    return f"({source} if {' and '.join(guards)} else None)" if guards else source


def _is_test(node: Call) -> bool:
    """Return whether a condition is null exactly where one of its arguments is."""
    if node.name in _TESTS:
        return True
    operation = OPERATIONS[node.name]
    return bool(operation.python) and not operation.fails and not operation.lenient


def _plainer(node: Call) -> Call:
    """Return a BETWEEN or IN that may be null for another reason in terms of AND and OR."""
    value, *rest = node.arguments
    if node.name == "between" and any(bound.nullable for bound in rest):
        tests = (
            _comparison("greater_or_equal", value, rest[0]),
            _comparison("less_or_equal", value, rest[1]),
        )
        return Call("and", tests, BOOLEAN, nullable=True)
    if node.name == "in" and not all(
        isinstance(each, Literal) and not each.nullable for each in rest
    ):
        equal = tuple(_comparison("equal", value, each) for each in rest)
        return Call("or", equal, BOOLEAN, node.nullable)
    return node


def _comparison(name: str, left: Node, right: Node) -> Call:
    return Call(name, (left, right), BOOLEAN, left.nullable or right.nullable)


def _access(record: str, name: str) -> str:
    """Return the source that reads a field of a record."""
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return f"{record}.{name}"
    return f"getattr({record}, {name!r})"
