"""Where in the user's source a definition stands."""

import sys
from pathlib import PurePath
from types import FrameType

from penstock.errors import Place

__all__ = ["caller", "is_penstocks", "place_of"]

# With its last separator: beside the package there may be others whose names begin like it. Not
# resolved, as the names in frames are not.
_PACKAGE = str(PurePath(__file__).parent.parent / "_").removesuffix("_")


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
