"""What the user's code raised: whether it is to blame, and what to say of it."""

import threading
from asyncio import CancelledError
from pathlib import PurePath
from traceback import extract_tb

from penstock.core.place import is_penstocks

__all__ = ["TookTooLongError", "describe_error", "is_users", "raised"]

_RAISED = (Exception, SystemExit, CancelledError, GeneratorExit)


class TookTooLongError(TimeoutError):
    """A call was given up after its timeout; the text says after which."""


def is_users(error: BaseException) -> bool:
    """Return whether the user's code is to blame for what went through it: it is one record's end.

    That is so whatever it raises: to end the process is not its business. But in the main thread an
    interrupt may come from the keyboard, and a test's own end from its framework: those go through.
    """
    main = threading.current_thread() is threading.main_thread()
    return isinstance(error, _RAISED) or not main


def describe_error(error: BaseException) -> str:
    """Return an exception as words: its type, its text, and the line it came from.

    One that no line of the user's code raised is about what that code gave.
    """
    if isinstance(error, TookTooLongError):
        return str(error)
    return raised(error) if _place(error) else f"gave what cannot be used: {error}"


def raised(error: BaseException) -> str:
    """Return that an exception was raised: its type, its text, and the user's line, if known."""
    try:
        text = f"raised {type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - even the text of a user's exception is the user's code
        text = f"raised {type(error).__name__}"
    place = _place(error)
    return f"{text} ({place})" if place else text


def _place(error: BaseException) -> str:
    frames = extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not is_penstocks(frame.filename)]
    return f"{PurePath(outside[-1].filename).name}:{outside[-1].lineno}" if outside else ""
