"""What each operator makes of its operands: the operation and the type of its result.

A rule raises RuleError where the operands do not fit.
"""

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR
from decimal import Decimal as DecimalValue

from penstock.core.expression.coercion import (
    RuleError,
    apply,
    comparable,
    numeric,
    to_common,
    widen,
)
from penstock.core.expression.tree import Literal, Node
from penstock.core.expression.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    LEAST_SCALE,
    STRING,
    TIMESTAMP,
    VOID,
    Decimal,
    Type,
    is_numeric,
)
from penstock.core.expression.values.numbers import BIGINT_MAX, BIGINT_MIN
from penstock.core.matching.matching import searcher
from penstock.core.matching.pattern import PatternError, normal_like

__all__ = [
    "OPERATOR_RULES",
    "Rule",
    "arguments_of",
    "choose",
    "comparison",
    "concat",
    "is_null",
    "of_number",
]

_MAX_REMAINDER_DIGITS = 39
"""Past so many digits of a quotient Java gives no remainder of decimals."""

_MAX_SIGNED_DIGITS = 34
"""The digits of a decimal that Spark's own minus and abs keep."""

_COMPARISONS = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_or_equal",
    ">": "greater",
    ">=": "greater_or_equal",
}
_ROUNDINGS = {">": ROUND_FLOOR, "<=": ROUND_FLOOR, "<": ROUND_CEILING, ">=": ROUND_CEILING}
_MIRRORED = {">": "<", "<=": ">=", "<": ">", ">=": "<="}
_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}

Rule = Callable[[str, tuple[Node, ...]], Node]


def _boolean(node: Node, *, what: str) -> Node:
    """Return a condition; RuleError where the value is none."""
    if node.type not in (BOOLEAN, VOID):
        hint = "compare it, as in ... <> 0" if is_numeric(node.type) else ""
        raise RuleError(f"{what} takes conditions, not {node.type}", hint)
    return widen(node, BOOLEAN)


def _logic(name: str, arguments: tuple[Node, ...]) -> Node:
    conditions = tuple(_boolean(node, what=name.upper()) for node in arguments)
    return apply(name, conditions, BOOLEAN, nullable=any(node.nullable for node in conditions))


