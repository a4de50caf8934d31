"""The room that answers for tables and states."""

from starlette.routing import Route

from penstock.serving.lookups.describe import lookup_paths, lookup_schemas
from penstock.serving.lookups.routes import LookupRoutes
from penstock.serving.room import Building, Room

__all__ = ["open_lookups"]

_ROWS = "/v1/tables/{name}/rows"
_VALUES = "/v1/states/{service}/{state}/values"


class _Lookups(Room):
    def __init__(self, building: Building) -> None:
        lookups = LookupRoutes(
            building.gateway, building.settings, shown=building.shown, stop=building.leaving
        )
        self.routes = [
            Route(_ROWS, lookups.scan_rows, methods=["GET"]),
            Route(_ROWS + "/{key:path}", lookups.get_row, methods=["GET"]),
            Route("/v1/tables/{name}/changes", lookups.push_rows, methods=["GET"]),
            Route(_VALUES, lookups.scan_values, methods=["GET"]),
            Route(_VALUES + "/{key:path}", lookups.get_value, methods=["GET"]),
        ]
        self.paths = lookup_paths(building.gateway)
        self.schemas = lookup_schemas(building.gateway)


def open_lookups(building: Building) -> Room | None:
    """Open the room, where the gateway shows something."""
    return _Lookups(building) if building.gateway.shows else None
