"""Whether the log answers: asked from time to time, by a thread of its own."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from penstock.cli.console.log import LogWatcher
from penstock.cli.console.troubles import Away
from penstock.core.units import span_text
from penstock.errors import PenstockError, TransientError

if TYPE_CHECKING:
    from penstock.backbone.client.admin import Admin

__all__ = ["LogContact"]

_EVERY_SECONDS = 1.0
_ANSWER = timedelta(seconds=3)
_PATIENCE_SECONDS = 4.0
"""A log that has not answered for so long is away."""
_KEPT = "what is on it is kept, and all parts go on where they were"
_DOWN = f"wait: its broker is started again by itself. If it stays away: penstock doctor; {_KEPT}"
_HANGS = (
    "see what keeps the machine busy: the process of its broker lives, but does not answer."
    f" If it stays so, kill that process: it is started again by itself; {_KEPT}"
)
_OTHER = f"see its brokers, and the network to them: penstock doctor. Nothing else helps; {_KEPT}"


class LogContact:
    """Asks the cluster once a second while the block runs; ``tell`` hears what changes."""

    def __init__(self, log: LogWatcher, tell: Callable[[str], None]) -> None:
        self._log = log
        self._tell = tell
        self._admin: Admin | None = None
        self._answered_at: float | None = None
        self._why = ""
        self._told = False
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, name="log-contact", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()

    @property
    def answers(self) -> bool:
        """Whether the log has ever answered."""
        return self._answered_at is not None

    def away(self, *, is_down: bool = False) -> Away | None:
        """Return since when the log does not answer; None: it does, or it has never been there.

        ``is_down``: the process of the embedded broker is known to have ended.
        """
        if self._answered_at is None:
            return None
        seconds = time.monotonic() - self._answered_at
        if seconds < _PATIENCE_SECONDS:
            return None
        do = _OTHER if not self._log.is_own else _DOWN if is_down else _HANGS
        return Away(seconds=seconds, why=self._why or "it does not answer", do=do)

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            try:
                self._ask()
            except TransientError as error:
                self._missed(error)
            except PenstockError as error:
                self._admin = None
                self._missed(error)
            else:
                self._answered()

    def _ask(self) -> None:
        from penstock.backbone.client.admin import Admin

        if self._admin is None:
            self._admin = Admin(self._log.connection.within(_ANSWER))
        seconds = _ANSWER.total_seconds()
        described = self._admin.client.describe_cluster(request_timeout=seconds)
        self._admin.answer(described, doing="asking whether the log is there")

    def _missed(self, error: PenstockError) -> None:
        self._why = error.message
        if self.away() is not None and not self._told:
            self._told = True
            self._tell("the log does not answer")

    def _answered(self) -> None:
        now = time.monotonic()
        if self._told and self._answered_at is not None:
            self._tell(f"the log answers again, after {span_text(now - self._answered_at)}")
        self._answered_at, self._told = now, False
