"""Format log records and uncaught exceptions: printable, without secrets."""

import logging
import threading
from collections.abc import Callable

from penstock.core.printable import printable_lines
from penstock.core.settings.masking import without_secrets

__all__ = ["PrintableFormatter", "tell_of_threads"]


class PrintableFormatter(logging.Formatter):
    """Writes a message in one line, and what follows of a traceback moved in."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        first, *further = printable_lines(without_secrets(super().format(record)))
        return "\n".join([first, *(f"  {line}" for line in further)])


def tell_of_threads(trace: Callable[[BaseException], None]) -> None:
    """Show through ``trace`` what ends a thread, and messages that nobody else takes printable."""
    if isinstance(logging.lastResort, logging.Handler):
        logging.lastResort.setFormatter(PrintableFormatter("%(message)s"))

    def tell(found: threading.ExceptHookArgs) -> None:
        if found.exc_value is not None:
            trace(found.exc_value)

    threading.excepthook = tell
