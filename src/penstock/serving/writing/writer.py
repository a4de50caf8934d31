"""The way onto the log that the rooms of a gateway share: one producer, and transactions."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from penstock.backbone.log.acknowledging import AcknowledgingProducer
from penstock.backbone.log.sending import SendLimits
from penstock.backbone.site import Site
from penstock.core.graph.gateway import Gateway
from penstock.errors import PenstockError, TransientError
from penstock.serving.fixture import Fixture, Trouble
from penstock.serving.writing.intake import Intake
from penstock.serving.writing.once import Transactions

__all__ = ["Writer"]

_STOP = timedelta(seconds=5)
"""How long what is on its way may take when the gateway is to stop."""
_LINGER = timedelta(milliseconds=1)
_MOMENT = timedelta(seconds=5)


class Writer(Fixture):
    """Writes what callers send: at once by the ``intake``, whole requests by ``transactions``."""

    def __init__(self, app: str, gateway: Gateway, site: Site) -> None:
        self._site = site
        self._settings = settings = site.settings.serving
        self._round = [
            stream.topic.name for stream in gateway.takes if stream.topic.partitioning != "key"
        ]
        self._producer = AcknowledgingProducer(site.connection, limits=self._limits())
        self.intake = Intake(self._producer, most_waiting=settings.waiting_records)
        self.transactions = Transactions(
            app,
            gateway,
            site.connection.within(settings.write_timeout),
            remembered=settings.remembered_requests,
            wait=settings.write_timeout,
        )
        self.partitions: Mapping[str, int] = {}
        """How many partitions the topics have whose records go round."""

    async def look(self) -> Trouble | None:
        """Return why Kafka takes nothing; replace a producer that has failed as a whole."""
        self._producer.serve()
        if self._producer.dead:
            await self._replace()
        away = await asyncio.to_thread(self._producer.trouble)
        self.intake.trouble = away or ""
        return Trouble(away) if away else await self._learn_partitions()

    async def close(self) -> None:
        """End, with all on the log that was sent."""
        await asyncio.to_thread(self._close)

    async def _learn_partitions(self) -> Trouble | None:
        if not self._round or self.partitions:
            return None
        try:
            counts = await asyncio.to_thread(
                self._producer.partitions, self._round, timeout=_MOMENT
            )
        except PenstockError as error:
            return Trouble(error.message)
        self.partitions = counts
        self.intake.set_partitions(counts)
        return None

    async def _replace(self) -> None:
        dead = self._producer
        self._producer = AcknowledgingProducer(self._site.connection, limits=self._limits())
        self.intake.use(self._producer)
        await asyncio.to_thread(dead.close, timedelta())

    def _close(self) -> None:
        with suppress(TransientError):
            self._producer.close(_STOP)
        self.transactions.close()

    def _limits(self) -> SendLimits:
        return SendLimits(
            records=2 * self._settings.waiting_records,
            linger=_LINGER,
            delivery_timeout=self._settings.write_timeout,
        )
