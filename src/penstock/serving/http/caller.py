"""Somebody who calls a gateway."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ANYBODY", "UNKNOWN", "Caller"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who may call; ``roles`` None: no tokens are asked for, and everything is allowed."""

    name: str
    roles: frozenset[str] | None = None
    claims: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What is known of them beside their roles; rules over rows use it."""
    expires_at: float | None = None
    """The second since 1970 from which on the token is not valid; None: it does not run out."""


ANYBODY = Caller("anybody")
"""Who calls where no tokens are asked for."""
UNKNOWN = Caller("unknown", frozenset())
"""Who calls without a token for what needs none."""
