"""What a query is refused with: what is wrong, at which operator, and where."""

from penstock.errors import DataError

__all__ = ["refuse"]


def refuse(text: str, *, operator: str, path: str, hint: str = "") -> DataError:
    """Return the error of a query that cannot be taken; ``path`` is empty at the top."""
    where = f" at {path!r}" if path else ""
    return DataError(f"{operator}{where}: {text}", code="query.refused", hint=hint)
