"""Reads Influx line protocol by the rules that the documentation of InfluxDB states."""

import re
from typing import Any


def split(text: str, at: str, *, quotes: bool) -> list[str]:
    """Split where a character is neither escaped nor, where that counts, within quotes."""
    parts, quoted, n = [""], False, 0
    while n < len(text):
        if text[n] == "\\" and n + 1 < len(text):
            parts[-1] += text[n : n + 2]
            n += 2
            continue
        if quotes and text[n] == '"':
            quoted = not quoted
        if text[n] == at and not quoted:
            parts.append("")
        else:
            parts[-1] += text[n]
        n += 1
    return parts


def unescaped(text: str, letters: str) -> str:
    for each in letters:
        text = text.replace("\\" + each, each)
    return text


def read(text: str) -> tuple[str, dict[str, str], dict[str, Any], int]:
    """Return measurement, tags, fields and nanoseconds of one line."""
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert text.count("\r") == 0
    series = split(text[:-1], " ", quotes=False)[0]
    fields, at = split(text[len(series) + 1 : -1], " ", quotes=True)
    name, *tags = split(series, ",", quotes=False)
    pairs = [split(each, "=", quotes=False) for each in tags]
    values: dict[str, Any] = {}
    for each in split(fields, ",", quotes=True):
        key, value = split(each, "=", quotes=True)
        if value.startswith('"'):
            assert value.endswith('"')
            values[key] = re.sub(r'\\(["\\])', r"\1", value[1:-1])
        elif value in ("true", "false"):
            values[key] = value == "true"
        else:
            values[key] = int(value[:-1]) if value.endswith("i") else float(value)
    return (
        unescaped(name, ", "),
        {unescaped(key, ",= "): unescaped(value, ",= ") for key, value in pairs},
        values,
        int(at),
    )
