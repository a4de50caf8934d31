"""The paths of a desk: each question in a thread of a few, each stream in a thread of its own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from penstock.errors import PenstockError
from penstock.serving.desk.doing import read_body, require_key
from penstock.serving.desk.offers import Asked, Event, Offers, Question, Stream
from penstock.serving.files.route import FileRoute
from penstock.serving.files.served import Files
from penstock.serving.http.problems import Problem, problem_of

__all__ = ["STREAMS", "DeskRoutes"]

ANSWERING = 8
"""The most questions that are answered at once; the others wait."""
STREAMS = 24
"""The most streams at once; more are refused."""
_CHUNKS_AHEAD = 16
"""The most events that wait for a client to read."""
_LOOK_SECONDS = 0.2
_BEAT_SECONDS = 15.0
"""How long nothing is sent before a comment says that the stream is there."""
_FIRST = b"retry: 1000\n\n"
_FOREIGN = frozenset({"cross-site", "same-site"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
"""What every answer says to a browser: guess nothing, keep nothing, give it to nobody else."""


class DeskRoutes:
    """The routes to what is offered; for one event loop."""

    def __init__(self, offers: Offers) -> None:
        self.routes: list[BaseRoute] = [
            *(
                Route(path, partial(self._answer, question), methods=["GET"])
                for path, question in offers.questions.items()
            ),
            *(
                Route(path, partial(self._stream, stream), methods=["GET"])
                for path, stream in offers.streams.items()
            ),
        ]
        self._key = offers.key
        self.routes += [
            Route(path, partial(self._act, action), methods=["POST"])
            for path, action in offers.actions.items()
        ]
        if offers.files is not None:
            files = Files(offers.files)
            names = frozenset(files.names()) | {""}
            self.routes.append(FileRoute(files, wants=names.__contains__))
        self._executor = ThreadPoolExecutor(ANSWERING, thread_name_prefix="desk")
        self._streaming: set[_Streaming] = set()
        self._ended = False

    def end(self) -> None:
        """End the streams, and answer nothing more."""
        self._ended = True
        for each in self._streaming:
            each.end()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, question: Question, request: Request) -> Response:
        _refuse_foreign(request)
        return await self._run(question, _asked(request))

    async def _act(self, action: Question, request: Request) -> Response:
        require_key(request, self._key)
        return await self._run(action, replace(_asked(request), body=await read_body(request)))

    async def _run(self, question: Question, asked: Asked) -> Response:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._executor, question, asked)
        headers = {**HEADERS, **found.headers}
        return Response(found.body, found.status, headers=headers, media_type=found.kind)

    async def _stream(self, stream: Stream, request: Request) -> Response:
        _refuse_foreign(request)
        if self._ended or len(self._streaming) >= STREAMS:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "streams.too-many",
                f"{STREAMS} streams are under way",
                retry_after=5,
            )
        streaming = _Streaming(stream, _asked(request), asyncio.get_running_loop())
        self._streaming.add(streaming)
        try:
            first = await streaming.first()
        except BaseException:
            self._streaming.discard(streaming)
            streaming.end()
            raise

        async def chunks() -> AsyncIterator[bytes]:
            try:
                yield _FIRST + first
                while (chunk := await streaming.next()) is not None:
                    yield chunk
            finally:
                streaming.end()
                self._streaming.discard(streaming)

        return StreamingResponse(chunks(), headers=HEADERS, media_type="text/event-stream")


class _Streaming:
    """One stream under way: its thread makes events, the event loop sends them."""

    def __init__(self, stream: Stream, asked: Asked, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._asked = asked
        self._loop = loop
        self._chunks: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(_CHUNKS_AHEAD)
        threading.Thread(target=self._run, name="desk-stream", daemon=True).start()

    def end(self) -> None:
        """Ask the thread to end."""
        self._asked.stop.set()
        self._chunks.put_nowait(None)

    async def first(self) -> bytes:
        """Return what comes first, so that a refusal has a status of its own."""
        return await self._next(_LOOK_SECONDS * 5) or b""

    async def next(self) -> bytes | None:
        """Return what comes next, or a comment after a while of silence; None: nothing more."""
        return await self._next(_BEAT_SECONDS)

    async def _next(self, seconds: float) -> bytes | None:
        try:
            found = await asyncio.wait_for(self._chunks.get(), seconds)
        except TimeoutError:
            return b": here\n\n"
        if isinstance(found, BaseException):
            raise found
        self._room.release()
        return found

    def _run(self) -> None:
        last: BaseException | None = None
        try:
            for event in self._events():
                while not self._room.acquire(timeout=_LOOK_SECONDS):
                    if self._asked.stop.is_set():
                        return
                if self._asked.stop.is_set():
                    return
                self._put(event.encoded())
        except Exception as error:  # noqa: BLE001 - it is raised where the client is answered
            last = error
        finally:
            self._put(last)

    def _events(self) -> Iterator[Event]:
        begun = False
        try:
            for event in self._stream(self._asked):
                begun = True
                yield event
        except PenstockError as error:
            if not begun:
                raise
            yield Event("problem", problem_of(error).document() | {"detail": error.message})

    def _put(self, chunk: bytes | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)
        except RuntimeError:
            self._asked.stop.set()  # the loop has ended, and with it the client


def _asked(request: Request) -> Asked:
    query = dict(request.query_params)
    after = request.headers.get("last-event-id", "") or query.get("after", "")
    return Asked(path=dict(request.path_params), query=query, after=after)


def _refuse_foreign(request: Request) -> None:
    """Refuse what a page of somebody else asks for; to come here by a link is allowed."""
    headers = request.headers
    if headers.get("sec-fetch-site") in _FOREIGN and headers.get("sec-fetch-mode") != "navigate":
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "origin.foreign",
            "pages of other origins have nothing to ask here",
        )
