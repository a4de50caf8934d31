"""A room of a gateway: what it offers of one kind, such as records in, or look-ups.

The engine puts a gateway together from its rooms and knows nothing else of them: which paths lead
to a room, what the OpenAPI document says of them, and whether the room is well.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from starlette.routing import BaseRoute

from penstock.backbone.site import Site
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import ServingSettings
from penstock.serving.fixture import Fixture
from penstock.serving.http.conversation import ConversationLimits, Converse, socket_routes
from penstock.serving.meter import Meter
from penstock.serving.tables.shown import Shown
from penstock.serving.writing.writer import Writer

__all__ = ["Building", "OpenRoom", "Room"]


class Room(Fixture):
    """What a gateway offers of one kind; a class of its own in a folder of its own.

    It is made when the gateway begins, in its event loop, and lives as long as the gateway.
    """

    routes: Sequence[BaseRoute] = ()
    """Which paths lead here."""
    paths: Mapping[str, Any] = {}
    """The same paths, as the OpenAPI document has them."""
    schemas: Mapping[str, Any] = {}
    """The schemas that those name."""

    def is_public(self, path: str) -> bool:
        """Return whether a path needs no token: everybody may know what it tells."""
        del path
        return False


class Building:
    """What the rooms of one run of a gateway have in common; for its event loop.

    ``leaving`` is set when the gateway is to stop: what goes on for long ends then.
    """

    def __init__(self, graph: Graph, gateway: Gateway, site: Site, *, meter: Meter) -> None:
        self.graph = graph
        self.gateway = gateway
        self.site = site
        self.settings: ServingSettings = site.settings.serving
        self.meter = meter
        self.leaving = asyncio.Event()
        self.fixtures: list[Fixture] = []
        """What was opened because a room asked for it."""

    def socket_routes(self, path: str, converse: Converse) -> list[BaseRoute]:
        """Return the routes of a path that is a WebSocket, with the limits of the settings.

        ``converse`` holds each conversation. Whoever calls has passed the guard by then; what they
        may use is for the room to say, before it accepts.
        """
        limits = ConversationLimits(
            unread_bytes=self.settings.unread_bytes,
            silence_seconds=self.settings.silence_timeout.total_seconds(),
        )
        return socket_routes(path, converse, limits=limits)

    @cached_property
    def writer(self) -> Writer:
        """The way onto the log."""
        writer = Writer(self.graph.app, self.gateway, self.site)
        self.fixtures.append(writer)
        return writer

    @cached_property
    def shown(self) -> Shown:
        """The tables and the owners of the states that the gateway shows."""
        shown = Shown(self.graph.app, self.gateway, self.site)
        self.fixtures.append(shown)
        return shown


OpenRoom = Callable[[Building], Room | None]
"""Opens a room; None: this gateway has no use for it."""
