"""The door of devices: asynchronous sockets in, messages on the log, commands back.

`DeviceDoor` is the source. A device connects and sends lines; each is answered when it is on the
log, so the device knows what it has to send again. `DeviceDoor.commands` is the sink: it hands each
command to the door, over a socket that only this user can open, and the door writes it to the
device. A device that is not connected, or does not read, misses the command; its session sends it
again.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from apps.anomaly.devices.wire import MOST_LINE, FromDoor, Head, hung_up, stamped
from apps.anomaly.records import Command
from penstock.connectors import BatchLimits, Feed, Item, Row
from penstock.errors import ConfigurationError, TransientError

__all__ = ["DeviceDoor", "ToDevices"]

MOST_DEVICES = 10_000
"""So many devices may be connected at a time."""
MOST_WAITING = 2_000
"""So many lines wait for the log; then devices are not read from."""
AT_ONCE = 500
"""So many lines are written before their devices are answered."""
MOST_UNREAD = 256 << 10
"""A device that has left so many bytes unread gets no more, until it reads."""
IDLE_SECONDS = 600.0
"""A connection that says nothing for so long is closed."""
HANDED_SECONDS = 10.0
"""The door has so long to take commands."""
LOOK_SECONDS = 0.1
_TAKEN = b"taken\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDoor:
    """Where devices connect: a live source, and the way back to them."""

    host: str = "127.0.0.1"
    port: int = 9100
    interactive: bool = field(default=False, init=False)

    def describe(self) -> str:
        """Return where it listens, for people."""
        return f"devices over TCP, {self.host} port {self.port}"

    @property
    def commands(self) -> ToDevices:
        """The sink that hands commands to this door; both run on one machine."""
        return ToDevices(self.way_back)

    @property
    def way_back(self) -> Path:
        """Where the door takes commands: a socket in a directory of this user alone."""
        return Path(tempfile.gettempdir()) / f"anomaly-{os.getuid()}-{self.port}" / "commands"

    def run(self, feed: Feed) -> None:
        """Serve devices until the feed stops."""
        asyncio.run(_Serving(self, feed).serve())


class _Serving:
    """One run of a door."""

    def __init__(self, door: DeviceDoor, feed: Feed) -> None:
        self._door = door
        self._feed = feed
        self._devices: dict[str, asyncio.StreamWriter] = {}
        self._open: set[asyncio.StreamWriter] = set()
        self._waiting: asyncio.Queue[tuple[Item, Head | None, asyncio.StreamWriter]]
        self._count: Counter[str] = Counter()
        self._handlers: set[asyncio.Task[Any]] = set()

    async def serve(self) -> None:
        """Listen on both sides, and move lines to the log."""
        self._waiting = asyncio.Queue(MOST_WAITING)
        door = self._door
        try:
            server = await asyncio.start_server(
                self._handled(self._device), door.host, door.port, limit=MOST_LINE, backlog=1024
            )
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {door.host}:{door.port}: {error.strerror or error}",
                code="source.cannot-listen",
                hint="set ANOMALY_PORT to a port that is free",
            ) from error
        self._feed.tell("listening on", f"{door.host}:{door.port}")
        async with server, self._way_back():
            pump = asyncio.ensure_future(self._pump())
            try:
                while not self._feed.stop.is_set() and not pump.done():
                    await asyncio.wait((pump,), timeout=LOOK_SECONDS)
                    self._tell()
            finally:
                server.close()
                pump.cancel()
                for handler in self._handlers:
                    handler.cancel()
                if self._handlers:
                    await asyncio.wait(self._handlers, timeout=HANDED_SECONDS)
                with suppress(asyncio.CancelledError):
                    await pump

    @asynccontextmanager
    async def _way_back(self) -> Any:
        path = self._door.way_back
        path.parent.mkdir(mode=0o700, exist_ok=True)
        found = path.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ConfigurationError(
                f"{path.parent} is not a directory of this user alone",
                code="source.cannot-listen",
                hint="remove it",
            )
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(
            self._handled(self._hand_on), path, limit=MOST_LINE * 8
        )
        async with server:
            yield

    def _handled(self, how: Handler) -> Handler:
        """Return a way to serve a connection that ends when the door closes."""

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - it runs in one
            self._handlers.add(task)
            try:
                with suppress(asyncio.CancelledError):
                    await how(reader, writer)
            finally:
                self._handlers.discard(task)

        return handle

    async def _device(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one device's lines until it leaves, or until one cannot be understood."""
        if len(self._open) >= MOST_DEVICES:
            self._count["refused"] += 1
            await hung_up(writer)
            return
        self._open.add(writer)
        names: set[str] = set()
        try:
            while line := await asyncio.wait_for(reader.readline(), IDLE_SECONDS):
                if not line.endswith(b"\n"):
                    break  # half a line: the device sends it again
                head = _head(line)
                if head is not None:
                    self._devices[head.device] = writer
                    names.add(head.device)
                item = Item(stamped(line, datetime.now(UTC)), self._count["lines"])
                self._count["lines"] += 1
                await self._waiting.put((item, head, writer))
                if head is None:
                    break
        except (ConnectionError, TimeoutError, ValueError):
            self._count["broken off"] += 1  # ValueError: a line that is too long
        finally:
            self._open.discard(writer)
            for name in names:
                if self._devices.get(name) is writer:
                    del self._devices[name]
            await hung_up(writer)

    async def _pump(self) -> None:
        """Write lines to the log, and tell their devices."""
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await asyncio.to_thread(self._write, [item for item, _, _ in batch])
            for _, head, writer in batch:
                if head is not None:
                    self._say(writer, FromDoor(taken=(head.started, head.number)))

    def _write(self, items: Iterable[Item]) -> None:
        for item in items:
            self._feed.put(item)
        self._feed.settle()

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take commands from the sink: each batch ends with an empty line."""
        try:
            while line := await reader.readline():
                if line != b"\n":
                    self._command(msgspec.json.decode(line, type=Command))
                    continue
                writer.write(_TAKEN)
                await writer.drain()
        except (ConnectionError, ValueError):
            self._count["broken off"] += 1
        finally:
            await hung_up(writer)

    def _command(self, command: Command) -> None:
        found = self._devices.get(command.device)
        handed = found is not None and self._say(found, FromDoor(command=command))
        self._count["commands" if handed else "commands to nobody"] += 1

    def _say(self, writer: asyncio.StreamWriter, line: FromDoor) -> bool:
        transport = writer.transport
        if transport.is_closing() or transport.get_write_buffer_size() > MOST_UNREAD:
            return False
        writer.write(msgspec.json.encode(line) + b"\n")
        return True

    def _tell(self) -> None:
        counts = "".join(f", {count:,} {name}" for name, count in sorted(self._count.items()))
        self._feed.tell("devices", f"{len(self._open):,} connected{counts}")


class ToDevices:
    """The sink of commands: each goes to the device that it is for, over the device's socket."""

    delivery: Literal["at_least_once"] = "at_least_once"
    limits = BatchLimits(rows=500)

    def __init__(self, way: Path) -> None:
        self._way = way

    def describe(self) -> str:
        """Return where it writes, for people."""
        return "the sockets of devices"

    def open(self, sink: object) -> _Handing:  # noqa: ARG002 - the protocol gives it
        """Connect to the door."""
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(HANDED_SECONDS)
        try:
            connected.connect(str(self._way))
        except OSError as error:
            connected.close()
            raise _away(error) from error
        return _Handing(connected)


class _Handing:
    """An open connection to the door."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def positions(self) -> dict[int, int]:
        """Return nothing: the group of the sink knows how far it is."""
        return {}

    def write(self, partition: int, rows: Sequence[Row], position: int) -> None:  # noqa: ARG002
        """Hand commands to the door, and wait until it has them."""
        lines = [msgspec.json.encode(row.record) for row in rows]
        try:
            self._socket.sendall(b"\n".join([*lines, b"", b""]))
            answer = self._socket.recv(len(_TAKEN), socket.MSG_WAITALL)
        except OSError as error:
            raise _away(error) from error
        if answer != _TAKEN:
            raise _away("it has hung up")

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _head(line: bytes) -> Head | None:
    try:
        return msgspec.json.decode(line, type=Head)
    except msgspec.MsgspecError:
        return None


def _away(why: object) -> TransientError:
    return TransientError(
        f"the door of devices does not take commands: {why}",
        code="door.away",
        hint="it has to run on the same machine",
    )
