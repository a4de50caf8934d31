"""The room that answers SQL."""

from starlette.routing import Route

from penstock.serving.relations.catalog import relations_of_app
from penstock.serving.relations.running import Queries
from penstock.serving.room import Building, Room
from penstock.serving.sql.describe import sql_paths
from penstock.serving.sql.routes import PATH, SqlRoutes

__all__ = ["open_sql"]


class _Sql(Room):
    def __init__(self, building: Building) -> None:
        gateway, shown = building.gateway, building.shown
        self._queries = Queries(
            relations_of_app(gateway.tables, gateway.services),
            building.settings,
            owners=shown.owners,
            views=shown.views,
        )
        routes = SqlRoutes(gateway, building.settings, self._queries)
        self.routes = [
            Route(PATH, routes.get, methods=["GET"]),
            Route(PATH, routes.post, methods=["POST"]),
        ]
        self.paths = sql_paths()

    async def close(self) -> None:
        """End the queries that are under way."""
        self._queries.close()


def open_sql(building: Building) -> Room | None:
    """Open the room, where the gateway shows something."""
    return _Sql(building) if building.gateway.shows else None
