"""Runs a gateway: an event loop with the HTTP server, and what it needs of Kafka."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import uvicorn
import uvloop
from starlette.routing import BaseRoute, Route

from penstock.backbone.log.acknowledging import AcknowledgingProducer
from penstock.backbone.log.sending import SendLimits
from penstock.backbone.site import Site
from penstock.core.graph.gateway import Gateway
from penstock.core.graph.graph import Graph
from penstock.core.settings.settings import ServingSettings
from penstock.core.wiring.lookup import find_part
from penstock.errors import PenstockError, TransientError
from penstock.machine.peers.secret import shared_secret
from penstock.serving.application import make_routes, with_origins
from penstock.serving.describe.openapi import openapi_document
from penstock.serving.http.callers import Callers
from penstock.serving.http.guard import Guard
from penstock.serving.http.protocol import ConnectionLimits, bounded_protocol
from penstock.serving.listening import address_of, listen, require_safe
from penstock.serving.lookups.routes import LookupRoutes
from penstock.serving.lookups.tables import READING, TableView
from penstock.serving.meter import Meter
from penstock.serving.owners import Owners
from penstock.serving.records.intake import Intake
from penstock.serving.records.once import Transactions
from penstock.serving.records.routes import RecordRoutes

__all__ = ["run_gateway"]

_LOOK_SECONDS = 0.1
_HEALTH_SECONDS = 1.0
_STOP_SECONDS = 5
"""How long requests under way may take when the gateway is to stop."""
_KEEP_ALIVE_SECONDS = 60
_LINGER = timedelta(milliseconds=1)
_MOMENT = timedelta(seconds=5)


def run_gateway(graph: Graph, name: str, site: Site) -> None:
    """Run a gateway until ``site.stop`` is set; its topics must have been declared.

    ConfigurationError where it cannot listen, or strangers could use it. While Kafka is away it
    goes on, and refuses what needs Kafka.
    """
    gateway = find_part(graph, name, Gateway)
    settings = site.settings.serving
    require_safe(settings)
    callers = Callers(settings.tokens_file)
    with Meter(gateway.name, site.report, clock=time.time) as meter:
        listening = listen(graph, gateway, settings)
        try:
            meter.tell("listening on", address_of(listening, settings))
            running = _Running(graph, gateway, site, callers=callers, meter=meter)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(running.serve(listening))
        finally:
            listening.close()


class _Running:
    """One run of a gateway."""

    def __init__(
        self, graph: Graph, gateway: Gateway, site: Site, *, callers: Callers, meter: Meter
    ) -> None:
        self._graph = graph
        self._gateway = gateway
        self._site = site
        self._settings: ServingSettings = site.settings.serving
        self._callers = callers
        self._meter = meter
        self._ended = False
        self._has_run = False
        self._intake: Intake | None = None
        self._producer: AcknowledgingProducer | None = None
        self._records: RecordRoutes | None = None
        self._transactions: Transactions | None = None
        self._owners: Owners | None = None
        self._leaving = asyncio.Event()
        self._views: dict[str, TableView] = {}

    async def serve(self, listening: Any) -> None:
        """Serve until the gateway is to stop, then let the requests under way end."""
        routes = self._begin_records() if self._gateway.takes else []
        routes += self._begin_lookups() if self._gateway.shows else []
        server = uvicorn.Server(self._config(routes))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch(server))
            await server.serve(sockets=[listening])
            self._ended = True
        if self._owners is not None:
            await self._owners.aclose()
        await asyncio.to_thread(self._close)

    def _begin_records(self) -> list[BaseRoute]:
        settings = self._settings
        limits = SendLimits(
            records=2 * settings.waiting_records,
            linger=_LINGER,
            delivery_timeout=settings.write_timeout,
        )
        self._producer = producer = AcknowledgingProducer(self._site.connection, limits=limits)
        self._intake = intake = Intake(producer, most_waiting=settings.waiting_records)
        producer.begin(intake.wake)
        self._transactions = Transactions(
            self._graph.app,
            self._gateway,
            self._site.connection.within(settings.write_timeout),
            remembered=settings.remembered_requests,
            wait=settings.write_timeout,
        )
        self._records = RecordRoutes(
            self._gateway,
            settings,
            intake=intake,
            transactions=self._transactions,
            meter=self._meter,
        )
        return [Route("/v1/streams/{name}/records", self._records.post, methods=["POST"])]

    def _begin_lookups(self) -> list[BaseRoute]:
        site, settings = self._site, self._settings
        secret = shared_secret(settings, site.places.home)
        self._owners = Owners(self._graph.app, site.connection.within(_MOMENT), secret)
        self._views = {
            table.name: TableView(
                site.connection, table.topic.name, most_bytes=settings.table_bytes
            )
            for table in self._gateway.tables
        }
        for view in self._views.values():
            view.start()
        lookups = LookupRoutes(
            self._gateway, settings, owners=self._owners, views=self._views, stop=self._leaving
        )
        rows, values = "/v1/tables/{name}/rows", "/v1/states/{service}/{state}/values"
        return [
            Route(rows, lookups.scan_rows, methods=["GET"]),
            Route(rows + "/{key:path}", lookups.get_row, methods=["GET"]),
            Route("/v1/tables/{name}/changes", lookups.push_rows, methods=["GET"]),
            Route(values, lookups.scan_values, methods=["GET"]),
            Route(values + "/{key:path}", lookups.get_value, methods=["GET"]),
        ]

    def _config(self, routes: list[BaseRoute]) -> uvicorn.Config:
        settings = self._settings
        document = openapi_document(self._graph, self._gateway, secured=not self._callers.open)
        app = Guard(
            make_routes(document, self._health, routes),
            self._callers,
            names=_listed(settings.names),
            calls_per_caller=settings.calls_per_caller,
        )
        limits = ConnectionLimits(
            connections=settings.connections,
            head_seconds=settings.head_timeout.total_seconds(),
            silence_seconds=settings.silence_timeout.total_seconds(),
        )
        return uvicorn.Config(
            with_origins(app, _listed(settings.origins)),
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
            ssl_certfile=settings.tls_certificate_file or None,
            ssl_keyfile=settings.tls_key_file or None,
        )

    def _health(self) -> dict[str, Any]:
        trouble = self._meter.trouble
        found: dict[str, Any] = {"healthy": not trouble, "gateway": self._gateway.name}
        return found | ({"why": trouble} if trouble else {})

    async def _watch(self, server: uvicorn.Server) -> None:
        """Look how things stand, and end the server when the gateway is to stop."""
        look_at = 0.0
        while not (self._ended or self._site.stop.is_set()):
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _HEALTH_SECONDS
                await self._look()
            await asyncio.sleep(_LOOK_SECONDS)
        self._leaving.set()
        server.should_exit = True

    async def _look(self) -> None:
        trouble = self._callers.trouble
        if self._intake is not None and self._producer is not None:
            if self._producer.dead:
                await self._replace_producer(self._intake, self._producer)
            away = await asyncio.to_thread(self._producer.trouble)
            self._intake.trouble = away or ""
            trouble = away or trouble
            if not away:
                trouble = await self._learn_partitions(self._producer) or trouble
        troubles = {name: view.trouble for name, view in self._views.items() if view.trouble}
        if not (trouble or self._has_run) and READING in troubles.values():
            return  # it is still starting
        unready = [f"table {name}: {why}" for name, why in troubles.items()]
        trouble = trouble or "; ".join(unready)
        self._has_run = self._has_run or not trouble
        if trouble:
            self._meter.degraded(trouble)
        else:
            self._meter.running()

    async def _learn_partitions(self, producer: AcknowledgingProducer) -> str:
        """Learn once how many partitions the topics have whose records go round."""
        records, intake = self._records, self._intake
        topics = [s.topic.name for s in self._gateway.takes if s.topic.partitioning != "key"]
        if records is None or intake is None or not topics or records.partitions:
            return ""
        try:
            counts = await asyncio.to_thread(producer.partitions, topics, timeout=_MOMENT)
        except PenstockError as error:
            return error.message
        records.partitions = counts
        intake.set_partitions(counts)
        return ""

    async def _replace_producer(self, intake: Intake, dead: AcknowledgingProducer) -> None:
        limits = SendLimits(
            records=2 * self._settings.waiting_records,
            linger=_LINGER,
            delivery_timeout=self._settings.write_timeout,
        )
        self._producer = AcknowledgingProducer(self._site.connection, limits=limits)
        self._producer.begin(intake.wake)
        intake.use(self._producer)
        await asyncio.to_thread(dead.close, timedelta())

    def _close(self) -> None:
        with suppress(TransientError):
            if self._producer is not None:
                self._producer.close(timedelta(seconds=_STOP_SECONDS))
        if self._transactions is not None:
            self._transactions.close()
        for view in self._views.values():
            view.close()


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
