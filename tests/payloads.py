"""Records that are wrong, or nearly wrong, and what the codec makes of them.

Long because most of it is a table of payloads.
"""

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from hypothesis import strategies as st

from penstock import App, limits, record
from penstock.core.graph.data import OnLog
from penstock.core.records.codec import JsonCodec
from penstock.errors import DataError

MAX_BYTES = 2000
EPOCH = datetime.fromtimestamp(0, UTC)

Row = tuple[bytes | None, bytes | None]


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: Annotated[float, limits(ge=-273.15, lt=1e300)]
    count: int = 7
    active: bool = True
    kind: Literal["hot", "cold"] = "hot"
    note: Annotated[str, limits(min_length=1, max_length=5, pattern="^[a-zé}]")] | None = None
    level: int | None = 3
    day: date | None = None
    raw: Annotated[bytes, limits(max_length=6)] | None = None
    samples: Annotated[list[float], limits(max_length=3)] | None = None
    grid: list[list[int]] | None = None


@record(key=("name", "number"))
class Inner:
    name: str
    number: int
    size: float = 1.5
    tags: list[str] = []  # noqa: RUF012
    mode: Literal["a", "b"] | None = "a"


@record(key=("id", "at", "text"), time="millis")
class Rich:
    id: int
    at: datetime
    text: str
    millis: int
    price: Decimal
    inner: Inner
    inners: list[Inner] = []  # noqa: RUF012
    tags: Annotated[list[str], limits(min_length=1)] | None = None
    names: dict[str, str] = {}  # noqa: RUF012
    deep: dict[str, list[Inner]] | None = None
    instants: list[datetime] = []  # noqa: RUF012
    blobs: list[bytes] | None = None
    prices: dict[str, Decimal] | None = None


app = App("gate")
readings = app.stream("readings", Reading, max_record=MAX_BYTES)
riches = app.stream("riches", Rich, max_record=MAX_BYTES)
latest = app.table("latest", Reading, max_record=MAX_BYTES)

PLAIN = {
    "device": '"d1"',
    "at": '"2024-05-06T07:08:09.123Z"',
    "celsius": "21.5",
    "count": "3",
    "active": "false",
    "kind": '"cold"',
    "note": '"abc"',
    "level": "null",
    "day": '"2024-05-06"',
    "raw": '"aGVs"',
    "samples": "[1, 2.5, 3e2]",
    "grid": "[[1, 2], [], [3]]",
}
INNER = '{"name":"n","number":1,"tags":["x"],"mode":null}'
RICH = {
    "id": "5",
    "at": '"2024-05-06T07:08:09.123+02:00"',
    "text": '"a\\"b\\u001f\\n\\\\u001F\\u00e9"',
    "millis": "1700000000123",
    "price": '"12.50"',
    "inner": INNER,
    "inners": f"[{INNER}, {INNER}]",
    "tags": '["a", "b"]',
    "names": '{"k": "v", "\\u00e9": ""}',
    "deep": f'{{"a": [], "b": [{INNER}]}}',
    "instants": '["2024-05-06T07:08:09Z"]',
    "blobs": '["aGVs", ""]',
    "prices": '{"x": "1", "y": 2.25}',
}

