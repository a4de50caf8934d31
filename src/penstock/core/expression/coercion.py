"""Calls with their types: which casts there are, how operands are brought to one type."""

from datetime import date
from decimal import Decimal as DecimalValue

from penstock.core.expression.operations import OPERATIONS
from penstock.core.expression.tree import Call, Literal, Node
from penstock.core.expression.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    Decimal,
    Type,
    common_type,
    decimal_of,
    is_comparable,
    is_numeric,
    wider_decimal,
)
from penstock.core.expression.values.numbers import decimal_fit
from penstock.core.expression.values.times import instant_of

__all__ = ["RuleError", "apply", "cast", "comparable", "numeric", "to_common", "widen"]

MAX_DOUBLE_DIGITS = 14
"""The digits that a double's text decides alike in every release of Java, rounding included."""

_BIGINT_DIGITS = 19
_NO_CAST = {
    ("double", "string"): "Java's releases print doubles differently; cast to decimal(14,2) first",
    ("string", "timestamp"): "for a constant write timestamp '2026-01-31 12:30:00'",
    ("string", "decimal"): "cast to double or bigint first",
    ("date", "int"): "unix_date() gives the days since 1970",
}


class RuleError(Exception):
    """A rule of types is broken; the binder knows where. Never leaves this package."""

    def __init__(
        self, message: str, hint: str = "", *, code: str = "expression.type", width: int = 0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.width = width
        """How many characters of the place are meant; 0 for all."""


def apply(
    operation: str, arguments: tuple[Node, ...], type_: Type, *, nullable: bool | None = None
) -> Call:
    """Return a call; it may be null where an argument may, or where the operation fails."""
    if nullable is None:
        nullable = OPERATIONS[operation].fails or any(node.nullable for node in arguments)
    return Call(operation, arguments, type_, nullable)


def cast(node: Node, type_: Type) -> Node:
    """Return a value as another type, null where it has none; RuleError where there is no cast."""
    if node.type == type_:
        return node
    if node.type == VOID:
        return Literal(None, type_)
    pair = (node.type.kind, type_.kind)
    operation = f"cast.{pair[0]}.{pair[1]}"
    if operation not in OPERATIONS:
        raise RuleError(f"{node.type} has no cast to {type_}", _NO_CAST.get(pair, ""))
    if isinstance(type_, Decimal) and pair[0] == "double" and type_.precision > MAX_DOUBLE_DIGITS:
        message = f"a double has no cast to more than {MAX_DOUBLE_DIGITS} digits, as in {type_}"
        raise RuleError(message, f"cast to decimal({MAX_DOUBLE_DIGITS}, ...)")
    fails = OPERATIONS[operation].fails and not _always_fits(node.type, type_)
    return Call(operation, (node,), type_, node.nullable or fails)


def _always_fits(source: Type, target: Type) -> bool:
    if not isinstance(target, Decimal):
        return False
    if source == BIGINT:
        return target.whole >= _BIGINT_DIGITS
    held = decimal_of(source)
    if held is None:
        return False
    # Rounding can carry into one more whole digit.
    return target.whole > held.whole or (target.whole == held.whole and target.scale >= held.scale)


def widen(node: Node, type_: Type) -> Node:
    """Return a value as a wider type; a literal becomes one of that type."""
    if node.type == type_:
        return node
    if isinstance(node, Literal):
        value = _widened(node.value, type_)
        if value is not None or node.value is None:
            return Literal(value, type_)
    return cast(node, type_)


def _widened(value: object, type_: Type) -> object:
    match value, type_:
        case int(), _ if type_ == BIGINT:
            return value
        case int() | DecimalValue(), _ if type_ == DOUBLE:
            return float(value)
        case int() | DecimalValue(), Decimal(precision, scale):
            return decimal_fit(DecimalValue(value), precision, scale)
        case date(), _ if type_ == TIMESTAMP:
            return instant_of(value)
    return None


def to_common(nodes: tuple[Node, ...], *, what: str) -> tuple[Node, ...]:
    """Return the values as the one type that all widen to."""
    type_ = common_type(node.type for node in nodes)
    if type_ is None or not is_comparable(type_):
        shown = " and ".join(dict.fromkeys(str(node.type) for node in nodes))
        raise RuleError(f"{what} takes values of one type, not {shown}", _advice(nodes))
    return tuple(widen(node, type_) for node in nodes)


def comparable(left: Node, right: Node, *, what: str) -> tuple[Node, Node]:
    """Return two values as the type they are compared in."""
    one_held, other_held = _held(left), _held(right)
    if one_held and other_held and Decimal in (type(left.type), type(right.type)):
        type_ = wider_decimal(one_held, other_held)
        return widen(left, type_), widen(right, type_)
    one, other = to_common((left, right), what=what)
    return one, other


def numeric(left: Node, right: Node, *, what: str) -> tuple[Node, Node]:
    """Return two numbers as one type, or both as decimals of their own digits."""
    if left.type == VOID and right.type != VOID:
        left = widen(left, right.type)
    elif right.type == VOID:
        right = widen(right, left.type)
    if not (is_numeric(left.type) and is_numeric(right.type)):
        shown = f"{left.type} and {right.type}"
        raise RuleError(f"{what} takes numbers, not {shown}", _advice((left, right)))
    if isinstance(left.type, Decimal) != isinstance(right.type, Decimal):
        if DOUBLE in (left.type, right.type):
            return widen(left, DOUBLE), widen(right, DOUBLE)
        return widen(left, _held(left) or left.type), widen(right, _held(right) or right.type)
    if isinstance(left.type, Decimal):
        return left, right
    one, other = to_common((left, right), what=what)
    return one, other


def _held(node: Node) -> Decimal | None:
    """Return the decimal that holds a number: a whole literal's own digits, else its type's."""
    if isinstance(node, Literal) and isinstance(node.value, int) and node.type in (INT, BIGINT):
        return Decimal(len(str(abs(node.value))), 0)
    return decimal_of(node.type)


def _advice(nodes: tuple[Node, ...]) -> str:
    kinds = {node.type for node in nodes}
    if STRING in kinds and kinds & {TIMESTAMP, DATE}:
        return "write a constant as timestamp '2026-01-31 12:30:00' or date '2026-01-31'"
    if STRING in kinds and kinds & {INT, BIGINT, DOUBLE}:
        return "cast one of them, as in cast(... as double)"
    return "cast one of them" if len(kinds) > 1 else ""
