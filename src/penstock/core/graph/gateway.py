"""A gateway, as a value: one door over HTTP for records in and questions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePath
from typing import Any, Literal

from penstock.core.graph.data import Data, Stream, Table
from penstock.core.graph.parts import Part, Service
from penstock.core.graph.questions import Questions
from penstock.core.grid.livequeries import LiveQueries
from penstock.core.topic import TopicSpec
from penstock.errors import Place

__all__ = ["REMEMBERS", "REQUEST_SLOTS", "Gateway"]

REMEMBERS = timedelta(hours=24)
"""How long a request with an idempotency key is remembered."""
REQUEST_SLOTS = 8
"""The partitions of the remembered requests: so many of them are written at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Part):
    """Takes records and questions over HTTP, and answers for tables and the states of services."""

    name: str
    takes: tuple[Stream[Any], ...] = ()
    """The streams it takes records for."""
    shows: tuple[Table[Any] | Service, ...] = ()
    """The tables it answers for, and the services whose states it answers for."""
    offers: tuple[Questions[Any, Any], ...] = ()
    """The questions that callers may ask."""
    live: tuple[LiveQueries, ...] = ()
    """The live queries that its clients may follow."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Roles to the names of what they may use; without any, every caller may use everything."""
    remembers: timedelta = REMEMBERS
    webhooks: tuple[str, ...] = ()
    """What the URLs begin with to which answers may be sent."""
    pages: str = ""
    """The directory of the pages that it serves, as declared; empty: none."""
    place: Place | None = field(default=None, compare=False, repr=False)
    kind: Literal["gateway"] = field(default="gateway", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        """Return the tables it shows, the answers to its questions, the news of live queries."""
        return (
            *self.tables,
            *(each.answers for each in self.offers),
            *(each.news for each in self.live),
        )

    @property
    def outputs(self) -> tuple[Data, ...]:
        """Return the streams it takes records for, and those on which it asks."""
        return (
            *self.takes,
            *(each.stream for each in self.offers),
            *(each.asked for each in self.live),
        )

    @property
    def feedback(self) -> tuple[str, ...]:
        """Return all it writes: none of that comes from what it reads, so there is no cycle."""
        return tuple(data.name for data in self.outputs) if self.inputs or self.shows else ()

    @property
    def from_outside(self) -> bool:
        """Return True: its records come from callers."""
        return True

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Return the tables among what it shows."""
        return tuple(each for each in self.shows if isinstance(each, Table))

    @property
    def services(self) -> tuple[Service, ...]:
        """Return the services among what it shows."""
        return tuple(each for each in self.shows if isinstance(each, Service))

    @property
    def pages_path(self) -> PurePath | None:
        """Return the directory of its pages, which lies beside the file that declares it."""
        if not self.pages:
            return None
        return PurePath(self.place.file).parent / self.pages if self.place else PurePath(self.pages)

    @property
    def summary(self) -> str:
        """What it is: ``gateway, takes lines, shows counts, state of count``."""
        parts: list[str] = [self.kind]
        for word, names in (
            ("takes", [data.name for data in self.takes]),
            ("shows", [data.name for data in self.tables]),
            ("state of", [service.name for service in self.services]),
            ("offers", [questions.name for questions in self.offers]),
            ("live queries of", [live.name for live in self.live]),
        ):
            if names:
                parts.append(f"{word} {' and '.join(names)}")
        if self.pages:
            parts.append(f"pages of {self.pages}")
        return ", ".join(parts)

    def may(self, role: str, name: str) -> bool:
        """Return whether a role may use something."""
        return name in self.roles.get(role, ())

    def requests(self, app: str) -> TopicSpec:
        """Return the topic that remembers the requests with an idempotency key."""
        return TopicSpec(
            name=f"{app}.{self.name}.requests", partitions=REQUEST_SLOTS, retention=self.remembers
        )

    def own_topics(self, app: str) -> Mapping[str, TopicSpec]:
        """Return its remembered requests, where it takes records or questions."""
        return {"requests": self.requests(app)} if self.takes or self.offers else {}
