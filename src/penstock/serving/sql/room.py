"""The room that answers SQL."""

from starlette.routing import Route

from penstock.serving.relations.catalog import relations_of_app
from penstock.serving.relations.running import Queries
from penstock.serving.room import Building, Room
from penstock.serving.sql.describe import sql_paths
from penstock.serving.sql.routes import PATH, SqlRoutes
from penstock.serving.sql.watch import WatchRoutes

__all__ = ["open_sql"]


class _Sql(Room):
    def __init__(self, building: Building) -> None:
        gateway, shown = building.gateway, building.shown
        self._queries = Queries(
            relations_of_app(building.graph, gateway.tables, gateway.services),
            building.settings,
            owners=shown.owners,
            views=shown.views,
        )
        routes = SqlRoutes(gateway, building.settings, self._queries)
        watch = WatchRoutes(
            gateway, building.settings, self._queries, sql=routes, stop=building.leaving
        )
        self.routes = [
            Route(PATH, routes.get, methods=["GET"]),
            Route(PATH, routes.post, methods=["POST"]),
            Route(f"{PATH}/changes", watch.query, methods=["GET"]),
            Route("/v1/states/{service}/{state}/changes", watch.state, methods=["GET"]),
            *building.socket_routes(f"{PATH}/socket", watch.socket),
        ]
        self._watches = watch.watches
        self.paths = sql_paths(gateway)

    async def close(self) -> None:
        """End the queries that are under way, and those that are watched."""
        await self._watches.close()
        self._queries.close()


def open_sql(building: Building) -> Room | None:
    """Open the room, where the gateway shows something."""
    return _Sql(building) if building.gateway.shows else None
