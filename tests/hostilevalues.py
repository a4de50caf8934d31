"""A fuzzer of payloads: values at the edges of every type, and JSON that is nearly none.

Each payload is made from a source of randomness, so a seed gives it again.
"""

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Annotated, Literal

from penstock import App, limits, record
from penstock.core.graph.data import OnLog
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError

MAX_BYTES = 20_000

Row = tuple[bytes | None, bytes | None]


@record(time="millis")
class Inner:
    millis: int
    name: Annotated[str, limits(max_length=8)] = "n"
    share: Decimal = Decimal("0.5")
    at: datetime | None = None


@record(key="id", time="at")
class Sample:
    id: str
    at: datetime
    count: int = 0
    ratio: float = 0.5
    price: Decimal | None = None
    day: date | None = None
    raw: bytes | None = None
    good: bool = True
    kind: Literal["a", "b", "1"] = "a"
    code: Annotated[str, limits(pattern=r"^(\w|-)+$")] | None = None
    tags: list[str] = []  # noqa: RUF012
    times: list[datetime] | None = None
    sizes: dict[str, Decimal] = {}  # noqa: RUF012
    inner: Inner | None = None
    inners: list[Inner] = []  # noqa: RUF012


samples: OnLog = App("hostile").stream("samples", Sample, max_record=MAX_BYTES)


_CODEC = JsonCodec(samples.record, max_bytes=MAX_BYTES)
_GENEROUS = JsonCodec(samples.record, max_bytes=1 << 30)


def payload(random: Random) -> bytes:
    """Return a payload: mostly a record with a few odd values, sometimes no JSON at all."""
    fields = {
        name: make(random)
        for name, make in _GOOD.items()
        if name in ("id", "at") or random.random() < _USUAL
    }
    for name in random.sample(sorted(_GOOD), random.choice([0, 1, 1, 1, 2])):
        fields[name] = _odd(random, name)
    pairs = [(_name(random, name), value) for name, value in fields.items()]
    if random.random() < _SELDOM:
        pairs.append((json.dumps(random.choice([*_GOOD, "other", "", "\0"])), _any(random)))
    if random.random() < _SELDOM:
        pairs.append(('"unknown"', random.choice([_any(random), "[" * 300 + "]" * 300])))
    random.shuffle(pairs)
    colon, comma = random.choice([(":", ","), (": ", ", "), (" :\n", "\t,\r\n")])
    text = "{" + comma.join(f"{name}{colon}{value}" for name, value in pairs) + "}"
    value = text.encode("utf-8", "surrogatepass")
    return _damaged(random, value) if random.random() < _SELDOM else value


def with_key(value: bytes) -> Row:
    """Return a payload under the key it must have, so that only its value decides."""
    try:
        return _GENEROUS.key(_GENEROUS.decode(value)), value
    except DataError:
        return b"k", value


def accepted(row: Row) -> Sample | None:
    """Return the codec's word: a record, or None for a dead letter. Nothing else is raised."""
    try:
        return _CODEC.accept(*row)
    except DataError:
        return None


def is_plain(value: bytes) -> bool:
    """Whether both gates give one verdict: see ``pipelines.nativegate`` for where they do not."""
    if b"[" * 30 in value or _LONG_NUMBER.search(value):
        return False
    names: list[bool] = []
    try:
        text = value.decode()
        json.loads(
            text, object_pairs_hook=lambda pairs: names.append(len({*dict(pairs)}) == len(pairs))
        )
    except UnicodeDecodeError:
        return False
    except ValueError:
        return True
    return all(names)


_LONG_NUMBER = re.compile(rb'"(?!ratio")[^"]*"\s*:\s*-?[0-9.]+[eE]|:\s*-?[0-9.]{39}')
"""A number that might be a decimal, and of which Spark keeps a double."""


