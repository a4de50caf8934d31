"""A verdict on the health of a run, for whoever watches it."""

import msgspec

from penstock.core.status.status import RunStatus

__all__ = ["health"]


def health(status: RunStatus) -> bytes:
    """Return as JSON whether everything runs as it should, and where not, why."""
    document = {
        "healthy": status.healthy,
        "parts": [
            {"process": each.process, "part": each.part, "state": each.state, "reason": each.why}
            for each in status.parts
        ],
    }
    return msgspec.json.encode(document)
