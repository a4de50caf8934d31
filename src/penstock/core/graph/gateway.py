"""A gateway, as a value: a door over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from penstock.core.graph.data import Data, Stream
from penstock.core.graph.parts import Part
from penstock.core.topic import TopicSpec
from penstock.errors import Place

__all__ = ["REMEMBERS", "REQUEST_SLOTS", "Gateway"]

REMEMBERS = timedelta(hours=24)
"""How long a request with an idempotency key is remembered."""
REQUEST_SLOTS = 8
"""The partitions of the remembered requests: so many of them are written at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Part):
    """Takes records for streams over HTTP."""

    name: str
    takes: tuple[Stream[Any], ...] = ()
    """The streams it takes records for."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Roles to the names of what they may use; without any, every caller may use everything."""
    remembers: timedelta = REMEMBERS
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["gateway"] = field(default="gateway", init=False)

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return the streams it takes records for."""
        return self.takes

    @property
    def from_outside(self) -> bool:
        """Return True: its records come from callers."""
        return True

    @property
    def summary(self) -> str:
        """What it is: ``gateway, takes readings``."""
        names = [data.name for data in self.takes]
        return f"{self.kind}, takes {' and '.join(names)}" if names else self.kind

    def may(self, role: str, name: str) -> bool:
        """Return whether a role may use something."""
        return name in self.roles.get(role, ())

    def requests(self, app: str) -> TopicSpec:
        """Return the topic that remembers the requests with an idempotency key."""
        return TopicSpec(
            name=f"{app}.{self.name}.requests", partitions=REQUEST_SLOTS, retention=self.remembers
        )

    def own_topics(self, app: str) -> Mapping[str, TopicSpec]:
        """Return its remembered requests, where it takes records."""
        return {"requests": self.requests(app)} if self.takes else {}
