"""The room that takes records for streams."""

from typing import Any, cast

from starlette.routing import Route

from penstock.serving.records.describe import record_paths, record_schemas
from penstock.serving.records.routes import RecordRoutes
from penstock.serving.room import Building, Room

__all__ = ["open_records"]


class _Records(Room):
    def __init__(self, building: Building) -> None:
        records = RecordRoutes(
            building.gateway, building.settings, writer=building.writer, meter=building.meter
        )
        self.routes = [
            # Any ASGI application may stand there; the type says functions only.
            Route("/v1/streams/{name}/records", cast("Any", records), methods=["POST"]),
            *building.socket_routes("/v1/streams/{name}/socket", records.converse),
        ]
        self.paths = record_paths(building.gateway)
        self.schemas = record_schemas(building.gateway)


def open_records(building: Building) -> Room | None:
    """Open the room, where the gateway takes records."""
    return _Records(building) if building.gateway.takes else None
