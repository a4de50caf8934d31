"""Calls that share an allowance of time, whatever they do with it.

Spark can cancel a job; nothing can cancel what it computes while it parses or plans. So such calls
run in a separate thread, and the caller stops waiting when the time is used up.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["Allowance", "OverdueError", "allowance"]

T = TypeVar("T")


class OverdueError(Exception):
    """The time is used up; the call may still be under way."""


class Allowance:
    """One thread for calls, one after the other, and the time that they may take together."""

    def __init__(self, span: timedelta) -> None:
        self.span = span
        self._left = span.total_seconds()
        self._open = True
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        # A daemon: a call that never ends must not keep the process.
        self._thread = threading.Thread(target=self._work, name="allowance", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], T]) -> T:
        """Return what a call returns, and raise what it raises; OverdueError: the time is up."""
        if not self._open:
            raise RuntimeError("the allowance of time has ended")
        result: Future[T] = Future()
        began = time.monotonic()
        self._calls.put((work, result))
        try:
            return result.result(max(0.0, self._left))
        except TimeoutError:
            if result.done():  # the call's own
                raise
            raise OverdueError from None
        finally:
            self._left -= time.monotonic() - began

    def close(self, *, patience: float) -> bool:
        """Take no more calls; return whether the last one ended within so many seconds."""
        self._open = False
        self._calls.put(None)
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            work, result = call
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
                result.set_exception(error)


@contextmanager
def allowance(
    span: timedelta, *, patience: float, cancel: Callable[[], None]
) -> Iterator[Allowance]:
    """Give an allowance; a call that is under way when the block ends is cancelled."""
    found = Allowance(span)
    try:
        yield found
    except BaseException:
        cancel()
        raise
    finally:
        found.close(patience=patience)
