"""Serve the status over HTTP on the loopback address: ``/metrics``, ``/health``, ``/status``."""

import socket
from collections.abc import Callable, Collection
from http import HTTPStatus
from types import TracebackType
from typing import Self

from penstock.core.status.exposition import CONTENT_TYPE, prometheus_text
from penstock.core.status.health import health
from penstock.core.status.status import RunStatus, encode_status
from penstock.errors import ConfigurationError
from penstock.machine.ports import LOOPBACK, free_ports
from penstock.serving.desk.desk import Desk
from penstock.serving.desk.offers import Asked, Offers, Reply

__all__ = ["StatusPage"]

_ATTEMPTS = 5
_NOTHING = Offers()


class StatusPage:
    """Serves what ``read_status`` returns while the block runs; each request calls it once.

    Port 0 takes one that is free, ``wished`` if that is. ConfigurationError where the port is
    taken. ``hosts`` are further names that requests may use, besides those of this machine;
    ``note`` gets messages on trouble. ``more`` is what else is offered there.
    """

    def __init__(
        self,
        read_status: Callable[[], RunStatus],
        *,
        port: int,
        wished: int = 0,
        hosts: Collection[str] = (),
        note: Callable[[str], None] = lambda _: None,
        more: Offers = _NOTHING,
    ) -> None:
        self._read_status = read_status
        self._listening = _listen(port) if port else _listen_anywhere(wished)
        self.port: int = self._listening.getsockname()[1]
        """Where it listens."""
        own = Offers(
            questions={"/metrics": self._metrics, "/health": self._health, "/status": self._status}
        )
        self._desk = Desk(
            self._listening,
            own | more,
            health=lambda: {"healthy": self._read_status().healthy},
            hosts=hosts,
            note=note,
        )

    @property
    def address(self) -> str:
        """Return the address of the page."""
        return f"http://{LOOPBACK}:{self.port}"

    def __enter__(self) -> Self:
        self._desk.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._desk.__exit__(kind, error, trace)
        self._listening.close()

    def _metrics(self, asked: Asked) -> Reply:
        del asked
        return Reply(body=prometheus_text(self._read_status()).encode(), kind=CONTENT_TYPE)

    def _health(self, asked: Asked) -> Reply:
        del asked
        status = self._read_status()
        code = HTTPStatus.OK if status.healthy else HTTPStatus.SERVICE_UNAVAILABLE
        return Reply(body=health(status), status=code)

    def _status(self, asked: Asked) -> Reply:
        del asked
        return Reply(body=encode_status(self._read_status()))


def _listen_anywhere(wished: int) -> socket.socket:
    # Between finding a port and listening on it another process may take it.
    for port in ([wished] if wished else []) + free_ports(_ATTEMPTS):
        try:
            return _listen(port)
        except ConfigurationError:
            continue
    return _listen(free_ports(1)[0])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigurationError(
            f"cannot listen on {LOOPBACK}:{port}",
            code="http.port",
            detail=str(error),
            hint="choose another port, or any free one: --set http.port=0",
        ) from error
    return listening
