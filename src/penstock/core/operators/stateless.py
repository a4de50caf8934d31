"""A machine that remembers nothing: each arrival gives at once all that it ever will."""

from penstock.core.operators.operator import Given
from penstock.core.panes.times import BEGINNING

__all__ = ["StatelessMachine"]


class StatelessMachine:
    """Has neither time nor state; whoever derives from it writes ``take``."""

    watermark = BEGINNING
    newest: int | None = None
    pending = False

    def more(self, limit: int | None = None) -> Given:  # noqa: ARG002 - nothing is due later
        """Return nothing."""
        return Given()

    def advance(
        self,
        *,
        clock: int,  # noqa: ARG002 - time means nothing to it
        told: int | None = None,  # noqa: ARG002
        limit: int | None = None,  # noqa: ARG002
    ) -> Given:
        """Return nothing."""
        return Given()

    def finish(self) -> Given:
        """Return nothing."""
        return Given()

    def wakes(self) -> int | None:
        """Return None: nothing waits."""
        return None

    def flush(self) -> None:
        """Do nothing."""

    def trim(self, most: int) -> None:
        """Do nothing."""
