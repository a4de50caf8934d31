"""Runs a gateway: an event loop with the HTTP server, and its rooms."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from penstock.backbone.site import Site
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import ServingSettings
from penstock.core.wiring.lookup import find_part
from penstock.serving.application import make_routes, with_origins
from penstock.serving.describe.openapi import openapi_document
from penstock.serving.fixture import Trouble
from penstock.serving.http.callers import Callers
from penstock.serving.http.guard import Guard
from penstock.serving.http.keys import TokenKeys, TokenRules
from penstock.serving.http.protocol import ConnectionLimits, bounded_protocol
from penstock.serving.http.sockets import SocketLimits, bounded_socket
from penstock.serving.listening import address_of, listen, require_safe
from penstock.serving.live.room import open_live
from penstock.serving.lookups.room import open_lookups
from penstock.serving.meter import Meter
from penstock.serving.pages.room import open_pages
from penstock.serving.questions.room import open_questions
from penstock.serving.records.room import open_records
from penstock.serving.room import Building, OpenRoom, Room
from penstock.serving.sql.room import open_sql

__all__ = ["run_gateway"]

_ROOMS: tuple[OpenRoom, ...] = (
    open_records,
    open_questions,
    open_lookups,
    open_sql,
    open_live,
    open_pages,
)
_LOOK_SECONDS = 0.1
_HEALTH_SECONDS = 1.0
_STOP_SECONDS = 5
"""How long requests under way may take when the gateway is to stop."""
_LEAVING_SECONDS = 3
"""How long a conversation over a WebSocket may take to end then."""
_KEEP_ALIVE_SECONDS = 60


def run_gateway(graph: Graph, name: str, site: Site) -> None:
    """Run a gateway until ``site.stop`` is set; its topics must have been declared.

    ConfigurationError where it cannot listen, or strangers could use it. While Kafka is away it
    goes on, and refuses what needs Kafka.
    """
    gateway = find_part(graph, name, Gateway)
    settings = site.settings.serving
    require_safe(settings)
    callers = Callers(settings.tokens_file, _keys(settings))
    with Meter(gateway.name, site.report, clock=time.time) as meter:
        listening = listen(graph, gateway, settings)
        try:
            meter.tell("listening on", address_of(listening, settings))
            running = _Running(Building(graph, gateway, site, meter=meter), callers)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(running.serve(listening))
        finally:
            listening.close()


def _keys(settings: ServingSettings) -> TokenKeys | None:
    """Return what tells whose JSON Web Tokens are good; None: there are none."""
    if not settings.jwks_file:
        return None
    rules = TokenRules(
        audience=settings.jwt_audience,
        issuer=settings.jwt_issuer,
        roles=settings.jwt_roles,
        leeway=settings.jwt_leeway,
    )
    return TokenKeys(Path(settings.jwks_file), rules)


class _Running:
    """One run of a gateway."""

    def __init__(self, building: Building, callers: Callers) -> None:
        self._building = building
        self._settings: ServingSettings = building.settings
        self._callers = callers
        self._meter = building.meter
        self._rooms: list[Room] = []
        self._ended = False
        self._has_run = False

    async def serve(self, listening: Any) -> None:
        """Serve until the gateway is to stop, then let the requests under way end."""
        opened = [open_room(self._building) for open_room in _ROOMS]
        self._rooms = [room for room in opened if room is not None]
        server = uvicorn.Server(self._config(self._rooms))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch(server))
            await server.serve(sockets=[listening])
            self._ended = True
        for fixture in (*self._rooms, *self._building.fixtures):
            await fixture.close()

    def _config(self, rooms: Sequence[Room]) -> uvicorn.Config:
        settings, building = self._settings, self._building
        document = openapi_document(
            building.graph,
            building.gateway,
            paths=_joined([room.paths for room in rooms]),
            schemas=_joined([room.schemas for room in rooms]),
            secured=not self._callers.open,
        )
        routes = [route for room in rooms for route in room.routes]
        app = Guard(
            make_routes(document, self._health, routes),
            self._callers,
            names=_listed(settings.names),
            calls_per_caller=settings.calls_per_caller,
            calls_per_second=settings.calls_per_second,
            public=lambda path: any(room.is_public(path) for room in rooms),
            sockets_per_caller=settings.sockets_per_caller,
            origins=_listed(settings.origins),
        )
        limits = ConnectionLimits(
            connections=settings.connections,
            head_seconds=settings.head_timeout.total_seconds(),
            silence_seconds=settings.silence_timeout.total_seconds(),
        )
        silence_seconds = limits.silence_seconds
        sockets = SocketLimits(silence_seconds=silence_seconds, leaving_seconds=_LEAVING_SECONDS)
        return uvicorn.Config(
            with_origins(app, _listed(settings.origins)),
            http=bounded_protocol(limits),
            ws=bounded_socket(sockets),
            ws_max_size=settings.message_bytes,
            # A client is asked whether it is there, and has the other half to answer.
            ws_ping_interval=silence_seconds / 2,
            ws_ping_timeout=silence_seconds / 2,
            ws_per_message_deflate=False,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
            ssl_certfile=settings.tls_certificate_file or None,
            ssl_keyfile=settings.tls_key_file or None,
        )

    def _health(self) -> dict[str, Any]:
        trouble = self._meter.trouble
        found: dict[str, Any] = {"healthy": not trouble, "gateway": self._building.gateway.name}
        return found | ({"why": trouble} if trouble else {})

    async def _watch(self, server: uvicorn.Server) -> None:
        """Look how things stand, and end the server when the gateway is to stop."""
        look_at = 0.0
        while not (self._ended or self._building.site.stop.is_set()):
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _HEALTH_SECONDS
                await self._look()
            await asyncio.sleep(_LOOK_SECONDS)
        self._building.leaving.set()
        server.should_exit = True

    async def _look(self) -> None:
        looked = [await each.look() for each in (*self._building.fixtures, *self._rooms)]
        if self._callers.trouble:
            looked.append(Trouble(self._callers.trouble))
        found = [trouble for trouble in looked if trouble is not None]
        if found and not self._has_run and all(trouble.beginning for trouble in found):
            return  # it is still starting
        self._has_run = self._has_run or not found
        if found:
            self._meter.degraded("; ".join(trouble.text for trouble in found))
        else:
            self._meter.running()


def _joined(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for each in several for name, value in each.items()}


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
