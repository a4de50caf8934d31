"""How fast expressions are as compiled Python functions, on one core.

    python bench/expressions.py [--json FILE] [--seconds 0.5]

The simple predicate must reach a million evaluations a second; the exit code says whether it does.
"""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[1] / "scripts" / "own_python.py"))

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from penstock import record
from penstock.core.expression import compile_predicate, compile_row, parse
from penstock.core.records.record import record_type

REQUIRED = 1_000_000
RECORDS = 1_000
SIMPLE = "celsius > 30 and device <> 'x'"
CASES = {
    SIMPLE: "the simple predicate",
    "level > 3 and note like 'a%'": "fields that may be null",
    "device in ('d1', 'd2', 'd3')": "a list",
    "celsius * 1.8 + 32": "arithmetic of doubles",
    "count * 2 + 1": "whole numbers, checked for overflow",
    "case when celsius > 30 then 'hot' when celsius < 5 then 'cold' else 'mild' end": "a choice",
    "coalesce(level, count) between 1 and 10": "a default and a range",
    "device rlike '^d[0-9]+$'": "a regular expression",
    "date_trunc('minute', at)": "an instant",
    "1 / (1 + exp(-celsius))": "a scoring rule",
    "price * 1.19": "decimals",
}


@record()
class Reading:
    device: str
    at: datetime
    celsius: float
    count: int
    price: Decimal
    level: int | None
    note: str | None


def readings() -> list[Reading]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Reading(
            device=f"d{number % 50}",
            at=start + timedelta(seconds=number),
            celsius=number % 60 - 10.5,
            count=number,
            price=Decimal(number) / 4,
            level=number % 9 if number % 3 else None,
            note="abc" if number % 4 else None,
        )
        for number in range(RECORDS)
    ]


def rate(function: Callable[[Any], Any], records: list[Reading], seconds: float) -> float:
    """Return the best rate of several rounds over the records."""
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        for each in records:
            function(each)
        best = max(best, len(records) / (time.perf_counter() - began))
    return best


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path)
    options.add_argument("--seconds", type=float, default=0.5)
    given = options.parse_args()
    found = record_type(Reading)
    assert found is not None  # noqa: S101
    records, rates = readings(), {}
    print(f"{'evaluations/s':>14}  expression")
    for text, what in CASES.items():
        expression = parse(text, found.schema)
        boolean = expression.type.kind == "boolean"
        function = compile_predicate(expression) if boolean else compile_row(expression)
        rates[text] = round(rate(function, records, given.seconds))
        print(f"{rates[text]:>14,}  {text}   ({what})")
    if given.json:
        result = {"required": REQUIRED, "evaluations_per_second": rates}
        given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if rates[SIMPLE] >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
