"""A live query followed without a gateway, by one who asks the services themselves."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.acknowledging import AcknowledgingProducer
from penstock.backbone.log.sending import SendLimits
from penstock.core.feeds.shared import SharedQuery
from penstock.core.feeds.subscription import Subscription
from penstock.core.grid.livequeries import LiveQueries
from penstock.serving.live.following import Following
from penstock.serving.writing.intake import Intake

__all__ = ["followed"]

_WAITING = 1000
_LINGER = timedelta(milliseconds=1)
_DELIVERY = timedelta(seconds=20)
_STOP = timedelta(seconds=2)


async def followed(
    live: LiveQueries,
    connection: Connection,
    query: SharedQuery,
    *,
    most_bytes: int,
    look_seconds: float = 1.0,
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """Yield the messages of a query: its first result, and then each change.

    None: nothing came for ``look_seconds``. The query stays registered until its lease is over.
    """
    limits = SendLimits(records=_WAITING, linger=_LINGER, delivery_timeout=_DELIVERY)
    producer = AcknowledgingProducer(connection, limits=limits)
    intake = Intake(producer, most_waiting=_WAITING)
    following = Following(live, connection, intake, most_bytes=most_bytes)
    changed = asyncio.Event()
    subscription = Subscription("live", following.join(query, changed.set))
    loop = asyncio.get_running_loop()
    try:
        while not subscription.ended:
            while (message := subscription.pull(loop.time())) is not None:
                yield msgspec.json.decode(message)
            with suppress(TimeoutError):
                async with asyncio.timeout(look_seconds):
                    await changed.wait()
            if not changed.is_set():
                yield None
            changed.clear()
            await following.look()
    finally:
        await following.close()
        await asyncio.to_thread(producer.close, _STOP)
