"""Asks the workers that own the state: any process of a gateway answers for all of them.

Who owns a task is what its group says: each member's name tells where its process answers, and its
assignment which partitions it has. The group is asked when nothing is known, when it is a while
ago, and when an owner says that a task has moved. What cannot be answered now is a TransientError.

Where a question may be answered by a standby, the other members are asked as long as the owner is
away: whoever has a copy of the task answers from it, and says so.
"""

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from penstock.backbone.client.connection import Connection
from penstock.backbone.log.groups import Groups
from penstock.backbone.topics.topics import Topics
from penstock.core.asking.questions import (
    Answer,
    Question,
    Refused,
    Rows,
    Scan,
    decode_answer,
    encode_question,
)
from penstock.core.asking.where import address_in
from penstock.core.graph.parts import Service
from penstock.core.partitioner import partition_of
from penstock.errors import ConfigurationError, PenstockError, TransientError
from penstock.machine.peers.visitor import Visitor

__all__ = ["Owners", "Routes"]

_FRESH_SECONDS = 5.0
"""How long what a group said is believed."""
_AGAIN_SECONDS = 0.2
"""How soon a group is asked again, at the earliest; and a question that found nobody."""
_ATTEMPTS = 6
_ANSWER_SECONDS = 10.0
_OWNER_SECONDS = 2.0
"""How long an owner may be silent before a standby is asked; a page of a scan may take longer."""
_SUSPECT_SECONDS = 5.0
"""How long a standby is asked before an owner that was silent."""
_MOVED = frozenset({"state.moved", "peer.gone", "peer.slow"})


@dataclass(frozen=True, slots=True)
class Routes:
    """Where the tasks of a service are, as its group said at a moment."""

    count: int
    addresses: Mapping[int, str]
    """Tasks to where their owner answers; one that is moving is not here."""
    members: tuple[str, ...] = ()
    """Where all members of the group answer: any of them may have a copy of a task."""
    at: float = field(default_factory=monotonic)


