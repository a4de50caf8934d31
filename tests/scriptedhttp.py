"""A real HTTP server that answers what a test says."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answering = Callable[[str, dict[str, str], bytes], tuple[int | None, dict[str, str], bytes]]


class Server(ThreadingHTTPServer):
    answer: Any = None


class Served(BaseHTTPRequestHandler):
    """Does what the test says, and keeps what it was asked."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server: Any = self.server
        about = {**self.headers, ":path": self.path}
        status, headers, answer = server.answer(self.command, about, body)
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in {"Content-Length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = do_OPTIONS = _any  # noqa: N815 - what the library looks for

    def log_message(self, *_) -> None: ...


@contextmanager
def serving(answer: Answering, path: str = "/hook?x=1") -> Iterator[str]:
    """Serve what a function answers to method, headers (and ``:path``) and body; give the URL."""
    server = Server(("127.0.0.1", 0), Served)
    server.answer = answer
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{path}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