INSTANTS = """
2024-01-01T00:00:00Z 2024-01-01t00:00:00z 2024-01-01T00:00:00.1Z 2024-01-01T00:00:00.123456Z
2024-01-01T00:00:00.1234567Z 2024-01-01T00:00:00.1234564999Z 2024-12-31T23:59:59.9999995Z
2024-01-01T00:00:00+02:00 2024-01-01T00:00:00-0330 2024-01-01T00:00:00+02 2024-01-01T00:00:00
2024-01-01T00:00Z 2024-01-01 2024-01-01T24:00:00Z 2024-01-01T23:59:60Z 2024-02-30T00:00:00Z
2023-02-29T00:00:00Z 0000-01-01T00:00:00Z 0001-01-01T00:00:00Z 0001-01-01T00:00:00+10:00
9999-12-31T23:59:59.999999Z 2024-01-01T00:00:00+18:00 2024-01-01T00:00:00+24:00
2024-01-01T00:00:00-00:00 2024-01-01T00:00:00+00:00 2024-01-01T00:00:00,5Z 2024-01-01T00:00:00.Z
12024-01-01T00:00:00Z 2024-1-01T00:00:00Z 2024-01-01T0:00:00Z 002024-1-1T00:00:00Z
2024-01-01T00:00:00+02:60 2024-01-01T00:00:00+2:00 20240101T000000Z 2024-01-01T00:00:00[UTC]
2024-01-01T00:00:00UTC now 1700000000 2024-05-06T25:00:00Z 2024-13-01T00:00:00Z
2024-01-01T00:00:00.00NZ 2024-01-01T00:00:00.1+2Z 2024-01-01T00:00:00.0A1Z 2024-01-01T00:00:00.+01Z
2024-1-1T1:1:1.12345678Z 2024-1-1T1:1:1.1234Z 2024-01-01T0:0:00.123456Z 2024-01-01T00:00:1Z.5Z
2024-01-01T00:00:0:5Z 2024-01-01T00:00:00:5Z +2024-01-01T00:00:00.5Z -2024-01-01T00:00:00.5Z
+202-01-01T00:00:00.5Z 12024-1-01T00:00:00.5Z 2024-01-01T00:00:00.12345Z 2024-01-01T00:00:00.UTC1Z
0001-01-01T00:00:00+01:00 9999-12-31T23:59:59-05:00 0001-01-01T18:00:00+18:00 9999-12-31T23:59:59+18:01
0001-01-01T00:00:00-00:01 9999-12-31T23:59:59.9999999Z 9999-12-31T05:59:59.9999999-18:00
2024-01-01T00:00:00-18:00 2024-01-01T00:00:00-1801 2024-01-01T00:00:00+23:59
2024-01-01T00:00:00.UT+1Z 2024-01-01T00:00:00.GMT0Z 2024-01-01T00:00.00.5Z T00:00:00.5Z
""".split()  # noqa: SIM905 - one a line would be a page
TEXTS = [
    *INSTANTS,
    *["2024-01-01T00:00:00Z\n", "2024-01-01T00:00:00+01:00\n", "2024-01-01\n", "aGVs\n", "1.5\n"],
    *[
        "2024-01-01 00:00:00.5Z",
        "2024-01-01T00:00:00.5 Z",
        "2024-01-01T00:00:00. 5Z",
        " 2024-01-01T0:00:00.5Z",
    ],
    *["2024-01-01 00:00:00Z", " 2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z ", ""],
    *[
        "2024-02-29",
        "2023-02-29",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "2024-1-1",
        " 2024-01-01",
    ],
    *[
        "aGVsbG8=",
        "aGVsbG8",
        "aGVs bG8=",
        "ab==",
        "abc=",
        "ab=",
        "-_-_",
        "+/+/",
        "====",
        "a===",
        "ab==ab==",
    ],
    *[
        "hot",
        "cold",
        "Hot",
        "abcde",
        "abcdef",
        "a\ufffd",
        "é",
        "éé}éé",
        "1abc",
        "}",
        '{"a":1}',
        "null",
        "NaN",
    ],
    *[
        "1.5",
        "1",
        "-0",
        "+1.5",
        ".5",
        "5.",
        "1e5",
        "1E-18",
        "1E-19",
        "100E-20",
        "1e19",
        "1e20",
        "1,5",
    ],
    *["99999999999999999999.999999999999999999", "100000000000000000000", "0.0000000000000000001"],
    *[
        "1.1000000000000000000000",
        "0E-30",
        "0.0000000000000000000000000",
        ".",
        "e5",
        "0x10",
        "-",
        "Infinity",
    ],
    *[
        "1e9999999",
        "1e-9999999",
        "-1e999999999999",
        "0e9999999",
        "0e-9999999",
        "1e99999999999999999999",
    ],
    *[
        "0E+30",
        "0E-1000",
        "0E-1001",
        "0E+1000",
        "0E+1001",
        "10E-1000",
        "1E+00005",
        "1E-00018",
        "-0.0",
    ],
    *[
        "12345678901234567890.1234567890123456789012345",
        "1." + "0" * 400,
        "0" * 400 + "1",
        "9" * 400,
    ],
    *[
        "1_0",
        "_1",
        "1e_+5",
        " 1",
        "1 ",
        "1\u2009",
        "\uff11",
        "\u0661.5",
        "1.",
        ".5",
        "+.5e-3",
        "1.e1",
    ],
    "x" * 300,
]
NUMBERS = """
0 1 -1 -0 1.0 1e2 1E2 1.5 -1.5 -5 -4 -300 1e300 1e299 1e308 1e309 -1e309 1e-400 01 +1 - 1. .5 1.e5 0x1
9223372036854775807 -9223372036854775808 9223372036854775808 99999999999999999999999 1e18 1700000000
-62135596800000 253402300799999 0.1 1.10 123456789012345678.123456789012345678 1E-19 3.0000000000000000000
NaN nan Infinity -Infinity +INF 1e9999999 1e-9999999 12345678901234567890.1234567890123456789012345
-62135596800001 253402300800000 0e9999999 0E-30
""".split()  # noqa: SIM905
LITERALS = """
true false null True tru nulll [] {} [null] [1] [1,2,3,4] [1,] [1e400] ["1"] [[1]] [[1.0]] [[null]]
[[[1]]] [true] {"a":1} {"k":null} {"k":"v"} {"k":5} [{}] [[]] {"name":"n","number":1}
{"name":5,"number":1} {"name":"n","number":"1"} {"name":"n"} {"name":"n","number":1,"size":null}
{"name":"n","number":1,"tags":null} {"name":"n","number":1,"tags":[1]} {"name":"n","number":1,"mode":"c"}
[{"name":"n","number":1}] [{"name":"n"}] {"a":[{"name":"n","number":1}]} {"a":{"name":"n","number":1}}
['a'] 'a' "\\ud800" "\\ud83d\\ude00" "\\udc00" "\\ud83dx" "\\\\ud800" "\\u0061bc" "\\x" "\\/" "a\\u0000"
"2024-01-01T00\\u003a00:00Z" ["2024-01-01T00:00:00Z",5] [5,"a"] ["a",null] {"x":1e400}
""".split()  # noqa: SIM905


