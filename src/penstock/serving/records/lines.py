"""A stream of lines in, a stream of lines out: memory is bounded however long both are."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.errors import PenstockError
from penstock.serving.http.bodies import NDJSON, Bodies
from penstock.serving.http.problems import Problem, problem_of
from penstock.serving.meter import Meter
from penstock.serving.records.answers import lines_of, too_long
from penstock.serving.records.counting import settle
from penstock.serving.writing.intake import Intake, Outcome, Writing
from penstock.serving.writing.parsing import RecordReader

__all__ = ["WINDOW", "LineAnswer"]

WINDOW = 32
"""So many handfuls of lines of one request are on their way to the log at a time."""
_LINES_AT_ONCE = 2000

_Part = tuple[list[int], Writing]


class LineAnswer(Response):
    """The answer to a stream of lines: a line for each, in order, while the body still comes.

    The last line counts them, and has the problem that ended it early, if one did: also one that
    ``still`` raises, when the caller may not go on.
    """

    def __init__(
        self,
        reader: RecordReader,
        request: Request,
        *,
        intake: Intake,
        bodies: Bodies,
        meter: Meter,
        each: bool,
        still: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._request = request
        self._intake = intake
        self._bodies = bodies
        self._meter = meter
        self._each = each
        self._still = still

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        del scope, receive  # the request has them
        headers = [(b"content-type", NDJSON.encode()), (b"cache-control", b"no-store")]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        begun = False
        accepted = refused = 0
        ending: dict[str, Any] = {}
        try:
            async with aclosing(self._outcomes()) as parts:
                async for numbers, outcomes in parts:
                    lines, good, bad, failed = lines_of(numbers, outcomes, each=self._each)
                    accepted, refused = accepted + good, refused + bad
                    if not begun:
                        begun = True
                        await send(start)
                    if lines:
                        body = b"\n".join(lines) + b"\n"
                        await send({"type": "http.response.body", "body": body, "more_body": True})
                    if failed is not None:
                        ending = {"problem": problem_of(failed).document()}
                        break
        except (Problem, PenstockError) as error:
            if not begun:
                raise
            problem = error if isinstance(error, Problem) else problem_of(error)
            ending = {"problem": problem.document()}
        if not begun:
            await send(start)
        last = msgspec.json.encode({"accepted": accepted, "refused": refused, **ending}) + b"\n"
        await send({"type": "http.response.body", "body": last, "more_body": False})

    async def _outcomes(self) -> AsyncGenerator[tuple[list[int], list[Outcome]], None]:
        """Yield what became of the lines, in order, while further ones are being read."""
        writings: asyncio.Queue[_Part | None] = asyncio.Queue(WINDOW)
        reading = asyncio.create_task(self._send(writings))
        try:
            while (part := await writings.get()) is not None:
                numbers, writing = part
                await writing.done
                settle(self._meter, writing.outcomes)
                yield numbers, writing.outcomes
            await reading
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await reading
            while not writings.empty():
                if (part := writings.get_nowait()) is not None:
                    await part[1].done
                    settle(self._meter, part[1].outcomes)

    async def _send(self, writings: "asyncio.Queue[_Part | None]") -> None:
        """Read the lines of the body and send them; what was sent goes into the queue, in order."""
        try:
            await self._send_all(writings)
        except asyncio.CancelledError:
            raise
        except BaseException:
            await writings.put(None)
            raise
        await writings.put(None)

    async def _send_all(self, writings: "asyncio.Queue[_Part | None]") -> None:
        reader = self._reader
        most = reader.stream.topic.max_record_bytes
        async with aclosing(self._bodies.lines(self._request, most=most)) as bodies:
            async for lines in bodies:
                self._still()
                for start in range(0, len(lines), _LINES_AT_ONCE):
                    some = lines[start : start + _LINES_AT_ONCE]
                    await self._intake.wait_for_room()
                    records = [
                        too_long(most) if raw is None else reader.read(raw) for _, raw in some
                    ]
                    self._meter.took(len(records))
                    writing = self._intake.send(reader.stream, records)
                    try:
                        await writings.put(([number for number, _ in some], writing))
                    except asyncio.CancelledError:
                        self._meter.undone(len(records))
                        raise
