"""Serves what a command offers, over HTTP, from a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Collection
from socket import socket
from types import TracebackType
from typing import Any, Self

import uvicorn

from penstock import __version__
from penstock.serving.application import make_routes
from penstock.serving.desk.offers import Offers
from penstock.serving.desk.routes import DeskRoutes
from penstock.serving.http.callers import Callers
from penstock.serving.http.guard import Guard
from penstock.serving.http.protocol import ConnectionLimits, bounded_protocol

__all__ = ["CONNECTIONS", "Desk"]

CONNECTIONS = 64
"""The most connections at once; a new one ends the oldest that asks for nothing."""
REQUESTS = 48
"""The most requests at once, streams among them."""
HEAD_SECONDS = 5.0
"""How long a request line with its headers may take."""
_SILENCE_SECONDS = 10.0
"""How long a client may read nothing of its answer."""
_KEEP_ALIVE_SECONDS = 15
_STOP_SECONDS = 1
_JOIN_SECONDS = 5.0


class Desk:
    """Serves on a socket that listens, while the block runs.

    ``hosts`` are further names that requests may use, besides those of this machine. ``note`` is
    called once when the machine accepts no more connections; serving goes on later.
    """

    def __init__(
        self,
        listening: socket,
        offers: Offers,
        *,
        health: Callable[[], dict[str, Any]],
        hosts: Collection[str] = (),
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._listening = listening
        self._offers = offers
        self._health = health
        self._hosts = hosts
        self._note = note
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._tell)
        self._routes = DeskRoutes(self._offers)
        self._server = uvicorn.Server(self._config())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        self._loop.call_soon_threadsafe(self._routes.end)
        self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._server.serve(sockets=[self._listening]))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def _config(self) -> uvicorn.Config:
        paths = {
            path: {"get": {"responses": {"200": {"description": "the answer"}}}}
            for path in (*self._offers.questions, *self._offers.streams)
        }
        document = {
            "openapi": "3.1.0",
            "info": {"title": "Penstock: operations", "version": __version__},
            "paths": paths,
        }
        app = Guard(
            make_routes(document, self._health, self._routes.routes),
            Callers(""),
            names=self._hosts,
            calls_per_caller=REQUESTS,
        )
        limits = ConnectionLimits(
            connections=CONNECTIONS,
            head_seconds=HEAD_SECONDS,
            silence_seconds=_SILENCE_SECONDS,
            newest_first=True,
        )
        return uvicorn.Config(
            app,
            http=bounded_protocol(limits),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )

    def _tell(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or "accept" not in str(context.get("message", "")):
            loop.default_exception_handler(context)
        elif not self._warned:
            self._warned = True
            why = error.strerror or error
            self._note(f"the status page accepts no connections at the moment: {why}")
