"""Random records to try expressions on: nulls, extremes, odd texts, several zones."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal

from penstock import record
from penstock.core.records.record import record_type


@record()
class Inner:
    n: int
    x: float | None
    s: str


@record()
class Sample:
    b: bool
    b_: bool | None
    i: int
    i_: int | None
    x: float
    x_: float | None
    d: Decimal
    d_: Decimal | None
    s: str
    s_: str | None
    day: date
    day_: date | None
    at: datetime
    at_: datetime | None
    raw: bytes
    raw_: bytes | None
    kind: Literal["hot", "cold"]
    tags: list[str]
    nums: list[int]
    floats: list[float]
    attrs: dict[str, int]
    inner: Inner
    inner_: Inner | None
    items: list[Inner]


SCHEMA = record_type(Sample).schema

INTS = [0, 1, -1, 2, 3, 7, 10, -10, 100, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 10**18]
INTS += [2**63 - 1, -(2**63), -(2**63) + 1, 2**53 + 1, 1_600_000_000, 1_600_000_000_123, 45, 55]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 1.005, 2.675, 100.0, 1e-320, 5e-324]
DOUBLES += [1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 2.0**53, 2.0**63]
DOUBLES += [-(2.0**63), 1e18, 1e19, 1e-7, 123456.789, 2147483647.5, -2147483648.9, 709.7, -745.0]
DECIMALS = [
    Decimal(text) for text in ("0", "0.5", "1.5", "-2.5", "1", "100", "0.000000000000000001")
]
DECIMALS += [Decimal("99999999999999999999.999999999999999999"), Decimal("-99999999999999999999.5")]
DECIMALS += [Decimal("2147483647.999999999999"), Decimal("0.999999999999999999"), Decimal("-0.005")]
TEXTS = [
    "",
    " ",
    "a",
    "A",
    "abc",
    "ABC",
    "b",
    "ß",
    "İ",
    "ΑΣ",
    "ΑΣ ΣΑ.Σ",
    "😀",
    "a😀b",
    "\ue000",
    "x.y.z",
]
TEXTS += ["\U00010000", "\uffff", "é", "e\u0301", "ǆ", "ﬁ", "\u1c89\ua7dc", "k1", "hot", "  pad  "]
TEXTS += [
    "12",
    "-7",
    " 42\t",
    "1e3",
    "NaN",
    "-inf",
    "0x1p3",
    "1d",
    "true",
    "T",
    "no",
    "+5",
    "5.",
    ".5",
]
TEXTS += [
    "2020-01-01",
    "2020-1-1 x",
    "2020",
    "2020-13-01",
    "99999-01-01",
    "-2020",
    "9223372036854775808",
]
TEXTS += [
    "2147483648",
    "a%b",
    "a_b",
    "a\\b",
    "it's",
    "$x",
    "${spark.app.name}",
    "l1\nl2",
    "l1\r\n",
    "\x00",
]
TEXTS += ["\u0085", "a\u2028", "x\n", "00012", "1_000", "٣", "\x7f7\x7f", "- 1", "1e400", "1e-400"]
DATES = [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2000, 2, 29)]
DATES += [
    date(1582, 10, 4),
    date(1582, 10, 15),
    date(2026, 1, 31),
    date(2024, 12, 30),
    date(1900, 3, 1),
]
ZONES = [UTC, UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))]
BYTES = [b"", b"\x00", b"a", b"ab", b"\xff\xfe", b"\x7f"]
INSTANTS = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
INSTANTS += [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]
INSTANTS += [
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    datetime(1899, 12, 31, 12, 0, 1, 5, tzinfo=UTC),
]


class Records:
    """Random records: half of their values come from the lists above."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def sample(self) -> Sample:
        return Sample(
            b=self._random.random() < 0.5,
            b_=self._maybe(lambda: self._random.random() < 0.5),
            i=self._int(),
            i_=self._maybe(self._int),
            x=self._double(),
            x_=self._maybe(self._double),
            d=self._decimal(),
            d_=self._maybe(self._decimal),
            s=self._text(),
            s_=self._maybe(self._text),
            day=self._date(),
            day_=self._maybe(self._date),
            at=self._instant(),
            at_=self._maybe(self._instant),
            raw=self._random.choice(BYTES),
            raw_=self._maybe(lambda: self._random.choice(BYTES)),
            kind=self._random.choice(["hot", "cold"]),
            tags=[self._text() for _ in range(self._random.randrange(3))],
            nums=[self._int() for _ in range(self._random.randrange(4))],
            floats=[self._double() for _ in range(self._random.randrange(3))],
            attrs={f"k{n}": self._int() for n in range(self._random.randrange(3))},
            inner=self._inner(),
            inner_=self._maybe(self._inner),
            items=[self._inner() for _ in range(self._random.randrange(3))],
        )

    def _maybe(self, make: Callable[[], Any]) -> Any:
        return None if self._random.random() < 0.3 else make()

    def _inner(self) -> Inner:
        return Inner(n=self._int(), x=self._maybe(self._double), s=self._text())

    def _int(self) -> int:
        roll = self._random.random()
        if roll < 0.5:
            return self._random.choice(INTS)
        return (
            self._random.randrange(-100, 100)
            if roll < 0.8
            else self._random.getrandbits(64) - 2**63
        )

    def _double(self) -> float:
        roll = self._random.random()
        if roll < 0.5:
            return self._random.choice(DOUBLES)
        if roll < 0.75:
            return round(self._random.gauss(0, 100), self._random.randrange(6))
        return self._random.gauss(0, 1) * 10.0 ** self._random.randrange(-30, 30)

    def _decimal(self) -> Decimal:
        if self._random.random() < 0.4:
            return self._random.choice(DECIMALS)
        digits = self._random.randrange(1, 38)
        scale = self._random.randrange(max(0, digits - 20), min(18, digits) + 1)
        return Decimal(self._random.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)

    def _text(self) -> str:
        if self._random.random() < 0.8:
            return self._random.choice(TEXTS)
        return "".join(
            self._random.choice("abAB %_.\n😀é0") for _ in range(self._random.randrange(6))
        )

    def _date(self) -> date:
        if self._random.random() < 0.6:
            return self._random.choice(DATES)
        return date.fromordinal(self._random.randrange(1, 3_652_059))

    def _instant(self) -> datetime:
        if self._random.random() < 0.4:
            return self._random.choice(INSTANTS)
        zone = self._random.choice(ZONES)
        instant = datetime(1900, 1, 1, tzinfo=UTC) + timedelta(
            seconds=self._random.randrange(5 * 10**9)
        )
        return (instant + timedelta(microseconds=self._random.randrange(10**6))).astimezone(zone)
