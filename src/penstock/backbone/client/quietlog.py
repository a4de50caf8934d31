"""A log that limits repetitions: the Kafka client repeats itself many times a second."""

import logging
import re
import threading
import time
from collections.abc import Callable

__all__ = ["Seldom", "same_text"]

INTERVAL_SECONDS = 30.0
"""The same text is written no more often."""
MAX_TEXTS = 200
"""The number of texts that are remembered; the oldest is forgotten first."""

_VARYING = re.compile(r"\d+ms|(?<=#)(?:producer|consumer)-\d+|\d+ identical error\(s\)")


def same_text(text: str) -> str:
    """Return a text of the client without what differs each time: how long, which client.

    >>> same_text("[penstock#producer-7] Connection refused (after 3ms in state CONNECT)")
    '[penstock#*] Connection refused (after * in state CONNECT)'
    """
    return _VARYING.sub("*", text)


class Seldom(logging.Filter):
    """Lets each text through once, then at most every half a minute, with how many were left out.

    Any thread may log.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written."""
        text = record.getMessage()
        key = same_text(text)
        with self._lock:
            due_at, left_out = self._texts.pop(key, (0.0, 0))
            written = (now := self._clock()) >= due_at
            self._texts[key] = (now + INTERVAL_SECONDS, 0) if written else (due_at, left_out + 1)
            if len(self._texts) > MAX_TEXTS:
                del self._texts[next(iter(self._texts))]
        if written and left_out:
            record.msg, record.args = f"{text} ({left_out} more like it since then)", ()
        return written