class Owners:
    """The owners of all tasks of an application, for one event loop."""

    def __init__(self, app: str, connection: Connection, secret: bytes) -> None:
        self._app = app
        self._connection = connection
        self._secret = secret
        self._routes: dict[str, Routes] = {}
        self._asking: dict[str, asyncio.Task[Routes]] = {}
        self._visitors: dict[str, Visitor] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._silent: dict[str, float] = {}
        """Owners that gave no answer in time, and until when they are asked last."""

    async def task_of(self, service: Service, key: bytes) -> int:
        """Return the number of the task that has a key."""
        return partition_of(key, (await self._known(service)).count)

    async def tasks(self, service: Service) -> range:
        """Return the numbers of all tasks."""
        return range((await self._known(service)).count)

    async def routes(self, service: Service) -> Routes:
        """Return where the tasks of a service are, as far as that is known."""
        return await self._known(service)

    async def ask(
        self, service: Service, question: Question, *, max_stale: float | None = None
    ) -> Rows:
        """Return the answer of whoever owns the question's task.

        Where the question allows for it, a standby that is not staler than ``max_stale`` seconds
        answers while nobody does. TransientError ``state.moving``: nobody has the task now.
        ``position.behind``: it is not there yet. ConfigurationError: the worker has another secret,
        or no such state.
        """
        return (await self.ask_where(service, question, max_stale=max_stale))[1]

    async def ask_where(
        self, service: Service, question: Question, *, max_stale: float | None = None
    ) -> tuple[str, Rows]:
        """Return the answer of whoever owns the question's task, and where they are."""
        payload, why = encode_question(question), ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                # Everybody who asks finds out at the same moment: they must not all come at once.
                await asyncio.sleep(_AGAIN_SECONDS * (0.5 + random.random()))  # noqa: S311
            routes = await self._known(service, anew=attempt > 0)
            address = routes.addresses.get(question.task)
            if self._silent.get(address or "", 0.0) > monotonic() and question.standby:
                copied = await self._copied(routes, question, max_stale)
                if copied is not None:
                    return copied
            answer = await self._of_owner(address, payload, question)
            if isinstance(answer, Rows):
                return address or "", answer
            why = answer
            if question.standby:
                copied = await self._copied(routes, question, max_stale)
                if copied is not None:
                    return copied
        raise TransientError(
            f"the state of {service.name} is moving: {why}", code="state.moving", hint="ask again"
        )

    async def _of_owner(
        self, address: str | None, payload: bytes, question: Question
    ) -> Rows | str:
        """Return the answer of an owner; or why it has none, which may pass."""
        if address is None:
            return "nobody has its partition now"
        paged = isinstance(question, Scan)
        seconds = _OWNER_SECONDS if question.standby and not paged else _ANSWER_SECONDS
        try:
            answer = await self._asked(address, payload, question.wait_seconds + seconds)
        except TransientError as error:
            if error.code not in _MOVED:
                raise
            if error.code == "peer.slow":
                self._silent[address] = monotonic() + _SUSPECT_SECONDS
            return error.message
        if isinstance(answer, Rows):
            self._silent.pop(address, None)
            return answer
        if answer.code not in _MOVED:
            raise _refusal(answer)
        return answer.text

    async def _copied(
        self, routes: Routes, question: Question, max_stale: float | None
    ) -> tuple[str, Rows] | None:
        """Return the answer of a standby, and where it is; None: no copy is good enough now."""
        wait = min(question.wait_seconds, _AGAIN_SECONDS)
        payload = encode_question(msgspec.structs.replace(question, wait_seconds=wait))
        owner = routes.addresses.get(question.task)
        for address in routes.members:
            if address == owner:
                continue
            try:
                answer = await self._asked(address, payload, wait + _OWNER_SECONDS)
            except PenstockError:
                continue
            if not isinstance(answer, Rows):
                continue
            age = answer.stale_seconds
            if max_stale is None or (age is not None and age <= max_stale):
                return address, answer
        return None

    async def ask_at(self, address: str, question: Question) -> Rows:
        """Return the answer of one worker: about what it holds for us, which nobody else has.

        TransientError where it has it no more.
        """
        seconds = question.wait_seconds + _ANSWER_SECONDS
        answer = await self._asked(address, encode_question(question), seconds)
        if isinstance(answer, Rows):
            return answer
        raise _refusal(answer)

    async def aclose(self) -> None:
        """Hang up everywhere."""
        for asking in self._asking.values():
            asking.cancel()
        for visitor in self._visitors.values():
            await visitor.close()

    async def _asked(self, address: str, payload: bytes, seconds: float) -> Answer:
        visitor = self._visitors.get(address)
        if visitor is None or visitor.gone:
            async with self._locks.setdefault(address, asyncio.Lock()):
                visitor = self._visitors.get(address)
                if visitor is None or visitor.gone:
                    visitor = await Visitor.connect(address, self._secret)
                    self._visitors[address] = visitor
        return decode_answer(await visitor.ask(payload, seconds=seconds))

    async def _known(self, service: Service, *, anew: bool = False) -> Routes:
        """Return what is known; what is old is asked for behind the answer, or before it."""
        routes = self._routes.get(service.name)
        age = monotonic() - routes.at if routes is not None else float("inf")
        if routes is not None and age < (_AGAIN_SECONDS if anew else _FRESH_SECONDS):
            return routes
        asking = self._asking.get(service.name)
        if asking is None:
            asking = asyncio.create_task(self._learn(service))
            self._asking[service.name] = asking
            asking.add_done_callback(lambda done: self._learnt(service.name, done))
        if routes is not None and not anew:
            return routes
        return await asyncio.shield(asking)

    def _learnt(self, name: str, done: asyncio.Task[Routes]) -> None:
        self._asking.pop(name, None)
        if not done.cancelled():
            done.exception()  # whoever waits for it has it

    async def _learn(self, service: Service) -> Routes:
        routes = await asyncio.to_thread(self._look, service)
        self._routes[service.name] = routes
        gone = set(self._visitors) - {
            address
            for each in self._routes.values()
            for address in (*each.addresses.values(), *each.members)
        }
        for address in gone:
            with suppress(PenstockError):
                await self._visitors.pop(address).close()
        return routes

    def _look(self, service: Service) -> Routes:
        """Ask the group and the topic; this waits."""
        topic = service.reads[0].topic.name
        count = len(Topics(self._connection).ends(topic))
        addresses: dict[int, str] = {}
        members: list[str] = []
        for member in Groups(self._connection).members(f"{self._app}.{service.name}"):
            if address := address_in(member.client):
                addresses |= {number: address for _, number in member.partitions}
                members.append(address)
        return Routes(count, addresses, tuple(members))


def _refusal(answer: Refused) -> PenstockError:
    if answer.code in {"state.unknown", "question.unreadable"}:
        return ConfigurationError(
            answer.text,
            code=answer.code,
            hint="run the gateway and its services from the same version of the application",
        )
    return TransientError(answer.text, code=answer.code)
