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
OTHER = [
    {"type": "must-refetch", "reason": "other rows"},
    {"type": "begin", "ordered": True},
    {"type": "first", "documents": [{"_id": "9", "id": "9"}]},
    {"type": "ready", "number": 5, "token": "o"},
]
UNKNOWN = {"status": 401, "code": "caller.unknown", "detail": "the token has expired"}
_NOBODY = {"status": 422, "code": "test.turn", "detail": "nobody was to ask so"}


class Played:
    """The turns of all who ask, and what they have asked and written."""

    def __init__(self):
        self.cases = json.loads(CASES.read_text("utf-8"))
        self.turns = {}
        self.asked = []
        self.records = []
        self.requests = []
        self.written = {}
        self.protocols = []
        self.bearers = []
        self.tokens = []
        self.refusals = {}
        self.sockets = 0
        self.pings = 0
        self.deaf = False
        self.blocked = True

    def next(self, asked):
        """Return the messages of the next turn, and what comes then."""
        name = asked.get("live", "")
        self.asked.append(asked)
        if callable(turn := self.turns.get(name)):
            return [{**each, "id": asked["id"]} for each in turn(asked)], "stay"
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

    def answer(self, asked):
        """Return what is told of anything else; a caller with the token ``other`` sees other rows."""
        if asked["type"] == "unsubscribe":
            return [{"type": "end", "id": asked["id"]}]
        if asked["type"] == "ping":
            self.pings += 1
            return [] if self.deaf else [{"type": "pong"}]
        self.tokens.append(asked["token"])
        told = [{"type": "authenticated", "name": "ann"}]
        if asked["token"] == "other":  # noqa: S105 - nobody's
            told += [each | {"id": self.asked[-1]["id"]} for each in OTHER]
        return told


async def follow_socket(socket_):
    await socket_.accept(subprotocol="penstock.v1")
    played = socket_.app.state.played
    played.sockets += 1
    played.protocols += socket_.scope["subprotocols"][1:]
    try:
        while True:
            asked = json.loads(await socket_.receive_text())
            if asked["type"] != "subscribe":
                for message in played.answer(asked):
                    await socket_.send_text(json.dumps(message))
                continue
            if not (found := played.next(asked)):
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
    played.bearers.append(request.headers.get("authorization"))

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
    await asyncio.sleep(0.03)  # longer than a page gathers what changes
    return JSONResponse({"messages": found[0]})


async def take_record(request):
    """Take records as their stream is named: refuse them, fail first, or lose the answer."""
    stream, played = request.path_params["stream"], request.app.state.played
    key, body = request.headers["idempotency-key"], await request.body()
    given = json.loads(body)
    records = given if isinstance(given, list) else [given]
    played.requests.append((stream, key, len(records)))
    played.records += [(stream, key, each) for each in records]
    again = key in played.refusals
    played.refusals[key] = stream
    if problem := _problem(stream, records, listed=records is given):
        return JSONResponse(problem, problem["status"])
    if stream == "later" and not again:
        return JSONResponse({"status": 503, "code": "kafka.away"}, 503, {"Retry-After": "0.01"})
    if played.written.setdefault(key, (stream, body)) != (stream, body):
        return JSONResponse({"status": 422, "code": "idempotency.reused"}, 422)
    if stream == "lost" and not again:
        raise ConnectionError  # it is written, and nobody is told
    places = [{"partition": 0, "offset": len(played.records)} for _ in records]
    return JSONResponse({"records": places} if records is given else places[0], 201)


def _problem(stream, records, *, listed):
    """Return why nothing of a request is taken, as a gateway says it."""
    bad = [at for at, each in enumerate(records) if each.get("bad") or stream == "refused"]
    mistake = {"code": "data.invalid-value", "detail": "too long"}
    if bad and listed and stream == "unreadable":
        return {"status": 400, "code": "data.not-json", "detail": "the body is not JSON"}
    if bad and listed:
        listed = [{"index": at, **mistake} for at in bad[:20]]
        return {"status": 422, "code": "request.mistakes", "detail": "none", "errors": listed}
    if bad:
        return {"status": 422, **mistake}
    if stream == "narrow" and len(records) > 3:
        return {"status": 413, "code": "request.too-many", "detail": "3 records at once"}
    return None


async def follow_or_refuse(socket_):
    """Follow, unless sockets are blocked just now."""
    await (refuse_socket if socket_.app.state.played.blocked else follow_socket)(socket_)


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
        "/unsteady": routes(sockets=follow_or_refuse),
        "/unsteadypolls": routes(sockets=follow_or_refuse, events=refuse_events),
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
