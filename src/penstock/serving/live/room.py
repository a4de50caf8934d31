"""The room of live queries."""

from penstock.serving.http.conversation import Conversation
from penstock.serving.live.following import Following
from penstock.serving.live.offered import Offered
from penstock.serving.live.socket import LiveSocket
from penstock.serving.room import Building, Room

__all__ = ["open_live"]


class _Live(Room):
    def __init__(self, building: Building) -> None:
        gateway = building.gateway
        followings = {
            live.name: Following(live, building.site.connection, building.writer.intake)
            for live in gateway.live
        }
        building.fixtures.extend(followings.values())
        self._offered = Offered(gateway, followings)
        self._heartbeat = building.settings.heartbeat.total_seconds()
        self.routes = [*building.socket_routes("/v1/live", self._converse)]

    async def _converse(self, conversation: Conversation) -> None:
        await conversation.accept()
        socket = LiveSocket(conversation, self._offered, heartbeat_seconds=self._heartbeat)
        await socket.serve()


def open_live(building: Building) -> Room | None:
    """Open the room, where the gateway has live queries."""
    return _Live(building) if building.gateway.live else None
