"""Words for what went wrong with a record: where it stands, and what the user's code raised."""

import logging
import threading
from asyncio import CancelledError
from pathlib import PurePath
from traceback import extract_tb

from penstock.backbone.client.logrecord import RawRecord
from penstock.core.place import is_penstocks
from penstock.core.records.deadletter import Coordinates

__all__ = ["LOG", "TookTooLongError", "coordinates_of", "describe_error", "is_users"]

_RAISED = (Exception, SystemExit, CancelledError, GeneratorExit)

LOG = logging.getLogger("penstock.services")
LOG.addHandler(logging.NullHandler())


class TookTooLongError(TimeoutError):
    """A call was given up after its timeout; the text says after which."""


def is_users(error: BaseException) -> bool:
    """Return whether the user's code is to blame for what went through it: it is one record's end.

    That is so whatever it raises: to end the process is not its business. But in the main thread an
    interrupt may come from the keyboard, and a test's own end from its framework: those go through.
    """
    main = threading.current_thread() is threading.main_thread()
    return isinstance(error, _RAISED) or not main


def coordinates_of(raw: RawRecord) -> Coordinates:
    """Return where a record stands on the log."""
    return Coordinates(raw.topic() or "", raw.partition() or 0, raw.offset() or 0)


def describe_error(error: BaseException) -> str:
    """Return an exception as words: its type, its text, and the line it came from."""
    if isinstance(error, TookTooLongError):
        return str(error)
    try:
        text = f"raised {type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - even the text of a user's exception is the user's code
        text = f"raised {type(error).__name__}"
    frames = extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not is_penstocks(frame.filename)]
    if not outside:
        return f"gave what cannot be used: {error}"
    return f"{text} ({PurePath(outside[-1].filename).name}:{outside[-1].lineno})"
