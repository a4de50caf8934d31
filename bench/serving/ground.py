"""What the benches of serving share: the application, its processes, and a client of our own.

The client speaks HTTP over plain sockets in an event loop: it must cost less than what it measures.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.backbone.client.connection import Connection
from penstock.machine.ports import free_ports

HERE = Path(__file__).parent
LIMIT_SECONDS = 90.0


def until(port: int) -> None:
    """Wait until a gateway is well."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/health", timeout=2) as answer,
        ):
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise TimeoutError("the gateway does not answer")


@contextmanager
def parts(kafka: Connection, home: Path, *names: str) -> Iterator[int]:
    """Run parts of the application, each in a process of its own; give the gateway's port."""
    (port,) = free_ports(1)
    settings = [f"home={home}", f"kafka.bootstrap={kafka.bootstrap}", f"serving.port={port}"]
    settings += ["serving.calls_per_caller=2000", "serving.connections=8000"]
    settings += ["serving.sockets_per_caller=8000"]
    words = [word for each in settings for word in ("--set", each)]
    processes = []
    for name in names:
        command = [sys.executable, "-m", "penstock.cli", "run", str(HERE / "app.py")]
        with (home / f"{name}.log").open("wb") as log:
            processes.append(
                subprocess.Popen([*command, "--part", name, *words], stdout=log, stderr=log)
            )
    try:
        if "door" in names:
            until(port)
        yield port
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return a request as it goes over a connection."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


class Caller:
    """One connection that asks, one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> "Caller":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, payload: bytes) -> tuple[int, bytes]:
        self._writer.write(payload)
        head = await self._reader.readuntil(b"\r\n\r\n")
        at = head.lower().index(b"content-length:")
        length = int(head[at + 15 : head.index(b"\r\n", at)])
        return int(head[9:12]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


async def flood(port: int, payload: bytes, *, connections: int, seconds: float) -> float:
    """Ask as fast as it goes from several connections; return the answers per second."""
    callers = [await Caller.connect(port) for _ in range(connections)]
    end = time.monotonic() + seconds
    counts = [0] * connections

    async def ask(at: int) -> None:
        while time.monotonic() < end:
            status, body = await callers[at].ask(payload)
            if status >= 300:
                raise RuntimeError(body.decode())
            counts[at] += 1

    began = time.monotonic()
    await asyncio.gather(*(ask(at) for at in range(connections)))
    for caller in callers:
        caller.close()
    return sum(counts) / (time.monotonic() - began)


async def steady(
    port: int, payloads: list[bytes], *, rate: float, connections: int, seconds: float
) -> list[float]:
    """Ask at a steady rate; return how long each answer took from the moment it was due."""
    callers = [await Caller.connect(port) for _ in range(connections)]
    took: list[float] = []
    began = time.monotonic()
    total = int(rate * seconds)

    async def ask(at: int) -> None:
        for number in range(at, total, connections):
            due = began + number / rate
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            status, body = await callers[at].ask(payloads[number % len(payloads)])
            if status >= 300:
                raise RuntimeError(body.decode())
            took.append(time.monotonic() - due)

    await asyncio.gather(*(ask(at) for at in range(connections)))
    for caller in callers:
        caller.close()
    return took


async def idle_sockets(port: int, path: str, *, count: int) -> list[asyncio.StreamWriter]:
    """Open WebSockets that say nothing; return them, each when it was told its first message."""
    head = request("GET", path)[:-2] + (
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    opened = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(2)
        opened.append(writer)
    return opened


def cores() -> int:
    return len(os.sched_getaffinity(0))
