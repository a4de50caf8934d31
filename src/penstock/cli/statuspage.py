"""What parts say of themselves over HTTP, on the loopback address: ``/metrics``, ``/health``."""

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from penstock.core.exposition import CONTENT_TYPE, health, prometheus_text
from penstock.core.report import PartReport
from penstock.errors import ConfigurationError

__all__ = ["StatusPage"]

_HOST = "127.0.0.1"
_REQUEST_SECONDS = 5.0


class StatusPage:
    """Keeps the latest report of each process, and serves them while the block runs.

    Port 0 serves nothing. ConfigurationError where the port is taken.
    """

    def __init__(self, port: int) -> None:
        self._latest: dict[tuple[str, str], PartReport] = {}
        self._lock = threading.Lock()
        self._server = self._listen(port) if port else None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Return where it listens, empty where it does not."""
        return f"http://{_HOST}:{self._server.server_address[1]}" if self._server else ""

    def take(self, report: PartReport, *, process: str = "0") -> None:
        """Take note of a report, from any thread."""
        with self._lock:
            self._latest[process, report.part] = report

    def latest(self) -> list[tuple[str, PartReport]]:
        """Return the latest report of each process and part."""
        with self._lock:
            return [(process, report) for (process, _), report in sorted(self._latest.items())]

    def __enter__(self) -> Self:
        if self._server is not None:
            self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        if self._thread is not None:
            self._thread.join()

    def _listen(self, port: int) -> ThreadingHTTPServer:
        page = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _REQUEST_SECONDS

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(
                        HTTPStatus.OK, CONTENT_TYPE, prometheus_text(page.latest()).encode()
                    )
                elif self.path == "/health":
                    well, told = health(page.latest())
                    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
                    self._answer(status, "application/json", told)
                else:
                    self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"see /metrics and /health\n")

            def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing: who asks for metrics asks often."""

        try:
            return ThreadingHTTPServer((_HOST, port), Handler)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {_HOST}:{port}",
                code="services.http-port",
                detail=str(error),
                hint="choose another port: --set services.http_port=...",
            ) from error