_USUAL, _SELDOM = 0.8, 0.12
_ZONES = ["Z", "z", "+00:00", "-00:00", "+01:00", "-05:30", "+0530", "+14:00", "+18:00", "-18:00"]
_FAR_ZONES = ["+18:01", "-23:59", "+24:00", "", "+1", " Z", "[UTC]", "+25:00", "Zulu"]
_YEARS = ["0000", "0001", "0001", "1582", "1899", "1969", "1970", "2024", "9999", "9999", "10000"]
_DAYS = ["01-01", "12-31", "02-28", "02-29", "10-04", "10-15", "03-31", "13-01", "00-10", "1-1"]
_CLOCKS = ["00:00:00", "23:59:59", "12:34:56", "24:00:00", "23:59:60", "00:00", "0:00:00"]
_FRACTIONS = ["", "", ".0", ".5", ".999999", ".9999999", ".9999994", ".000000", ".1234567890123"]
_FRACTIONS += [".", ",5", ".12345678Z"]
_WHOLE = [
    str(sign * (2**bits + more))
    for bits in (7, 31, 32, 53, 63, 64)
    for more in (-1, 0, 1)
    for sign in (1, -1)
]
_WHOLE += ["0", "-0", "01", "+1", "9" * 400, "-62135596800000", "-62135596800001"]
_WHOLE += ["253402300799999", "253402300800000", "1e3", "1.0", "1E0"]
_FLOATS = ["0.0", "-0.0", "1e308", "1.8e308", "-1e309", "1e-400", "5e-324", "4.9e-325", "1e9999999"]
_FLOATS += ["0.1", "1.7976931348623157e308", "1.7976931348623159e308", "3" * 310, ".5", "5.", "1e"]
_FLOATS += ["NaN", "Infinity", "-Infinity", "nan", "0x1p3", "1_0", "0." + "3" * 900]
_TEXTS = [
    "",
    " ",
    "a",
    "b",
    "1",
    "é",
    "e\u0301",
    "José",
    "\u0663",
    "\uff11",
    "a\0b",
    "\x7f",
    "\u2028",
]
_TEXTS += [
    "\ufeff",
    "\ufffd",
    "😀",
    "\U0010ffff",
    "a\nb",
    "\r\n",
    "{}",
    '"',
    "\\",
    "${x}",
    "'",
    "`",
]
_TEXTS += ["x" * 9000, "null", "true", "-" * 40 + "!", "_" * 40 + "!", "\u202e", "%_", "a-b_c"]
_BASE64 = ["", "AA==", "AAA=", "AAAA", "AA", "A===", "AA=A", "A A=", "-_-_", "AB==", "/" * 8000]
_BROKEN = [r'"\ud800"', r'"\udc00x"', r'"\ud83d\ude00"', r'"\ud83dx"', r'"\u00"', r'"\x"', r'"\/"']
_BROKEN += ['"\ud800"', '"a\nb"', '"', "'a'", "nul", "[1,]", "{", "//x", "", "[" * 40 + "]" * 40]


def _instant(random: Random) -> str:
    zones = _ZONES if random.random() < _USUAL else _FAR_ZONES
    mark = random.choice(["T", "T", "T", "t", " ", "_"])
    clock = random.choice(_CLOCKS) + random.choice(_FRACTIONS)
    found = f"{random.choice(_YEARS)}-{random.choice(_DAYS)}{mark}{clock}{random.choice(zones)}"
    return json.dumps(found)


def _date(random: Random) -> str:
    return json.dumps(f"{random.choice(_YEARS)}-{random.choice(_DAYS)}")


def _decimal(random: Random) -> str:
    digits = "".join(
        random.choice("0019") for _ in range(random.choice([1, 3, 19, 20, 21, 38, 60]))
    )
    behind = "".join(random.choice("0019") for _ in range(random.choice([1, 17, 18, 19, 30, 500])))
    exponent = random.choice([0, 1, 5, -5, 18, -18, 19, 20, -19, 999, -999, 1001, 9_999_999])
    sign = random.choice(["", "-", "", "+"])
    found = sign + random.choice([digits, f"{digits}.{behind}", f"0.{behind}", f".{behind}", "0"])
    if random.random() < 0.4:
        found += random.choice("eE") + random.choice(["", "-"]) + str(exponent)
    odd = random.choice(
        [found, found, found, f" {found}", f"{found}_0", "NaN", "-Infinity", "\u0661"]
    )
    return random.choice([json.dumps(odd), found])


def _text(random: Random) -> str:
    return json.dumps(random.choice(_TEXTS), ensure_ascii=random.random() < 0.5)


