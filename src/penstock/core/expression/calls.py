"""What each function makes of its arguments: the operation and the type of its result."""

from penstock.core.expression.coercion import (
    RuleError,
    apply,
    cast,
    comparable,
    numeric,
    to_common,
    widen,
)
from penstock.core.expression.functions import TAKES_INSTANTS, Signature
from penstock.core.expression.rules import Rule, arguments_of, choose, concat, is_null, of_number
from penstock.core.expression.tree import Literal, Node
from penstock.core.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAX_DIGITS,
    STRING,
    TIMESTAMP,
    VOID,
    Array,
    Decimal,
    Map,
    Type,
    is_comparable,
    is_numeric,
)
from penstock.core.expression.values.times import TRUNCATIONS
from penstock.core.hints import did_you_mean

__all__ = ["FUNCTION_RULES", "call_signature"]

MAX_ROUND = 18
"""How far from the point a number is rounded at most."""


def _if(name: str, arguments: tuple[Node, ...]) -> Node:
    condition, value, otherwise = arguments_of(name, arguments, 3)
    return choose(((condition, value),), otherwise, what="if")


def _nvl2(name: str, arguments: tuple[Node, ...]) -> Node:
    tested, value, otherwise = arguments_of(name, arguments, 3)
    return choose(((is_null("is not null", (tested,)), value),), otherwise, what=name)


def _coalesce(name: str, arguments: tuple[Node, ...]) -> Node:
    if name != "coalesce":
        arguments_of(name, arguments, 2)
    if not arguments:
        raise RuleError(f"{name} needs an argument")
    found = to_common(arguments, what=name)
    return apply("coalesce", found, found[0].type, nullable=all(node.nullable for node in found))


def _nullif(name: str, arguments: tuple[Node, ...]) -> Node:
    value, other = arguments_of(name, arguments, 2)
    one, two = comparable(value, other, what=name)
    if one != value:
        # The result keeps the type of the first argument, so it is compared beside it.
        equal = apply("equal", (one, two), BOOLEAN, nullable=one.nullable or two.nullable)
        return choose(((equal, Literal(None, value.type)),), value, what=name)
    return apply(f"{name}.double" if one.type == DOUBLE else name, (one, two), one.type)


def _extreme(name: str, arguments: tuple[Node, ...]) -> Node:
    if len(arguments) < 2:  # noqa: PLR2004
        raise RuleError(f"{name} needs two arguments or more")
    found = to_common(arguments, what=name)
    operation = f"{name}.double" if found[0].type == DOUBLE else name
    return apply(operation, found, found[0].type, nullable=all(node.nullable for node in found))


def _whole(name: str, arguments: tuple[Node, ...]) -> Node:
    (node,) = arguments_of(name, arguments, 1)
    name = name.removesuffix("ing")
    if isinstance(node.type, Decimal):
        if node.type.scale == 0:
            return node
        digits = min(node.type.whole + 1, MAX_DIGITS)
        return apply(f"{name}.decimal", (node,), Decimal(digits, 0))
    if node.type in (INT, BIGINT):
        return widen(node, BIGINT)
    if node.type != DOUBLE:
        raise RuleError(f"{name} takes a number, not {node.type}")
    return apply(f"{name}.double", (node,), BIGINT)


def _round(name: str, arguments: tuple[Node, ...]) -> Node:
    if len(arguments) not in (1, 2):
        raise RuleError(f"{name} takes a number and, if wanted, digits")
    node, *rest = arguments
    digits = rest[0] if rest else Literal(0, INT)
    if not is_numeric(node.type):
        raise RuleError(f"{name} takes a number, not {node.type}")
    if not isinstance(digits, Literal) or digits.type != INT or abs(digits.value) > MAX_ROUND:
        raise RuleError(f"{name} takes digits as a whole number up to {MAX_ROUND}, written out")
    if isinstance(node.type, Decimal):
        return apply("round.decimal", (node, digits), _rounded(node.type, digits.value))
    if node.type != DOUBLE and digits.value >= 0:
        return node
    return apply(f"{name}.{node.type.kind}", (node, digits), node.type)


def _rounded(type_: Decimal, digits: int) -> Decimal:
    whole = type_.whole + 1
    if digits >= 0:
        scale = min(type_.scale, digits)
        return Decimal(min(whole + scale, MAX_DIGITS), scale)
    if whole > MAX_DIGITS:
        raise RuleError(f"{type_} has no room to round before the point")
    return Decimal(max(whole, 1 - digits), 0)


def _pmod(name: str, arguments: tuple[Node, ...]) -> Node:
    left, right = numeric(*arguments_of(name, arguments, 2), what=name)
    if isinstance(left.type, Decimal):
        raise RuleError(f"{name} does not take {left.type}", "cast to double or bigint")
    return apply(f"pmod.{left.type.kind}", (left, right), left.type)


