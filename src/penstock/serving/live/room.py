"""The room of live queries."""

from starlette.routing import Route

from penstock.serving.live.cached import CachedResults
from penstock.serving.live.describe import live_paths
from penstock.serving.live.following import Following
from penstock.serving.live.offered import Offered
from penstock.serving.live.routes import LiveRoutes
from penstock.serving.live.scripts import script_route
from penstock.serving.room import Building, Room

__all__ = ["open_live"]


class _Live(Room):
    def __init__(self, building: Building) -> None:
        gateway = building.gateway
        followings = {
            live.name: Following(
                live,
                building.site.connection,
                building.writer.intake,
                most_bytes=building.settings.live_bytes,
            )
            for live in gateway.live
        }
        building.fixtures.extend(followings.values())
        offered = Offered(gateway, followings)
        live = LiveRoutes(offered, building.settings, stop=building.leaving)
        cached = CachedResults(offered, building.settings)
        self._scripts = script_route()
        self.routes = [
            self._scripts,
            Route("/v1/live/events", live.get_events, methods=["GET"]),
            Route("/v1/live/events", live.post_events, methods=["POST"]),
            Route("/v1/live/result", cached.get, methods=["GET"]),
            Route("/v1/live/poll", live.poll, methods=["POST"]),
            *building.socket_routes("/v1/live", live.converse),
        ]
        self.paths = live_paths()

    def is_public(self, path: str) -> bool:
        """Return True for scripts: a page loads them before it has a token."""
        return self._scripts.has(path)


def open_live(building: Building) -> Room | None:
    """Open the room, where the gateway has live queries."""
    return _Live(building) if building.gateway.live else None
