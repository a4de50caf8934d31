"""Ending on Ctrl-C and SIGTERM: the first asks for a clean end, the second ends at once."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["INTERRUPTED", "Stop", "end_now", "stop_on_signals"]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


class Stop:
    """Whether the end was asked for, and by which signal."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal: int | None = None

    @property
    def exit_code(self) -> int:
        """Return 130 after Ctrl-C, else 0: to be stopped is no failure."""
        return INTERRUPTED if self.signal == signal.SIGINT else 0


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn SIGINT and SIGTERM into a set event; a second one raises KeyboardInterrupt.

    For the main thread. The handlers that were there come back at the end.
    """
    stop = Stop()

    def ask(number: int, _frame: FrameType | None) -> None:
        if stop.event.is_set():
            raise KeyboardInterrupt
        stop.signal = number
        stop.event.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_now(code: int = INTERRUPTED) -> NoReturn:
    """End the process although threads are still at work: the end was asked for twice, or overdue.

    Python would wait for them, and what they wait for may never come.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
