"""Names that Penstock gives and checks: of computed fields, and of the types of results."""

__all__ = ["FIELD_NAME_HINT", "field_name_problem", "is_field_name", "type_name"]

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


def type_name(name: str) -> str:
    """Return the name of the type of a stream's or table's records: ``by_minute``, ``ByMinute``."""
    words = name.replace("-", "_").replace(".", "_").split("_")
    return "".join(word.capitalize() for word in words)
