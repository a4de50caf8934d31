"""``POST /v1/streams/{name}/records``: one record, a list, or lines for as long as one likes.

And ``/v1/streams/{name}/socket``, which takes the same records over a WebSocket.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.core.graph.gateway import Gateway
from penstock.core.settings.settings import ServingSettings
from penstock.serving.http.bodies import NDJSON, Bodies, content_type
from penstock.serving.http.conversation import Conversation
from penstock.serving.http.problems import Problem
from penstock.serving.http.rights import require_right, require_still, while_allowed
from penstock.serving.meter import Meter
from penstock.serving.records.answers import mistaken, one_answer, several_answer
from penstock.serving.records.counting import settle
from penstock.serving.records.lines import LineAnswer
from penstock.serving.records.socket import RecordSocket
from penstock.serving.writing.keys import IdempotencyKey, idempotency_key
from penstock.serving.writing.parsing import Mistake, RecordReader, Taken, parts_of
from penstock.serving.writing.slots import Once, Target, digest_of
from penstock.serving.writing.writer import Writer

__all__ = ["RecordRoutes"]

_ANSWERS = {"each": True, "summary": False}
_TRUTHS = {"true": True, "1": True, "": True, "false": False, "0": False}


class RecordRoutes:
    """Takes records for the streams of a gateway."""

    def __init__(
        self,
        gateway: Gateway,
        settings: ServingSettings,
        *,
        writer: Writer,
        meter: Meter,
    ) -> None:
        self._gateway = gateway
        self._readers = {stream.name: RecordReader(stream) for stream in gateway.takes}
        self._bodies = Bodies(
            body_bytes=settings.body_bytes,
            silence_seconds=settings.silence_timeout.total_seconds(),
        )
        self._batch = settings.batch_records
        self._writer = writer
        self._intake = writer.intake
        self._transactions = writer.transactions
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; an ASGI application, because this is done for every record."""
        response = await self.post(Request(scope, receive, send))
        await response(scope, receive, send)

    async def post(self, request: Request) -> Response:
        """Return the answer to a request."""
        reader = self._reader(request.scope)
        kind = content_type(request)
        atomic, each = False, True
        if request.scope["query_string"]:
            atomic = _choice(request, "atomic", _TRUTHS, allowed="true or false")
            each = _choice(request, "answer", _ANSWERS, allowed="each or summary", usual=True)
        once = idempotency_key(request)
        if once is None and not atomic and kind == NDJSON:
            self._intake.require_room(0)
            return LineAnswer(
                reader,
                request,
                intake=self._intake,
                bodies=self._bodies,
                meter=self._meter,
                each=each,
                still=self._still(request.scope, reader),
            )
        body = await self._bodies.whole(request)
        raws, listed = self._split(body, kind)
        records = [reader.read(raw) for raw in raws]
        if once is None and not atomic:
            return await self._write(reader, records, listed=listed)
        return await self._write_once(reader, records, listed=listed, key=once, body=body)

    async def converse(self, conversation: Conversation) -> None:
        """Take records over a WebSocket."""
        reader = self._reader(conversation.scope)
        await conversation.accept()
        taking = RecordSocket(conversation, reader, intake=self._intake, meter=self._meter).take()
        await while_allowed(taking, conversation.scope, self._gateway, reader.stream.name)

    def _still(self, scope: Scope, reader: RecordReader) -> Callable[[], None]:
        return partial(require_still, scope, self._gateway, reader.stream.name)

    def _reader(self, scope: Scope) -> RecordReader:
        name = scope["path_params"]["name"]
        reader = self._readers.get(name)
        if reader is None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "stream.unknown",
                f"this gateway takes no records for {name!r}",
                allowed=", ".join(self._readers),
            )
        require_right(scope, self._gateway, name)
        return reader

    def _split(self, body: bytes, kind: str) -> tuple[list[bytes], bool]:
        if kind != NDJSON:
            return parts_of(body, most=self._batch)
        lines = [line for line in body.split(b"\n") if line.strip()]
        if len(lines) > self._batch:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "request.too-many",
                f"the request has {len(lines)} records",
                allowed=f"{self._batch} records in an atomic request",
            )
        return lines, True

    async def _write(
        self, reader: RecordReader, records: Sequence[Taken | Mistake], *, listed: bool
    ) -> Response:
        good = [type(each) for each in records].count(Taken)
        if good:
            self._intake.require_room(good)
        self._meter.took(len(records))
        writing = self._intake.send(reader.stream, records)
        await writing.done
        settle(self._meter, writing.outcomes)
        if not listed:
            return one_answer(writing.outcomes[0])
        return several_answer(writing.outcomes)

    async def _write_once(
        self,
        reader: RecordReader,
        records: Sequence[Taken | Mistake],
        *,
        listed: bool,
        key: IdempotencyKey | None,
        body: bytes,
    ) -> Response:
        mistakes = [(at, each) for at, each in enumerate(records) if isinstance(each, Mistake)]
        self._meter.took(len(records))
        if mistakes:
            self._meter.settled(refused=len(records))
            if not listed:
                return one_answer(mistakes[0][1])
            raise mistaken(mistakes, of=len(records))
        taken = [each for each in records if isinstance(each, Taken)]
        topic = reader.stream.topic.name
        once = None
        if key is not None:
            request = digest_of([topic.encode(), b"%d" % listed, body])
            once = Once(key=key.scoped(topic), request=request)
        target = Target(topic=topic, partitions=self._writer.partitions.get(topic))
        try:
            self._intake.require_room(0)
            written = await self._transactions.write(target, taken, once=once)
        except BaseException:
            self._meter.undone(len(records))
            raise
        again = written.before
        self._meter.settled(passed=0 if again else len(taken), refused=len(taken) * again)
        stands = written.stands
        answer = one_answer(stands[0]) if not listed else several_answer(stands)
        if again:
            answer.headers["Idempotency-Replayed"] = "true"
        return answer


def _choice(
    request: Request, name: str, known: Mapping[str, bool], *, allowed: str, usual: bool = False
) -> bool:
    """Return what a query says of something; Problem ``query.value``."""
    given = request.query_params.getlist(name)
    if not given:
        return usual
    if len(given) > 1 or given[0] not in known:
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "query.value",
            f"{name} is {', '.join(given)!r}",
            allowed=allowed,
            path=name,
        )
    return known[given[0]]
