"""What a gateway shows, as its rooms share it: the rows of tables, and the owners of states."""

import asyncio
from datetime import timedelta

from penstock.backbone.site import Site
from penstock.core.graph.gateway import Gateway
from penstock.machine.peers.secret import shared_secret
from penstock.serving.fixture import Fixture, Trouble
from penstock.serving.tables.owners import Owners
from penstock.serving.tables.view import READING, TableView

__all__ = ["Shown"]

_MOMENT = timedelta(seconds=5)


class Shown(Fixture):
    """The ``views`` of the tables by their names, and the ``owners`` of the states."""

    def __init__(self, app: str, gateway: Gateway, site: Site) -> None:
        settings = site.settings.serving
        secret = shared_secret(settings, site.places.home)
        self.owners = Owners(app, site.connection.within(_MOMENT), secret)
        self.views = {
            table.name: TableView(
                site.connection, table.topic.name, most_bytes=settings.table_bytes
            )
            for table in gateway.tables
        }
        for view in self.views.values():
            view.start()

    async def look(self) -> Trouble | None:
        """Return which tables do not answer, and why."""
        troubles = {name: view.trouble for name, view in self.views.items() if view.trouble}
        if not troubles:
            return None
        text = "; ".join(f"table {name}: {why}" for name, why in troubles.items())
        return Trouble(text, beginning=READING in troubles.values())

    async def close(self) -> None:
        """Hang up, and follow no table any more."""
        await self.owners.aclose()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for view in self.views.values():
            view.close()
