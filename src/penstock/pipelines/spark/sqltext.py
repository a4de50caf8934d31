"""Pieces of Spark SQL as text, for expressions too large to build call by call.

Each call on a PySpark column is a round trip to the JVM, or several: the gate of a plain record
would take seconds to build. As text it is one. Whatever comes from a declaration goes through
:func:`literal` or :func:`name`.
"""

from typing import TypeAlias

__all__ = ["Sql", "all_of", "any_of", "coalesce", "contains", "literal", "matches", "name", "when"]

Sql: TypeAlias = str


def literal(value: str | float | bool | None) -> Sql:
    """Return a value as a literal that means exactly this value.

    A text with anything but plain letters in it travels as hexadecimal digits: Spark would read
    escapes in it, and substitute ``${...}`` by the session's settings.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return f"bigint('{value}')"
        case float():
            return f"double('{value!r}')"
        case str() if value.isascii() and value.isalnum():
            return f"'{value}'"
        case str():
            return f"cast(x'{value.encode().hex()}' as string)"


def name(text: str) -> Sql:
    """Return a name, quoted."""
    escaped = text.replace("`", "``")
    return f"`{escaped}`"


def all_of(*conditions: Sql) -> Sql:
    """Return whether all conditions hold; the later are not looked at once one does not."""
    return _joined(" and ", [one for one in conditions if one != "true"], empty="true")


def any_of(*conditions: Sql) -> Sql:
    """Return whether any condition holds; the later are not looked at once one does."""
    return _joined(" or ", list(conditions), empty="false")


def when(condition: Sql, value: Sql, otherwise: Sql = "null") -> Sql:
    """Return one value or the other; only the one that is wanted is computed."""
    return f"case when {condition} then {value} else {otherwise} end"


def coalesce(value: Sql, otherwise: Sql) -> Sql:
    """Return a value, or another one in place of null."""
    return f"coalesce({value}, {otherwise})"


def contains(text: Sql, part: str) -> Sql:
    """Return whether a text has a part somewhere."""
    return f"contains({text}, {literal(part)})"


def matches(text: Sql, pattern: str) -> Sql:
    """Return whether a regular expression is found in a text."""
    return f"rlike({text}, {literal(pattern)})"


def _joined(word: str, conditions: list[Sql], *, empty: Sql) -> Sql:
    if len(conditions) < 2:  # noqa: PLR2004 - nothing to join
        return conditions[0] if conditions else empty
    return word.join(f"({condition})" for condition in conditions)