def _date_trunc(name: str, arguments: tuple[Node, ...]) -> Node:
    unit, instant = arguments_of(name, arguments, 2)
    if not isinstance(unit, Literal) or str(unit.value).lower() not in TRUNCATIONS:
        given = unit.value if isinstance(unit, Literal) else "a value"
        raise RuleError(f"{given} is not a unit", did_you_mean(str(given), TRUNCATIONS))
    if instant.type not in (TIMESTAMP, DATE):
        raise RuleError(f"{name} takes a timestamp, not {instant.type}")
    instant = widen(instant, TIMESTAMP)
    return apply(f"date_trunc.{str(unit.value).lower()}", (instant,), TIMESTAMP)


def _split_part(name: str, arguments: tuple[Node, ...]) -> Node:
    *_, number = arguments_of(name, arguments, 3)
    if not isinstance(number, Literal) or number.type != INT or not number.value:
        raise RuleError(f"{name} takes the number of a part, written out and not zero")
    signature = Signature((STRING, STRING, INT), STRING, "split_part")
    return call_signature(name, (signature,), arguments)


def _size(name: str, arguments: tuple[Node, ...]) -> Node:
    (node,) = arguments_of(name, arguments, 1)
    if not isinstance(node.type, Array | Map):
        raise RuleError(f"{name} takes a list or a map, not {node.type}")
    return apply(f"size.{node.type.kind}", (node,), INT)


def _get(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return an item: of a list by position from 0, of a map by key."""
    of, index = arguments_of(name, arguments, 2)
    match of.type:
        case Array(item) if index.type in (INT, BIGINT):
            return apply("get", (of, _narrow(index)), item)
        case Map(value) if index.type == STRING and name == "[]":
            return apply("element_at.map", (of, index), value)
    raise RuleError(f"{of.type} has no items by {index.type}")


def _element_at(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return an item: of a list by position from 1, of a map by key."""
    of, index = arguments_of(name, arguments, 2)
    match of.type:
        case Array(item) if index.type in (INT, BIGINT):
            return apply("element_at.array", (of, _narrow(index)), item)
        case Map():
            return _get("[]", arguments)
    raise RuleError(f"{of.type} has no items by {index.type}")


def _array_contains(name: str, arguments: tuple[Node, ...]) -> Node:
    of, value = arguments_of(name, arguments, 2)
    if not isinstance(of.type, Array) or not is_comparable(of.type.item):
        raise RuleError(f"{name} takes a list of plain values, not {of.type}")
    item = of.type.item
    if value.type != item and not (value.type == INT and item in (BIGINT, DOUBLE)):
        raise RuleError(f"{name} looks for {item}, not {value.type}")
    operation = f"{name}.double" if item == DOUBLE else name
    return apply(operation, (of, widen(value, item)), BOOLEAN)


def call_signature(
    name: str, signatures: tuple[Signature, ...], arguments: tuple[Node, ...]
) -> Node:
    """Return the call of a function with fixed types."""
    for signature in signatures:
        missing = len(signature.parameters) - len(arguments)
        if not 0 <= missing <= len(signature.defaults):
            continue
        defaults = signature.defaults[len(signature.defaults) - missing :]
        types = signature.parameters[len(arguments) :]
        rest = (Literal(value, type_) for value, type_ in zip(defaults, types, strict=True))
        try:
            given = (
                _accept(name, node, type_)
                for node, type_ in zip(arguments, signature.parameters, strict=False)
            )
            return apply(signature.operation, (*given, *rest), signature.result)
        except RuleError:
            if signature is signatures[-1]:
                raise
    wanted = " or ".join(f"{name}({', '.join(map(str, each.parameters))})" for each in signatures)
    raise RuleError(f"{name} does not take {len(arguments)} arguments", f"it is {wanted}")


def _accept(name: str, node: Node, type_: Type) -> Node:
    if node.type in (type_, VOID):
        return widen(node, type_)
    if type_ == INT and node.type == BIGINT and name not in ("date_add", "date_sub"):
        return _narrow(node)
    if (type_ == BIGINT and node.type == INT) or (type_ == DOUBLE and is_numeric(node.type)):
        return widen(node, type_)
    if type_ == DATE and node.type == TIMESTAMP and name in TAKES_INSTANTS:
        return cast(node, DATE)
    raise RuleError(f"{name} takes {type_} here, not {node.type}")


def _narrow(node: Node) -> Node:
    return cast(node, INT)


FUNCTION_RULES: dict[str, Rule] = {
    "[]": _get,
    "abs": of_number,
    "array_contains": _array_contains,
    "cardinality": _size,
    "ceil": _whole,
    "ceiling": _whole,
    "coalesce": _coalesce,
    "concat": concat,
    "date_trunc": _date_trunc,
    "element_at": _element_at,
    "floor": _whole,
    "get": _get,
    "greatest": _extreme,
    "if": _if,
    "ifnull": _coalesce,
    "least": _extreme,
    "nullif": _nullif,
    "nvl": _coalesce,
    "nvl2": _nvl2,
    "pmod": _pmod,
    "round": _round,
    "size": _size,
    "split_part": _split_part,
    "try_element_at": _element_at,
}
"""The rule of each function whose types depend on its arguments, and of ``[]``."""