def _list_of(make: Callable[[Random], str]) -> Callable[[Random], str]:
    return lambda random: "[" + ",".join(make(random) for _ in range(random.randrange(3))) + "]"


def _map_of(make: Callable[[Random], str]) -> Callable[[Random], str]:
    def made(random: Random) -> str:
        pairs = (f"{_text(random)}:{make(random)}" for _ in range(random.randrange(3)))
        return "{" + ",".join(pairs) + "}"

    return made


def _inner(random: Random) -> str:
    fields = {
        "millis": random.choice(["0", "1700000000123", random.choice(_WHOLE)]),
        "name": random.choice(['"n"', _text(random)]),
        "share": random.choice(['"0.25"', _decimal(random)]),
        "at": random.choice(["null", _instant(random)]),
    }
    if random.random() < _SELDOM:
        del fields[random.choice(sorted(fields))]
    return "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"


def _from(values: list[str]) -> Callable[[Random], str]:
    return lambda random: random.choice(values)


_GOOD: dict[str, Callable[[Random], str]] = {
    "id": _from(['"k"', '"a\\u0000b"', '"é"', '""']),
    "at": _from(['"2024-05-06T07:08:09Z"', '"2024-05-06T07:08:09.123+02:00"']),
    "count": _from(["0", str(2**63 - 1), str(-(2**63)), str(2**53 + 1)]),
    "ratio": _from(["0.1", "1", "-0.0", "5e-324", "1.7976931348623157e308"]),
    "price": _from(['"12.50"', "0.1", '"99999999999999999999.999999999999999999"', "null"]),
    "day": _from(['"0001-01-01"', '"9999-12-31"', '"1582-10-10"', "null"]),
    "raw": _from(['"AA=="', '""', "null"]),
    "good": _from(["true", "false"]),
    "kind": _from(['"a"', '"1"']),
    "code": _from(['"a-b"', "null"]),
    "tags": _from(["[]", '["", "a\\u0000", "😀"]']),
    "times": _from(["[]", "null", '["0001-01-01T00:00:00Z","9999-12-31T23:59:59.999999Z"]']),
    "sizes": _from(["{}", '{"":"0","a":"1e5","é":"-0.000000000000000001"}']),
    "inner": _from(["null", '{"millis":253402300799999}', '{"millis":-62135596800000}']),
    "inners": _from(["[]", '[{"millis":1,"share":"1E+19"},{"millis":2,"at":null}]']),
}
_EDGES: dict[str, Callable[[Random], str]] = {
    "id": _text,
    "at": _instant,
    "count": _from(_WHOLE),
    "ratio": _from([*_FLOATS, *_WHOLE]),
    "price": _decimal,
    "day": _date,
    "raw": lambda random: json.dumps(random.choice(_BASE64)),
    "good": _from(["true", "1", '"true"', "False"]),
    "kind": _from(['"a"', "1", '"1"', '"c"', '"A"']),
    "code": _text,
    "tags": _list_of(_text),
    "times": _list_of(_instant),
    "sizes": _map_of(_decimal),
    "inner": _inner,
    "inners": _list_of(_inner),
}
_KINDS = [*_EDGES.values(), _from(_BROKEN), _from(["null", "[]", "{}", "[null]", '{"a":null}'])]


def _any(random: Random) -> str:
    return random.choice(_KINDS)(random)


def _odd(random: Random, name: str) -> str:
    return _EDGES[name](random) if random.random() < _USUAL else _any(random)


def _name(random: Random, name: str) -> str:
    if random.random() > _SELDOM / 4:
        return f'"{name}"'
    return random.choice([f'"\\u{ord(name[0]):04x}{name[1:]}"', f'"{name.upper()}"', f'"{name} "'])


def _damaged(random: Random, value: bytes) -> bytes:
    at = random.randrange(len(value))
    noise = random.choice(
        [b"", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0", b'"', b"}", b"\\", b","]
    )
    return random.choice(
        [
            value[:at] + noise + value[at + random.randrange(3) :],
            value[:at],
            b"\xef\xbb\xbf" + value,
            value + random.choice([b" ", b"\n", b"\0", b"{}", b"x", b"]"]),
            value + b"\n" + value,
            b"[" + value + b"]",
            value.decode(errors="replace").encode("utf-16"),
            b"",
            b"null",
        ]
    )
