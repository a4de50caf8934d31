"""Answers the questions of other processes, from a thread with an event loop of its own."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from penstock.errors import ConfigurationError
from penstock.machine.peers.frames import read_frame, welcome, write_frame
from penstock.machine.peers.prompt import Prompt

__all__ = ["MAX_VISITORS", "Answering", "PeerHost"]

MAX_VISITORS = 256
"""So many connections are open at once; more are closed at once."""
_UNDER_WAY = 256
"""So many questions of one connection are answered at a time; it waits to ask more."""
_HANDSHAKE_SECONDS = 5.0
_QUIET_SECONDS = 1.0
"""How long no question comes before other threads have long turns again."""
_PROMPT = Prompt()

Answering = Callable[[bytes], Awaitable[bytes]]
"""From a question to its answer; it must not raise and must not hold the event loop up."""


class PeerHost:
    """Listens while the block runs. ``port`` is chosen by the system."""

    def __init__(self, answer: Answering, *, host: str, secret: bytes) -> None:
        self._answer = answer
        self._secret = secret
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._visitors: set[asyncio.Task[None]] = set()
        self._prompt = self._asked = False
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._listening.bind((host, 0))
            self._listening.listen()
        except OSError as error:
            self._listening.close()
            raise ConfigurationError(
                f"workers cannot answer for their state on {host}",
                code="serving.state-host",
                detail=str(error),
                hint="set serving.state_host to an address of this machine",
            ) from error
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="state-door", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._visited, sock=self._listening)
        await self._end.wait()
        server.close()
        for task in list(self._visitors):
            task.cancel()
        await asyncio.gather(*self._visitors, return_exceptions=True)
        if self._prompt:
            _PROMPT.release()

    def _be_prompt(self) -> None:
        """Take short turns with other threads until no question has come for a while."""
        self._asked = True
        if not self._prompt:
            self._prompt = True
            _PROMPT.hold()
            self._loop.call_later(_QUIET_SECONDS, self._look_quiet)

    def _look_quiet(self) -> None:
        if self._asked:
            self._asked = False
            self._loop.call_later(_QUIET_SECONDS, self._look_quiet)
        elif self._prompt:
            self._prompt = False
            _PROMPT.release()

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._visitors) >= MAX_VISITORS:
            writer.close()
            return
        self._visitors.add(task)
        try:
            await self._talk(reader, writer)
        except (OSError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # the visitor has gone, or is to go
        finally:
            self._visitors.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            if not await welcome(reader, writer, self._secret):
                return
        room = asyncio.Semaphore(_UNDER_WAY)
        async with asyncio.TaskGroup() as answers:
            while True:
                try:
                    number, question = await read_frame(reader)
                except (OSError, EOFError):
                    return  # the visitor has hung up
                self._be_prompt()
                await room.acquire()
                answers.create_task(self._reply(number, question, writer, room))
                if writer.transport.get_write_buffer_size():
                    await writer.drain()

    async def _reply(
        self, number: int, question: bytes, writer: asyncio.StreamWriter, room: asyncio.Semaphore
    ) -> None:
        try:
            write_frame(writer, number, await self._answer(question))
        finally:
            room.release()
