"""The one rule for names of computed fields: of selections, windows, joins, patterns and groups."""

__all__ = ["FIELD_NAME_HINT", "field_name_problem", "is_field_name"]

_OWN = "__"
"""Python's own names begin so."""
FIELD_NAME_HINT = 'letters, digits and "_", no digit first, not "__": "order_id", for example'


def is_field_name(given: object) -> bool:
    """Return whether a record can have a field of this name.

    >>> [is_field_name(name) for name in ("order_id", "class", "1a", "a.b", "__x", 7)]
    [True, True, False, False, False, False]
    """
    return isinstance(given, str) and given.isidentifier() and not given.startswith(_OWN)


def field_name_problem(given: object) -> str | None:
    """Return why a field cannot have this name, None if it can."""
    return None if is_field_name(given) else f"{given!r} is not a name for a field"
