"""A gateway that plays what `tests/conformance/live_clients.json` says, by every way there is.

The member ``live`` of a subscription names who asks and the number of the case: ``python:3``. All
others get one document.
"""

import asyncio
import json
import socket
import threading
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocketDisconnect

CASES = Path(__file__).parent / "conformance" / "live_clients.json"
WEB = Path(__file__).parents[1] / "src" / "penstock" / "client" / "web"
PAGE = '<!doctype html><meta charset="utf-8"><title>t</title><link rel="icon" href="data:,">'
DEFAULT = {
    "resume": None,
    "then": "stay",
    "messages": [
        {"type": "begin", "ordered": True},
        {"type": "first", "documents": [{"_id": "7", "id": "7", "text": "water the plants"}]},
        {"type": "ready", "number": 1, "token": "a"},
    ],
}
UNKNOWN = {"status": 401, "code": "caller.unknown", "detail": "the token has expired"}
_NOBODY = {"status": 422, "code": "test.turn", "detail": "nobody was to ask so"}


class Played:
    """The turns of all who ask, and what they have asked and written."""

    def __init__(self):
        self.cases = json.loads(CASES.read_text("utf-8"))
        self.turns = {}
        self.records = []
        self.protocols = []
        self.refusals = {}

    def next(self, asked):
        """Return the messages of the next turn, and what comes then."""
        name = asked.get("live", "")
        if name not in self.turns:
            number = name.rpartition(":")[2]
            turns = repeat(DEFAULT)
            if number.isdigit():
                turns = iter(self.cases["cases"][int(number)]["turns"])
            self.turns[name] = turns
        turn = next(self.turns[name], None)
        if turn is None:
            return None
        if turn["resume"] != asked.get("resume"):
            problem = {**_NOBODY, "detail": f"{asked.get('resume')} is not {turn['resume']}"}
            return [{"type": "error", "id": asked["id"], "problem": problem}], "stay"
        told = [
            each if each["type"] == "up-to-date" else {**each, "id": asked["id"]}
            for each in turn["messages"]
        ]
        return told, turn["then"]


async def follow_socket(socket_):
    await socket_.accept(subprotocol="penstock.v1")
    socket_.app.state.played.protocols += socket_.scope["subprotocols"][1:]
    try:
        while True:
            asked = json.loads(await socket_.receive_text())
            if asked["type"] == "unsubscribe":
                await socket_.send_text(json.dumps({"type": "end", "id": asked["id"]}))
            if asked["type"] != "subscribe" or not (found := socket_.app.state.played.next(asked)):
                continue
            for message in found[0]:
                await socket_.send_text(json.dumps(message))
            if found[1] == "unknown":
                await socket_.send_text(json.dumps({"type": "error", "problem": UNKNOWN}))
            if found[1] != "stay":
                await socket_.close(1011)
                return
    except WebSocketDisconnect:
        return


async def follow_events(request):
    body = await request.json()
    played = request.app.state.played

    async def told():
        yield "retry: 1000\n\n"
        for asked in body["subscribe"]:
            found = played.next(asked)
            for message in found[0] if found else ():
                yield f"event: {message['type']}\ndata: {json.dumps(message)}\n\n"
            if found and found[1] == "break":
                return
        await asyncio.Event().wait()

    return StreamingResponse(told(), media_type="text/event-stream")


async def poll(request):
    (asked,) = (await request.json())["subscribe"]
    found = request.app.state.played.next(asked)
    if found is None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return Response()
    return JSONResponse({"messages": found[0]})


async def take_record(request):
    """Take a record as its stream is named: refuse it, fail first, or lose the answer."""
    stream, played = request.path_params["stream"], request.app.state.played
    key = request.headers["idempotency-key"]
    played.records.append((stream, key, await request.json()))
    again = key in played.refusals
    played.refusals[key] = stream
    if stream == "refused":
        problem = {"status": 422, "code": "data.invalid-value", "detail": "too long"}
        return JSONResponse(problem, 422)
    if stream == "later" and not again:
        return JSONResponse({"status": 503, "code": "kafka.away"}, 503, {"Retry-After": "0.01"})
    if stream == "lost" and not again:
        raise ConnectionError  # it is written, and nobody is told
    return JSONResponse({"partition": 0, "offset": len(played.records)}, 201)


async def refuse_socket(socket_):
    await socket_.close(1008)


async def hold_events(request):
    """Send nothing, as a proxy does that collects the whole answer first."""

    async def told():
        await asyncio.Event().wait()
        yield ""

    return StreamingResponse(told(), media_type="text/event-stream")


async def refuse_events(request):
    return Response("blocked", 502)


def routes(*, sockets=follow_socket, events=follow_events):
    return [
        WebSocketRoute("/v1/live", sockets),
        Route("/v1/live/events", events, methods=["POST"]),
        Route("/v1/live/poll", poll, methods=["POST"]),
        Route("/v1/streams/{stream}/records", take_record, methods=["POST"]),
    ]


@contextmanager
def scripted_gateway():
    """Give the address, and what is played. Below ``/nosocket`` and ``/onlypolls`` ways are blocked."""
    blocked = {
        "/nosocket": routes(sockets=refuse_socket),
        "/onlypolls": routes(sockets=refuse_socket, events=refuse_events),
        "/held": routes(sockets=refuse_socket, events=hold_events),
    }
    app = Starlette(
        routes=[
            Route("/", lambda _: Response(PAGE, media_type="text/html")),
            *routes(),
            *(Mount(path, _with(each)) for path, each in blocked.items()),
            *(Mount(path, StaticFiles(directory=WEB)) for path in ("/client", "/v1/client")),
        ]
    )
    app.state.played = played = Played()
    for each in app.routes:
        if isinstance(each, Mount) and isinstance(each.app, Starlette):
            each.app.state.played = played
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=0, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", played
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


def _with(several):
    return Starlette(routes=several)
