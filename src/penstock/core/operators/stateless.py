"""A machine that remembers nothing: each arrival gives at once all that it ever will."""

from penstock.core.operators.operator import MachineOutput
from penstock.core.panes.times import BEGINNING

__all__ = ["StatelessMachine"]


class StatelessMachine:
    """Has neither time nor state; whoever derives from it writes ``take``."""

    watermark = BEGINNING
    newest: int | None = None
    pending = False

    def more(self, limit: int | None = None) -> MachineOutput:  # noqa: ARG002 - nothing is due later
        """Return nothing."""
        return MachineOutput()

    def advance(
        self,
        *,
        clock: int,  # noqa: ARG002 - time means nothing to it
        event_time: int | None = None,  # noqa: ARG002
        limit: int | None = None,  # noqa: ARG002
    ) -> MachineOutput:
        """Return nothing."""
        return MachineOutput()

    def finish(self) -> MachineOutput:
        """Return nothing."""
        return MachineOutput()

    def wakes(self) -> int | None:
        """Return None: nothing waits."""
        return None

    def flush(self) -> None:
        """Do nothing."""

    def trim(self, most: int) -> None:
        """Do nothing."""