def is_null(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return the test of ``is null`` or ``is not null``."""
    return apply(name.replace(" ", "_"), arguments_of(name, arguments, 1), BOOLEAN, nullable=False)


def comparison(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return the comparison of two values by a sign."""
    left, right = arguments_of(name, arguments, 2)
    if name in _ROUNDINGS:
        right = _whole_bound(left, right, _ROUNDINGS[name])
        left = _whole_bound(right, left, _ROUNDINGS[_MIRRORED[name]])
    pair = comparable(left, right, what=repr(name))
    return apply(_COMPARISONS[name], pair, BOOLEAN, nullable=any(node.nullable for node in pair))


def _whole_bound(value: Node, bound: Node, rounding: str) -> Node:
    """Return a decimal that a whole number is compared with as a whole number, as Spark does."""
    constant = bound.value if isinstance(bound, Literal) else None
    if value.type in (INT, BIGINT) and isinstance(constant, DecimalValue):
        whole = int(constant.to_integral_value(rounding))
        if BIGINT_MIN <= whole <= BIGINT_MAX:
            return Literal(whole, BIGINT)
    return bound


def _same(name: str, arguments: tuple[Node, ...]) -> Node:
    pair = comparable(*arguments_of(name, arguments, 2), what=repr(name))
    return apply("same", pair, BOOLEAN, nullable=False)


def _between(_: str, arguments: tuple[Node, ...]) -> Node:
    value, low, high = arguments
    one, floor = comparable(value, low, what="BETWEEN")
    other, top = comparable(value, high, what="BETWEEN")
    if one == other:
        triple = (one, floor, top)
        return apply("between", triple, BOOLEAN, nullable=any(node.nullable for node in triple))
    return _logic("and", (comparison(">=", (value, low)), comparison("<=", (value, high))))


def _in(_: str, arguments: tuple[Node, ...]) -> Node:
    found = to_common(arguments, what="IN")
    return apply("in", found, BOOLEAN, nullable=any(node.nullable for node in found))


def _arithmetic(sign: str, arguments: tuple[Node, ...]) -> Node:
    left, right = arguments_of(sign, arguments, 2)
    if moment := _moment(sign, left, right):
        return moment
    left, right = numeric(left, right, what=repr(sign))
    name = _ARITHMETIC[sign]
    if isinstance(left.type, Decimal) and isinstance(right.type, Decimal):
        return apply(f"{name}.decimal", (left, right), _decimal_result(sign, left.type, right.type))
    if sign == "/":
        left, right = widen(left, DOUBLE), widen(right, DOUBLE)
        constant = isinstance(right, Literal) and bool(right.value)
        return apply("divide.constant" if constant else "divide.double", (left, right), DOUBLE)
    safe = sign == "%" and isinstance(right, Literal) and bool(right.value)
    nullable = left.nullable if safe else None
    return apply(f"{name}.{left.type.kind}", (left, right), left.type, nullable=nullable)


def _decimal_result(sign: str, left: Decimal, right: Decimal) -> Decimal:
    scale = max(left.scale, right.scale)
    match sign:
        case "*":
            return Decimal.adjusted(left.precision + right.precision + 1, left.scale + right.scale)
        case "/":
            fraction = max(6, left.scale + right.precision + 1)
            return Decimal.adjusted(left.whole + right.scale + fraction, fraction)
        case "%":
            if left.whole + right.scale > _MAX_REMAINDER_DIGITS:
                raise RuleError(f"{left} and {right} are too far apart for a remainder")
            return Decimal.adjusted(min(left.whole, right.whole) + scale, scale)
    return Decimal.adjusted(max(left.whole, right.whole) + scale + 1, scale)


def _moment(sign: str, left: Node, right: Node) -> Node | None:
    """Return what a sign does to a date or an instant; None where neither is one."""
    if sign == "+" and right.type in (DATE, TIMESTAMP):
        left, right = right, left
    if sign not in "+-" or left.type not in (DATE, TIMESTAMP):
        return None
    name = _ARITHMETIC[sign]
    if left.type == TIMESTAMP and right.type == INTERVAL and isinstance(right, Literal):
        return apply(f"{name}.timestamp", (left, Literal(right.value, BIGINT)), TIMESTAMP)
    if left.type == DATE and right.type == INT:
        return apply(f"{name}.date", (left, right), DATE)
    hints: dict[tuple[Type, Type], str] = {
        (TIMESTAMP, TIMESTAMP): "subtract their unix_millis()",
        (DATE, DATE): "datediff() gives the days between them",
        (DATE, INTERVAL): "add whole days, or cast the date to timestamp first",
        (DATE, BIGINT): "cast the days to int",
    }
    hint = hints.get((left.type, right.type), "")
    raise RuleError(f"{sign!r} does not take {left.type} and {right.type}", hint)


def _quotient(name: str, arguments: tuple[Node, ...]) -> Node:
    left, right = numeric(*arguments, what=f"'{name}'")
    if left.type not in (INT, BIGINT):
        raise RuleError(f"'{name}' takes whole numbers, not {left.type}", "use /")
    left, right = widen(left, BIGINT), widen(right, BIGINT)
    constant = isinstance(right, Literal) and right.value not in (None, 0, -1)
    return apply("quotient.constant" if constant else "quotient", (left, right), BIGINT)


def _negate(_: str, arguments: tuple[Node, ...]) -> Node:
    return of_number("negate", arguments)


def of_number(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return what keeps the type of its one number."""
    (node,) = arguments_of(name, arguments, 1)
    if not is_numeric(node.type):
        raise RuleError(f"{name} takes a number, not {node.type}")
    return apply(f"{name}.{node.type.kind}{_length(name, node.type)}", (node,), node.type)


def _length(name: str, type_: Type) -> str:
    """Return which operation it is for a decimal too long for Spark's own."""
    if not isinstance(type_, Decimal) or type_.precision <= _MAX_SIGNED_DIGITS:
        return ""
    if name == "abs":
        return ".long"
    return ".whole" if type_.scale <= LEAST_SCALE else ".fraction"


def concat(name: str, arguments: tuple[Node, ...]) -> Node:
    """Return texts joined to one."""
    if not arguments:
        raise RuleError(f"{name} needs an argument")
    for node in arguments:
        if node.type not in (STRING, VOID):
            hint = "cast it: cast(... as string)"
            raise RuleError(f"{name} joins strings, not {node.type}", hint)
    return apply("concat", tuple(widen(node, STRING) for node in arguments), STRING)


def _like(name: str, arguments: tuple[Node, ...]) -> Node:
    text, *constants = arguments
    if text.type not in (STRING, VOID):
        raise RuleError(f"{name.upper()} takes a string, not {text.type}")
    if not all(isinstance(node, Literal) and isinstance(node.value, str) for node in constants):
        raise RuleError(f"the pattern of {name.upper()} is a text in quotes, not a value")
    pattern, *escape = (str(node.value) for node in constants if isinstance(node, Literal))
    try:
        if name == "rlike":
            searcher(pattern)
        elif escape and len(escape[0]) != 1:
            raise RuleError("ESCAPE takes one character")
        else:
            pattern = normal_like(pattern, *escape)
    except PatternError as error:
        message = f"at {error.offset + 1} in the pattern: {error}"
        raise RuleError(message, code="expression.pattern") from error
    return apply(name, (widen(text, STRING), Literal(pattern, STRING)), BOOLEAN)


def choose(branches: tuple[tuple[Node, Node], ...], otherwise: Node | None, *, what: str) -> Node:
    """Return the value of the first branch whose condition is true."""
    conditions = [condition for condition, _ in branches]
    if wrong := [node for node in conditions if node.type != BOOLEAN]:
        raise RuleError(f"{what} takes conditions, not {wrong[0].type}")
    given = [value for _, value in branches] + ([otherwise] if otherwise else [])
    values = to_common(tuple(given), what=what)
    rest = values[-1] if otherwise else Literal(None, values[0].type)
    pairs = [node for pair in zip(conditions, values, strict=False) for node in pair]
    nullable = any(node.nullable for node in (*values, rest))
    return apply("case", (*pairs, rest), rest.type, nullable=nullable)


def arguments_of(name: str, arguments: tuple[Node, ...], count: int) -> tuple[Node, ...]:
    """Return the arguments where there are as many as there must be."""
    if len(arguments) != count:
        raise RuleError(f"{name} takes {count} arguments, not {len(arguments)}")
    return arguments


OPERATOR_RULES: dict[str, Rule] = {
    "and": _logic,
    "or": _logic,
    "not": _logic,
    "is null": is_null,
    "is not null": is_null,
    "<=>": _same,
    "between": _between,
    "in": _in,
    "like": _like,
    "rlike": _like,
    "-x": _negate,
    "div": _quotient,
    "||": concat,
    **dict.fromkeys(_COMPARISONS, comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
}
"""The rule of each operator, by its sign."""
