"""The key of a record on the log, as ``core.records.codec.key_encoder`` makes it."""

from collections.abc import Mapping

from penstock.core.records.schema import Choice, FieldType, Scalar, Schema
from penstock.pipelines.spark.schema import holds_milliseconds
from penstock.pipelines.spark.sqltext import Sql, literal, when

__all__ = ["instant_text", "key_of"]

_INSTANT = Scalar("instant")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_CONTROLS = {chr(code): f"\\u{code:04x}" for code in range(0x20)} | _SHORT


def key_of(schema: Schema, values: Mapping[str, Sql]) -> Sql | None:
    """Return the key's bytes for the values of the key fields; None where there is no key."""
    if not schema.key:
        return None
    parts = [_key_text(schema, name, values) for name in schema.key]
    if len(parts) == 1:
        return f"cast({parts[0][0]} as binary)"
    listed = ", ".join(_quoted(text) if _is_text(kind) else text for text, kind in parts)
    return f"cast(concat('[', concat_ws(',', {listed}), ']') as binary)"


def _key_text(schema: Schema, name: str, values: Mapping[str, Sql]) -> tuple[Sql, FieldType]:
    field = schema.field(name)
    kind = field.type if field else Scalar("text")
    if kind == _INSTANT:
        return instant_text(values[name]), kind
    value = values[name]
    if holds_milliseconds(schema, name):
        value = f"unix_millis({value})"
    return f"cast({value} as string)", kind


def instant_text(instant: Sql) -> Sql:
    """Return a timestamp as RFC 3339 in UTC, with six digits of a second or none."""
    # Spark's own text of a timestamp is "2024-01-01 00:00:00.5", in the session's zone: UTC.
    text = f"replace(cast({instant} as string), ' ', 'T')"
    local = when(f"length({text}) = 19", text, f"rpad({text}, 26, '0')")
    return f"concat({local}, 'Z')"


def _is_text(kind: FieldType) -> bool:
    return isinstance(kind, Choice) or (
        isinstance(kind, Scalar) and kind.name in {"text", "instant", "date"}
    )


def _quoted(text: Sql) -> Sql:
    """Return the JSON of a text, escaped as the codec escapes it."""
    plain = _replaced(text, {"\\": "\\\\", '"': '\\"'})
    body = when(f"rlike({text}, '[\\\\x00-\\\\x1f]')", _replaced(plain, _CONTROLS), plain)
    return f"concat('\"', {body}, '\"')"


def _replaced(text: Sql, changes: Mapping[str, str]) -> Sql:
    for old, new in changes.items():
        text = f"replace({text}, {literal(old)}, {literal(new)})"
    return text
