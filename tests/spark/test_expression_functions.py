"""Functions over many values: every character, thousands of doubles, decimals and texts."""

import math
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from penstock.core.expression import compile_row, parse
from penstock.core.records.schema import Schema
from penstock.pipelines.spark.expressions import column

SURROGATES = range(0xD800, 0xE000)
BETWEEN = "\n\r\u0085\u2028\u2029"


def _schema(**types: str) -> Schema:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return Schema.from_json({"name": "Values", "fields": fields, "key": [], "time": None})


def _check(
    spark: SparkSession, path: Path, schema: Schema, values: dict[str, Any], texts: list[str]
) -> None:
    """Compare what Spark and Python make of every row."""
    pq.write_table(pa.table(values), path)
    expressions = [parse(text, schema) for text in texts]
    found = spark.read.parquet(str(path)).coalesce(1).select(*map(column, expressions)).toArrow()
    rows = pa.table(values).to_pylist()
    for number, expression in enumerate(expressions):
        function = compile_row(expression)
        for row, in_spark in zip(rows, found.column(number).to_pylist(), strict=True):
            in_python = function(SimpleNamespace(**row))
            same = in_spark == in_python or (in_spark != in_spark and in_python != in_python)  # noqa: PLR0124
            if same and isinstance(in_python, float):
                same = math.isnan(in_python) or _bits(in_spark) == _bits(in_python)
            assert same, f"{expression} of {row!r}: Spark {in_spark!r}, Python {in_python!r}"


def _bits(value: float) -> bytes:
    return struct.pack(">d", value)


def test_lower_and_upper_of_every_character(spark: SparkSession, tmp_path: Path):
    characters = [chr(code) for code in range(1, 0x110000) if code not in SURROGATES]
    # Sixteen at a time, apart: what stands beside a character may change its case.
    texts = ["\0".join(characters[start : start + 16]) for start in range(0, len(characters), 16)]
    values = {"s": pa.array(texts, pa.string())}

    _check(
        spark,
        tmp_path / "characters",
        _schema(s="text"),
        values,
        ["lower(s)", "upper(s)", "length(s)"],
    )


def test_functions_of_doubles(spark: SparkSession, tmp_path: Path):
    dice = random.Random(7)
    makers: list[Callable[[], float]] = [
        lambda: struct.unpack(">d", dice.randbytes(8))[0],
        lambda: dice.gauss(0, 100),
        lambda: round(dice.gauss(0, 1000), dice.randrange(8)),
        lambda: dice.randrange(-40, 40) / 2,
        lambda: 1 + dice.gauss(0, 1e-6),
        lambda: dice.gauss(0, 1) * 10.0 ** dice.randrange(-20, 20),
        lambda: dice.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.0**63, 0.5]),
    ]
    numbers = [[dice.choice(makers)() for _ in range(20_000)] for _ in range(2)]
    values = {
        name: pa.array(given, pa.float64()) for name, given in zip("xy", numbers, strict=True)
    }
    texts = [
        "exp(x)",
        "ln(x)",
        "log10(x)",
        "power(x, y)",
        "sqrt(x)",
        "x % y",
        "pmod(x, y)",
        "x / y",
    ]
    # Past 14 digits Java before 19 takes some doubles for their neighbours in decimal.
    texts += [f"round(if(abs(x) < 1e{14 - n}, x, y % 1e9), {n})" for n in (2, 0, -2, 5)]
    texts += ["ceil(x)", "floor(x)", "cast(x as bigint)"]
    texts += ["cast(x as int)", "cast(x as decimal(14,3))", "cast(x as decimal(9,9))", "sign(x)"]
    texts += ["x > y", "x <= y", "x = y", "greatest(x, y)", "least(x, y)", "cast(x as boolean)"]

    _check(spark, tmp_path / "doubles", _schema(x="float", y="float"), values, texts)


def test_functions_of_decimals(spark: SparkSession, tmp_path: Path):
    dice = random.Random(8)

    def number() -> Decimal:
        digits = dice.randrange(1, 39)
        scale = dice.randrange(max(0, digits - 20), min(18, digits) + 1)
        return Decimal(dice.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale)

    given = [[number() for _ in range(4_000)] for _ in range(2)]
    values = {
        name: pa.array(column, pa.decimal128(38, 18))
        for name, column in zip("de", given, strict=True)
    }
    small, tiny = "cast(d as decimal(20,5))", "cast(e as decimal(10,8))"
    texts = [
        f"{left} {sign} {right}"
        for sign in "+-*/%"
        for left in ("d", small)
        for right in ("e", tiny)
    ]
    texts += [
        "-d",
        "abs(d)",
        f"-{small}",
        f"abs({tiny})",
        "d < e",
        "d * 2",
        "d / 3",
        "1 / d",
        "d % 7",
    ]
    texts += [f"round(d, {digits})" for digits in (-3, 0, 1, 17)]
    texts += ["cast(d as double)", "cast(d as bigint)", "cast(d as int)", "cast(d as string)"]
    texts += ["ceil(d)", "floor(d)", f"{small} > {tiny}", "cast(d as decimal(38,0)) > e"]

    _check(spark, tmp_path / "decimals", _schema(d="decimal", e="decimal"), values, texts)


def test_functions_of_texts(spark: SparkSession, tmp_path: Path):
    dice = random.Random(9)
    alphabets = [
        "0123456789",
        "+-.eE0123456789 dfxXpPnNaAiI",
        f"ab%_\\.{BETWEEN}",
        "ΑΣσς.' \u0345aİ",
    ]
    alphabets += [
        "0123456789- T:+",
        "truefalsynoTRUEFALSYNO10 ",
        "aé😀\ud7ff\ue000\uffff\U00010000 ",
    ]

    def text() -> str:
        alphabet = dice.choice(alphabets)
        return "".join(dice.choice(alphabet) for _ in range(dice.randrange(12)))

    known = ["2147483647", "-2147483648", "9223372036854775807", "9223372036854775808", "infinity"]
    given = [[text() for _ in range(6_000)] + known * 2 for _ in range(2)]
    values = {name: pa.array(column, pa.string()) for name, column in zip("st", given, strict=True)}
    texts = [f"cast(s as {kind})" for kind in ("int", "bigint", "double", "boolean", "date")]
    texts += [
        "lower(s)",
        "upper(s)",
        "trim(s)",
        "s < t",
        "s || t",
        "contains(s, t)",
        "instr(s, 'b')",
    ]
    texts += [
        "substring(s, -3, 2)",
        "substring(s, 0, 2)",
        "substring(s, 2)",
        "split_part(s, 'a', 2)",
    ]
    texts += ["replace(s, 'a', t)", "length(s)", "startswith(s, 'a')", "endswith(s, '%')"]
    texts += [
        f"s like '{pattern}'" for pattern in ("a%b", "%a_", r"%\\%%", "_", "%a%b%", "", "%a%_%b")
    ]
    patterns = [
        "a$",
        "^.$",
        "a.b",
        "[ab]+$",
        "^[^a]*$",
        r"\\s$",
        "(a|b)$",
        "a\\n$",
        r"^\\w*\\W",
        "b{2,3}?$",
        "(a+)+$",
        "(a|b|ab)*$",
        "a.*b.*$",
        "[ab]+[^a]*$",
    ]
    texts += [f"s rlike '{pattern}'" for pattern in patterns]

    _check(spark, tmp_path / "texts", _schema(s="text", t="text"), values, texts)
