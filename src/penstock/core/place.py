"""Where in the user's source a definition stands, and which name they may have meant."""

import difflib
import sys
from collections.abc import Iterable
from pathlib import PurePath
from types import FrameType

from penstock.errors import Place

__all__ = ["caller", "declare_first", "did_you_mean", "is_penstocks", "label", "place_of"]

# With its last separator: beside the package there may be others whose names begin like it. Not
# resolved, as the names in frames are not.
_PACKAGE = str(PurePath(__file__).parent.parent / "_").removesuffix("_")
_SUGGESTION_LIKENESS = 0.6
_LONGEST_LABEL = 60
"""Characters of what has no name."""


def is_penstocks(file: str) -> bool:
    """Return whether a source file, by the name that frames have of it, is Penstock's own."""
    return file.startswith(_PACKAGE)


def caller() -> Place | None:
    """Return the nearest line on the stack that is not Penstock's own."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller
    while frame is not None and is_penstocks(frame.f_code.co_filename):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno) if frame else None


def place_of(definition: object) -> Place | None:
    """Return where a function was defined, or None for what has no source."""
    code = getattr(definition, "__code__", None)
    return Place(code.co_filename, code.co_firstlineno) if code else None


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