def fragments() -> Iterable[bytes]:
    """Yield the JSON (or not) that is put in every field's place."""
    yield from (json.dumps(text).encode() for text in TEXTS)
    yield from (
        json.dumps(text, ensure_ascii=False).encode() for text in TEXTS if not text.isascii()
    )
    yield from (text.encode() for text in (*NUMBERS, *LITERALS))
    yield from (
        b'"\xff"',
        b'"\xc0\x80"',
        b'"a\x01"',
        b'"a\nb"',
        b'"\x7f"',
        b'"\xed\xa0\x80"',
        b"",
        b'"',
    )


def written(fields: dict[str, bytes], *, colon: bytes = b":", comma: bytes = b",") -> bytes:
    """Return a record's JSON, its values given as JSON."""
    named = (b'"' + name.encode() + b'"' + colon + value for name, value in fields.items())
    return b"{" + comma.join(named) + b"}"


def payloads(base: dict[str, str]) -> Iterable[bytes]:
    """Yield records that are wrong, or nearly wrong, each in one way."""
    good = {name: value.encode() for name, value in base.items()}
    plain = written(good)
    for name in good:
        for fragment in fragments():
            yield written(good | {name: fragment})
        yield written({other: value for other, value in good.items() if other != name})
        yield written({(other if other != name else name.upper()): v for other, v in good.items()})
        yield plain.replace(b'"' + name.encode(), b'"\\u%04x' % ord(name[0]) + name[1:].encode())
    yield from (
        plain,
        written(good, colon=b": ", comma=b", "),
        written(good, colon=b" :\t", comma=b" ,\n"),
    )
    yield from (
        plain + tail
        for tail in (b" ", b"\n\t\r ", b"x", b"}", b"{}", b",", b"\x00", b"//x", b"]", b"] }")
    )
    yield from (
        plain + tail for tail in (b',"penstock:end-of-record"]', b' , "x" : {} }', b"\xff", b'""')
    )
    yield from (
        head + plain for head in (b" ", b"\n\t\r ", b"\xef\xbb\xbf", b"x", b"[", b"/**/", b"\x0c")
    )
    yield from (
        b"[" + plain + b"]",
        b"",
        b" ",
        b"null",
        b"{}",
        b"5",
        b'"text"',
        b"\xff\xfe{\x00}\x00",
        b"[]",
    )
    yield from (plain[:-1], plain[:-1] + b",}", plain[: len(plain) // 2], plain.replace(b":", b"="))
    yield plain.decode().encode("utf-16")
    for extra in (
        b"5",
        b'"x"',
        b'"\xff"',
        b'"\xef\xbf\xbd"',
        b"{}",
        b'{"device":"y","text":"y"}',
        b"[1,{}]",
        b'"}"',
        b"01",
        b"nul",
        b"1e999",
    ):
        yield plain[:-1] + b',"extra":' + extra + b"}"
    yield plain[:-1] + b',"extra":' + b"[" * 400 + b"]" * 400 + b"}"
    yield plain[:-1] + b',"extra":' + b"[" * 9000 + b"]" * 9000 + b"}"
    yield plain[:-1] + b',"extra":"' + b"y" * (MAX_BYTES - len(plain) - 11) + b'"}'
    yield plain[:-1] + b',"extra":"' + b"y" * (MAX_BYTES - len(plain) - 10) + b'"}'


def with_their_keys(data: OnLog, values: Iterable[bytes]) -> list[Row]:
    """Give each record the key it must have, so that only its value decides."""
    codec = JsonCodec(data.record, max_bytes=1 << 30)

    def key(value: bytes) -> bytes | None:
        try:
            return codec.key(codec.decode(value))
        except DataError:
            return b"d1"

    return [(key(value), value) for value in values]


def by_codec(
    data: OnLog, rows: list[Row], *, natively: bool = False
) -> list[dict[str, Any] | None]:
    """Return each row's record as plain values, None where it is to be refused.

    That is the codec's word, but natively bytes are UTF-8 in fields nobody declared too, and a
    decimal that is a JSON number has no exponent.
    """
    codec = JsonCodec(data.record, max_bytes=data.topic.max_record_bytes)

    def one(row: Row) -> dict[str, Any] | None:
        try:
            if natively and data is riches:
                (row[1] or b"").decode()
            found = plain_values(codec.accept(*row))
            if natively and data is riches and _has_exponents(row[1] or b""):
                return None
        except (DataError, UnicodeDecodeError):
            return None
        if data is riches:
            found["millis"] *= 1000
        return found

    return [one(row) for row in rows]


def _has_exponents(value: bytes) -> bool:
    """Whether a decimal of a rich record is a JSON number with an exponent."""
    found = json.loads(value, parse_float=lambda text: text.lower() if "e" in text.lower() else 0)
    decimals = [found.get("price"), *(found.get("prices") or {}).values()]
    numbers = [each for each in decimals if isinstance(each, str)]
    quoted = json.loads(value, parse_float=lambda _: 0)
    texts = [quoted.get("price"), *(quoted.get("prices") or {}).values()]
    return numbers != [each for each in texts if isinstance(each, str)]


def plain_values(value: Any) -> Any:
    match value:
        case msgspec.Struct():
            return {
                name: plain_values(inner) for name, inner in msgspec.structs.asdict(value).items()
            }
        case dict():
            return {name: plain_values(inner) for name, inner in value.items()}
        case list():
            return [plain_values(inner) for inner in value]
        case datetime():
            return (value - EPOCH) // timedelta(microseconds=1)
    return value


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def mutations(draw: Any, base: dict[str, str]) -> bytes:
    fields = {name: text.encode() for name, text in base.items()}
    for name in draw(st.lists(st.sampled_from(sorted(base)), max_size=2)):
        ascii_only = draw(st.booleans())
        # Halves of characters cannot be encoded; escaped they are a case of their own.
        fields[name] = json.dumps(draw(_JSON), ensure_ascii=ascii_only).encode(errors="replace")
    text = written(fields)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.binary(max_size=2)) + text[at + draw(st.integers(0, 2)) :]
    return text
