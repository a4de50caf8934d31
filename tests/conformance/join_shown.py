"""Results of the join cases as the cases say them."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from join_form import Declared, Shown

from penstock.core.records.codec import JsonCodec

_DECIMAL = re.compile(r"-?\d+\.\d{18}")
"""How a sum of decimals is written."""


def shown(
    declared: Declared, data: Any, key: bytes | None, value: bytes | None, headers: Any
) -> Shown:
    """Return a result as the case says it."""
    found = {name: each or b"" for name, each in headers or ()}
    if value is None:
        time = found.get("penstock.event-time")
        deleted = None if key is None else json.loads(key)
        ms = None if time is None else int(time) // 1000 - declared.begins
        return Shown(deleted, None, ms)
    codec: JsonCodec[Any] = JsonCodec(data.record)
    codec.decode(value)
    row = json.loads(value, parse_float=float)
    result_key, result_value = declared.show(key, row)
    ms = _ms(row["at"]) if "at" in row else row.get("ms")
    ms = None if ms is None else ms - declared.begins
    return Shown(result_key, result_value, ms, bool(row.get("withdrawn")))


def _ms(at: str) -> int:

    moment = datetime.fromisoformat(at)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def same_value(found: Any, expected: Any) -> bool:
    """Whether two values are equal; decimals are texts."""
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same_value, found, expected))
    number = isinstance(expected, int | float) and not isinstance(expected, bool)
    if isinstance(found, str) and (number or _DECIMAL.fullmatch(found)):
        try:
            return Decimal(found) == Decimal(str(expected))
        except ArithmeticError:
            return False
    return bool(found == expected)
