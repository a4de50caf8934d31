"""How parts are, over HTTP, on the loopback address: ``/metrics``, ``/health``, ``/status``."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from penstock.core.exposition import CONTENT_TYPE, health, prometheus_text
from penstock.core.status import RunStatus, encode_status
from penstock.errors import ConfigurationError
from penstock.machine.ports import LOOPBACK, free_ports

__all__ = ["StatusPage"]

_REQUEST_SECONDS = 5.0
_LOOK_SECONDS = 0.1
"""How soon it sees that it is to end."""
_ATTEMPTS = 5
_JSON = "application/json"


class StatusPage:
    """Serves what ``told`` says while the block runs; it is asked once for each request.

    Port 0 takes one that is free. ConfigurationError where the port is taken.
    """

    def __init__(self, told: Callable[[], RunStatus], *, port: int) -> None:
        self._told = told
        self._server = self._listen(port) if port else self._listen_anywhere()
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_LOOK_SECONDS,),
            name="status-page",
            daemon=True,
        )

    @property
    def port(self) -> int:
        """Return where it listens."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """Return the address of the page."""
        return f"http://{LOOPBACK}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _listen_anywhere(self) -> ThreadingHTTPServer:
        # Between finding a port and listening on it another process may take it.
        for port in free_ports(_ATTEMPTS):
            try:
                return self._listen(port)
            except ConfigurationError:
                continue
        return self._listen(free_ports(1)[0])

    def _listen(self, port: int) -> ThreadingHTTPServer:
        told = self._told

        class Handler(BaseHTTPRequestHandler):
            timeout = _REQUEST_SECONDS

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                if path == "/metrics":
                    self._answer(HTTPStatus.OK, CONTENT_TYPE, prometheus_text(told()).encode())
                elif path == "/status":
                    self._answer(HTTPStatus.OK, _JSON, encode_status(told()))
                elif path == "/health":
                    status = told()
                    code = HTTPStatus.OK if status.healthy else HTTPStatus.SERVICE_UNAVAILABLE
                    self._answer(code, _JSON, health(status))
                else:
                    text = b"see /metrics, /health and /status\n"
                    self._answer(HTTPStatus.NOT_FOUND, "text/plain", text)

            def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing: who asks for metrics asks often."""

        try:
            return _Server((LOOPBACK, port), Handler)
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"cannot listen on {LOOPBACK}:{port}",
                code="http.port",
                detail=str(error),
                hint="choose another port, or any: --set http.port=0",
            ) from error


class _Server(ThreadingHTTPServer):
    """Says nothing of clients that hang up in the middle of an answer."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Do nothing: who asked is gone, and will ask again."""
