"""Words for messages: what something is called, and what its author may have meant."""

import difflib
from collections.abc import Iterable

__all__ = ["declare_first", "did_you_mean", "label"]

_SUGGESTION_LIKENESS = 0.6
_LONGEST_LABEL = 60
"""Characters of what has no name."""


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known name, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=_SUGGESTION_LIKENESS)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are: {', '.join(names)}" if names else "none is declared"


def label(given: object) -> str:
    """Return what to call something in a message: its name, or briefly what it is.

    >>> label("readings"), label(None)
    ("'readings'", 'None')
    """
    name, kind = getattr(given, "name", None), getattr(given, "kind", None)
    if isinstance(name, str):
        return repr(name)
    if isinstance(kind, str):
        return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"
    whole = repr(given)
    return whole if len(whole) <= _LONGEST_LABEL else f"a {type(given).__name__}"


def declare_first(given: object) -> str | None:
    """Return the hint for an operator that stands where a stream must; None for anything else."""
    if not callable(getattr(given, "plan", None)):
        return None
    return "declare it first, and pass what that returns: app.stream(name, ..., on=...)"
