"""A proxy on loopback that loses answers, cuts connections, and leads elsewhere."""

import socket
import threading
from contextlib import suppress


class BreakingProxy:
    """Passes bytes to a port, until a test asks for something else."""

    def __init__(self, port):
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.connections = 0
        self._losing = 0
        self._open = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        self._thread.join(10)

    def lose_answers(self, count):
        """Let the next requests through, and end their connections instead of their answers."""
        self._losing = count

    def lead_to(self, port):
        """Connect to another port from now on."""
        self._target = port

    def cut(self):
        """End all connections."""
        with self._lock:
            ending, self._open = self._open, []
        for each in ending:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self):
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            try:
                gateway = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                caller.close()
                continue
            with self._lock:
                self._open += [caller, gateway]
            for pair, answers in (((caller, gateway), False), ((gateway, caller), True)):
                threading.Thread(target=self._pass, args=(*pair, answers), daemon=True).start()

    def _pass(self, source, target, answers):
        with suppress(OSError):
            while data := source.recv(65536):
                if answers and self._losing:
                    self._losing -= 1
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
