"""Random well-typed expressions, as texts over the records of ``expression_records.py``."""

import random
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

Maker = Callable[["Texts", int], str]


class Texts:
    """Random expressions of a wanted type; what a sign binds may surprise, as in people's own."""

    def __init__(self, seed: int, *, texts: Sequence[str], dates: Sequence[date]) -> None:
        self._random = random.Random(seed)
        self._texts = texts
        self._dates = dates

    def text(self) -> str:
        return self.make(self.pick(*_MAKERS), self._random.randrange(1, 5))

    def pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def make(self, kind: str, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.1:
            return self.leaf(kind)
        if self._random.random() < 0.12:
            return self._choice(kind, depth - 1)
        return self.pick(*_MAKERS[kind])(self, depth - 1)

    def leaf(self, kind: str) -> str:
        return self.pick(*_FIELDS[kind]) if self._random.random() < 0.7 else self.literal(kind)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def literal(self, kind: str) -> str:
        if kind == "string":
            return quoted(self._random.choice(self._texts))
        if kind == "date":
            return f"date '{self._random.choice(self._dates).isoformat()}'"
        return str(self.pick(*_LITERALS[kind]))

    def number(self, depth: int) -> str:
        return self.make(self.pick("int", "bigint", "double", "decimal"), depth)

    def any(self, depth: int) -> tuple[str, str]:
        kind = self.pick(
            "boolean", "int", "bigint", "double", "decimal", "string", "date", "timestamp"
        )
        return self.make(kind, depth), self.make(kind, depth)

    def _choice(self, kind: str, depth: int) -> str:
        one, two = self.make(kind, depth), self.make(kind, depth)
        condition = self.make("boolean", depth)
        forms = [
            f"if({condition}, {one}, {two})",
            f"case when {condition} then {one} else {two} end",
            f"case when {condition} then {one} when {self.make('boolean', depth)} then {two} end",
            f"coalesce({one}, {two})",
            f"nvl({one}, {two})",
            f"nvl2({self.leaf('string')}, {one}, {two})",
            f"nullif({one}, {two})",
            f"({one})",
        ]
        if kind in ("int", "bigint", "string"):
            subject, value = self.make(kind, 0), self.literal(kind)
            forms.append(
                f"case {subject} when {value} then {one} when {self.leaf(kind)} then {two} end"
            )
        forms += [f"greatest({one}, {two})", f"least({one}, {two}, {self.leaf(kind)})"]
        return self.pick(*forms)

    def infix(self, left: str, sign: str, right: str) -> str:
        text = f"{left} {sign} {right}"
        return text if self._random.random() < 0.2 else f"({text})"


def quoted(value: str) -> str:
    """Return a text as a literal of the language."""
    escaped = (
        value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\r", "\\r")
    )
    return "'" + escaped.replace("\x00", "\\0") + "'"


def _comparison(texts: Texts, depth: int) -> str:
    sign = texts.pick("=", "<>", "!=", "==", "<", "<=", ">", ">=", "<=>")
    if texts.chance(0.5):
        return texts.infix(texts.number(depth), sign, texts.number(depth))
    left, right = texts.any(depth)
    return texts.infix(left, sign, right)


def _membership(texts: Texts, depth: int) -> str:
    kind = texts.pick("int", "bigint", "double", "decimal", "string", "date", "timestamp")
    items = ", ".join(
        texts.literal(kind) if texts.chance(0.7) else texts.leaf(kind) for _ in range(3)
    )
    extra = texts.pick("", "", ", null")
    return f"({texts.make(kind, depth)} {texts.pick('in', 'not in')} ({items}{extra}))"


def _between(texts: Texts, depth: int) -> str:
    kind = texts.pick("int", "bigint", "double", "decimal", "string", "timestamp")
    make = texts.number if kind in ("int", "double") else lambda depth: texts.make(kind, depth)
    word = texts.pick("between", "not between")
    return f"({make(depth)} {word} {make(depth)} and {make(depth)})"


def _pattern(texts: Texts, depth: int) -> str:
    text = texts.make("string", depth)
    if texts.chance(0.5):
        pattern = texts.pick(
            "a%",
            "%b",
            "%a%",
            "a_c",
            "%",
            "_",
            "abc",
            "",
            "a\\\\%b",
            "%😀%",
            "_%_",
            "%\\n%",
            "%a%b",
            "a%_%c",
            "%a%_b%",
        )
        return f"({text} {texts.pick('like', 'not like')} '{pattern}')"
    pattern = texts.pick(
        "^a",
        "b$",
        "[a-c]+",
        "^\\\\d+$",
        "\\\\s",
        "(ab|c)",
        "^.$",
        "a.b",
        "[^a-z]",
        "^(a|b)?c{1,2}",
        "\\\\.",
        "x*y",
        "^$",
        "\\\\w\\\\W",
        "[\\\\d.-]",
    )
    return f"({text} rlike '{pattern}')"


def _arithmetic(kind: str) -> Maker:
    def make(texts: Texts, depth: int) -> str:
        other = {"bigint": ("int", "bigint"), "decimal": ("int", "bigint", "decimal")}.get(
            kind, (kind,)
        )
        left, right = texts.make(kind, depth), texts.make(texts.pick(*other), depth)
        if texts.chance(0.5):
            left, right = right, left
        return texts.infix(left, texts.pick("+", "-", "*", "%"), right)

    return make


def _form(template: str, *kinds: str) -> Maker:
    return lambda texts, depth: template.format(*(texts.make(kind, depth) for kind in kinds))


def _of_date(texts: Texts, depth: int) -> str:
    parts = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")
    return f"{texts.pick(*parts)}({texts.make(texts.pick('date', 'timestamp'), depth)})"


def _cast(target: str, *sources: str) -> Maker:
    def make(texts: Texts, depth: int) -> str:
        return f"{texts.pick('cast', 'try_cast')}({texts.make(texts.pick(*sources), depth)} as {target})"

    return make


def _trunc(texts: Texts, depth: int) -> str:
    units = (
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
    )
    return f"date_trunc('{texts.pick(*units)}', {texts.make('timestamp', depth)})"


def _interval(texts: Texts, depth: int) -> str:
    unit = texts.pick("second", "minutes", "hours", "day", "weeks", "milliseconds")
    count = texts.pick("5", "'3'", "-7", "100000")
    return f"({texts.make('timestamp', depth)} {texts.pick('+', '-')} interval {count} {unit})"


def _decimal_cast(texts: Texts, depth: int) -> str:
    precision = texts.pick(1, 5, 10, 14, 20, 38)
    scale = texts.pick(0, 2, min(precision, 6), precision)
    kinds = ("int", "bigint", "decimal", "boolean", *(("double",) if precision <= 14 else ()))
    return f"cast({texts.make(texts.pick(*kinds), depth)} as decimal({precision},{scale}))"


_LITERALS: dict[str, list[object]] = {
    "boolean": ["true", "false", "null", "TRUE"],
    "int": [0, 1, 2, -1, 3, 10, -7, 100, 2**31 - 1, -(2**31)],
    "bigint": ["0L", "1L", "-1L", "7L", "2147483648", 2**63 - 1, -(2**63)],
    "double": ["0D", "1.5D", "-2.5e0", "1e10", "1e-5", "0.1D", "-0.0D", "3e200"],
    "decimal": ["0.5", "1.5", "-2.25", "10.0", "3BD", "0.001", "12345678901234567890.5"],
    "timestamp": [
        "timestamp '2026-01-31 12:30:00'",
        "timestamp '2026-01-31T12:30:00.123456+05:30'",
        "timestamp '1969-12-31 23:59:59.5Z'",
        "timestamp '0001-01-01'",
    ],
}
_FIELDS = {
    "boolean": ["b", "b_", "s_ is null", "i_ is not null"],
    "int": ["length(s)", "size(tags)", "day(at)", "length(raw_)", "1"],
    "bigint": ["i", "i_", "inner.n", "inner_.n", "attrs['k0']", "nums[0]", "items[0].n", "nums[1]"],
    "double": ["x", "x_", "inner.x", "inner_.x", "floats[0]", "items[1].x"],
    "decimal": ["d", "d_"],
    "string": ["s", "s_", "kind", "inner.s", "inner_.s", "tags[0]", "tags[1]", "`s`"],
    "date": ["day", "day_"],
    "timestamp": ["at", "at_"],
}
_MAKERS: dict[str, list[Maker]] = {
    "boolean": [
        _comparison,
        _comparison,
        _comparison,
        lambda texts, depth: texts.infix(
            texts.make("boolean", depth), "and", texts.make("boolean", depth)
        ),
        lambda texts, depth: texts.infix(
            texts.make("boolean", depth), "or", texts.make("boolean", depth)
        ),
        _form("not {0}", "boolean"),
        _form("(not ({0}))", "boolean"),
        _form("({0} is null)", "bigint"),
        _form("({0} is not null)", "double"),
        _form("({0} is true)", "boolean"),
        _form("({0} is not false)", "boolean"),
        _form("({0} is distinct from {1})", "double", "double"),
        _form("({0} is not distinct from {1})", "string", "string"),
        _membership,
        _between,
        _pattern,
        _form("isnan({0})", "double"),
        _form("contains({0}, {1})", "string", "string"),
        _form("startswith({0}, {1})", "string", "string"),
        _form("endswith({0}, {1})", "string", "string"),
        _form("array_contains(tags, {0})", "string"),
        _form("array_contains(floats, {0})", "double"),
        _form("array_contains(nums, {0})", "bigint"),
        _cast("boolean", "int", "bigint", "double", "decimal", "string"),
        lambda texts, _: f"(raw {texts.pick('<', '=', '>=', '<=>')} raw_)",
    ],
    "int": [
        _arithmetic("int"),
        _arithmetic("int"),
        _form("(- {0})", "int"),
        _form("abs({0})", "int"),
        _form("length({0})", "string"),
        _form("instr({0}, {1})", "string", "string"),
        _of_date,
        _of_date,
        _form("hour({0})", "timestamp"),
        _form("minute({0})", "timestamp"),
        _form("second({0})", "timestamp"),
        _form("datediff({0}, {1})", "date", "timestamp"),
        _form("unix_date({0})", "date"),
        _form("pmod({0}, {1})", "int", "int"),
        _form("round({0}, -1)", "int"),
        _cast("int", "bigint", "double", "decimal", "string", "boolean", "timestamp"),
    ],
    "bigint": [
        _arithmetic("bigint"),
        _arithmetic("bigint"),
        _arithmetic("bigint"),
        _form("({0} div {1})", "bigint", "bigint"),
        _form("({0} div {1})", "int", "int"),
        _form("({0} div 7)", "bigint"),
        _form("-{0}", "bigint"),
        _form("abs({0})", "bigint"),
        _form("pmod({0}, {1})", "bigint", "bigint"),
        _form("mod({0}, {1})", "bigint", "int"),
        _form("ceil({0})", "double"),
        _form("floor({0})", "double"),
        _form("ceil({0})", "int"),
        _form("round({0}, -2)", "bigint"),
        _form("unix_millis({0})", "timestamp"),
        _form("unix_micros({0})", "timestamp"),
        _form("unix_seconds({0})", "timestamp"),
        _form("element_at(nums, {0})", "int"),
        _form("nums[{0}]", "int"),
        _form("element_at(attrs, {0})", "string"),
        _form("attrs[{0}]", "string"),
        _cast("bigint", "int", "double", "decimal", "string", "boolean", "timestamp"),
        _form("try_add({0}, {1})", "bigint", "int"),
    ],
    "double": [
        lambda texts, depth: texts.infix(
            texts.number(depth), texts.pick("+", "-", "*", "/", "%"), texts.make("double", depth)
        ),
        lambda texts, depth: texts.infix(
            texts.make("double", depth), texts.pick("+", "-", "*", "/", "%"), texts.number(depth)
        ),
        _form("({0} / {1})", "int", "bigint"),
        _form("({0} / {1})", "double", "double"),
        _form("try_divide({0}, {1})", "double", "int"),
        _form("(- {0})", "double"),
        _form("abs({0})", "double"),
        _form("sqrt({0})", "double"),
        _form("exp({0})", "double"),
        _form("ln({0})", "double"),
        _form("log10({0})", "double"),
        _form("power({0}, {1})", "double", "double"),
        _form("sign({0})", "double"),
        _form("round({0} % 1e9)", "double"),
        _form("round({0} % 1e9, 2)", "double"),
        _form("round({0} % 1e9, -1)", "double"),
        _form("pmod({0}, {1})", "double", "double"),
        _form("nanvl({0}, {1})", "double", "double"),
        _form("floats[{0}]", "int"),
        _cast("double", "int", "bigint", "decimal", "string", "boolean", "timestamp"),
    ],
    "decimal": [
        _arithmetic("decimal"),
        _arithmetic("decimal"),
        _form("({0} / {1})", "decimal", "decimal"),
        _form("({0} / {1})", "decimal", "int"),
        _form("(- {0})", "decimal"),
        _form("abs({0})", "decimal"),
        _form("ceil({0})", "decimal"),
        _form("floor({0})", "decimal"),
        _form("round({0}, 2)", "decimal"),
        _form("round({0}, -1)", "decimal"),
        _form("round({0})", "decimal"),
        _decimal_cast,
        _decimal_cast,
    ],
    "string": [
        _form("lower({0})", "string"),
        _form("upper({0})", "string"),
        _form("trim({0})", "string"),
        _form("ltrim({0})", "string"),
        _form("rtrim({0})", "string"),
        _form("concat({0}, {1})", "string", "string"),
        _form("({0} || {1})", "string", "string"),
        _form("{0} || {1}", "string", "string"),
        _form("substring({0}, {1})", "string", "int"),
        _form("substring({0}, {1}, {2})", "string", "bigint", "int"),
        _form("replace({0}, {1}, {2})", "string", "string", "string"),
        _form("replace({0}, {1})", "string", "string"),
        _form("split_part({0}, '.', 2)", "string"),
        _form("split_part({0}, {1}, -1)", "string", "string"),
        _form("element_at(tags, {0})", "int"),
        _cast("string", "int", "bigint", "decimal", "boolean", "date", "timestamp"),
    ],
    "date": [
        _form("({0} + {1})", "date", "int"),
        _form("({0} - {1})", "date", "int"),
        _form("date_add({0}, {1})", "date", "int"),
        _form("date_sub({0}, {1})", "date", "int"),
        _form("date_from_unix_date({0})", "int"),
        _cast("date", "timestamp", "string"),
    ],
    "timestamp": [
        _trunc,
        _interval,
        _form("timestamp_millis({0})", "bigint"),
        _form("timestamp_micros({0})", "bigint"),
        _form("timestamp_seconds({0})", "bigint"),
        _cast("timestamp", "int", "bigint", "date"),
    ],
}
