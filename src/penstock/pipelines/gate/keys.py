"""The key of a record on the log, as ``core.records.codec.key_encoder`` makes it."""

from collections.abc import Mapping

from penstock.core.records.schema import Choice, FieldType, Scalar, Schema
from penstock.pipelines.gate.values import read_scalar
from penstock.pipelines.spark.schema import holds_milliseconds
from penstock.pipelines.spark.sqltext import Sql, literal, when

__all__ = ["instant_text", "key_of"]

_INSTANT = Scalar("instant")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_CONTROLS = {chr(code): f"\\u{code:04x}" for code in range(0x20)} | _SHORT
_ZONE = r"(Z|[+-][0-9]{2}:?[0-9]{2})$"


def key_of(
    schema: Schema, values: Mapping[str, Sql], texts: Mapping[str, Sql] | None = None
) -> Sql | None:
    """Return the key's bytes for the values of the key fields; None where there is no key.

    ``texts`` may give instants as they stood in a record: their key keeps the zone they had.
    """
    if not schema.key:
        return None
    parts = [_key_text(schema, name, values, texts or {}) for name in schema.key]
    if len(parts) == 1:
        return f"cast({parts[0][0]} as binary)"
    listed = ", ".join(_quoted(text) if _is_text(kind) else text for text, kind in parts)
    return f"cast(concat('[', concat_ws(',', {listed}), ']') as binary)"


def _key_text(
    schema: Schema, name: str, values: Mapping[str, Sql], texts: Mapping[str, Sql]
) -> tuple[Sql, FieldType]:
    field = schema.field(name)
    kind = field.type if field else Scalar("text")
    if kind == _INSTANT:
        return (_zoned_text(texts[name]) if name in texts else instant_text(values[name])), kind
    value = values[name]
    if holds_milliseconds(schema, name):
        value = f"unix_millis({value})"
    return f"cast({value} as string)", kind


def instant_text(instant: Sql) -> Sql:
    """Return a timestamp as RFC 3339 in UTC, with six digits of a second or none."""
    return f"concat({_local_text(instant)}, 'Z')"


def _is_text(kind: FieldType) -> bool:
    return isinstance(kind, Choice) or (
        isinstance(kind, Scalar) and kind.name in {"text", "instant", "date"}
    )


def _local_text(instant: Sql) -> Sql:
    # Spark's own text of a timestamp is "2024-01-01 00:00:00.5", in the session's zone: UTC.
    text = f"replace(cast({instant} as string), ' ', 'T')"
    return when(f"length({text}) = 19", text, f"rpad({text}, 26, '0')")


def _zoned_text(text: Sql) -> Sql:
    zone = f"regexp_extract(upper({text}), {literal(_ZONE)}, 1)"
    local = f"concat(left({text}, length({text}) - length({zone})), 'Z')"
    wall_clock = _local_text(read_scalar(local, _INSTANT).value)
    at_utc = f"{zone} in ('Z', '+00:00', '-00:00', '+0000', '-0000')"
    offset = f"concat(left({zone}, 3), ':', right({zone}, 2))"
    return f"concat({wall_clock}, {when(at_utc, literal('Z'), offset)})"


def _quoted(text: Sql) -> Sql:
    """Return the JSON of a text, escaped as the codec escapes it."""
    plain = _replaced(text, {"\\": "\\\\", '"': '\\"'})
    body = when(f"rlike({text}, '[\\\\x00-\\\\x1f]')", _replaced(plain, _CONTROLS), plain)
    return f"concat('\"', {body}, '\"')"


def _replaced(text: Sql, changes: Mapping[str, str]) -> Sql:
    for old, new in changes.items():
        text = f"replace({text}, {literal(old)}, {literal(new)})"
    return text
