"""A client of one gateway: a face for ``async``, and one for everything else."""

from types import TracebackType
from typing import Self

from penstock.client.asking import Loop
from penstock.client.changes import Changes, SyncChanges
from penstock.client.limits import ClientLimits
from penstock.client.live import Live, SyncLive
from penstock.client.lookups import Lookups, SyncLookups
from penstock.client.queries import Queries, SyncQueries
from penstock.client.questions import QuestionRequests, SyncAsked
from penstock.client.records import Records, SyncRecords
from penstock.client.wire import Token, Wire, address_of

__all__ = ["Client", "SyncClient"]


class Client(Records, QuestionRequests, Lookups, Queries, Changes, Live):
    """A client of a gateway, for ``async`` code; ``async with`` opens and closes it.

    It is for one event loop, and for many calls at once. Requests that may succeed later are sent
    again, within ``limits``; what a gateway refuses is raised as an error of ``penstock.errors``.

    Args:
        url: Where the gateway is: ``http://127.0.0.1:8800``.
        token: The caller's token, or a function that returns one that is valid now.
        ca_file: PEM file with the authorities to trust; empty: those of the system.
        limits: How long it waits, how often it tries, how much it holds.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token | None = None,
        ca_file: str = "",
        limits: ClientLimits | None = None,
    ) -> None:
        self._address = address_of(url, ca_file=ca_file)
        self._token = token
        self._limits = limits or ClientLimits()
        self._codecs = {}

    async def __aenter__(self) -> Self:
        """Open it; the first request connects."""
        self._connected = Wire(self._address, token=self._token, limits=self._limits)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections; what is under way fails."""
        if self._connected is not None:
            await self._connected.close()
            self._connected = None


class SyncClient(SyncRecords, SyncAsked, SyncLookups, SyncQueries, SyncChanges, SyncLive):
    """A client of a gateway, for code without an event loop; ``with`` opens and closes it.

    It has the methods of ``Client`` and its arguments, runs a ``Client`` in a thread of its own,
    and may be used by several threads.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token | None = None,
        ca_file: str = "",
        limits: ClientLimits | None = None,
    ) -> None:
        client = Client(url, token=token, ca_file=ca_file, limits=limits)
        self._client = self._records = self._asked = client
        self._lookups = self._queries = self._changes = self._live = client

    def __enter__(self) -> Self:
        """Open it; the first request connects."""
        self._looping = Loop()
        self._looping.run(self._client.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections; what is under way fails."""
        if self._looping is not None:
            self._looping.run(self._client.__aexit__(kind, error, trace))
            self._looping.stop()
            self._looping = None
