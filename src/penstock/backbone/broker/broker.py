"""The embedded broker: real Apache Kafka in one directory, shared by whoever uses it."""

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.backbone.broker.node import STOP_GRACE, BrokerNode
from penstock.backbone.broker.plan import ClusterPlan, plan_of
from penstock.backbone.client.connection import Connection
from penstock.backbone.client.contact import LOG
from penstock.core.settings.settings import KafkaSettings
from penstock.errors import ConfigurationError
from penstock.machine.locks import FileLock
from penstock.machine.ports import port_answers, port_is_free
from penstock.machine.private import make_private

__all__ = ["EmbeddedBroker"]

_SIZES = (1, 3)
_START_LIMIT = timedelta(seconds=60)
_STOP_LIMIT = STOP_GRACE + timedelta(seconds=5)
_PORT_ATTEMPTS = 3
_POLL_SECONDS = 0.05
_ASK_SECONDS = 2.0


class EmbeddedBroker:
    """One or three brokers in a directory, running while anybody owns them.

    ``start`` joins the brokers if they run already, started by whomever, else it starts them; data
    and ports stay from run to run. Every ``start`` makes an owner. Brokers stop with the last
    owner's ``stop``, and within seconds when the last owner dies, however it dies. They listen on
    the loopback address only, without authentication: any local user can reach them.

    Three brokers keep three copies of everything and go on when one of them dies.
    """

    def __init__(self, directory: Path, settings: KafkaSettings | None = None) -> None:
        self.directory = directory.absolute()
        self.settings = settings or KafkaSettings()
        if self.settings.brokers not in _SIZES:
            raise ConfigurationError(
                f"kafka.brokers is {self.settings.brokers}",
                code="kafka.brokers",
                hint="set it to 1, or to 3 to try failures",
            )
        self._plan: ClusterPlan | None = None
        self._nodes: tuple[BrokerNode, ...] = ()
        self._lock = threading.RLock()

    def start(self, *, timeout: timedelta = _START_LIMIT) -> Self:
        """Become an owner, and return when the brokers answer.

        If this object is an owner already, it returns at once. Raises ConfigurationError with the
        end of the broker's log (``broker.*``), or what the broker lacks (``java.missing``,
        ``jars.missing``).
        """
        deadline = time.monotonic() + timeout.total_seconds()
        with self._lock, self._turn(deadline):
            if self._nodes:
                return self
            plan = plan_of(self.directory, brokers=self.settings.brokers)
            nodes = tuple(
                BrokerNode(self.directory, node.node_id, self.settings) for node in plan.nodes
            )
            try:
                self._own(nodes, deadline)
                self._plan = self._bring_up(nodes, plan, deadline)
            except BaseException:
                self._let_go(nodes)
                raise
            self._nodes = nodes
        return self

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses."""
        if self._plan is None:
            raise ConfigurationError(
                f"the embedded broker in {self.directory} was not started",
                code="broker.not-started",
            )
        return self._plan.bootstrap

    @property
    def connection(self) -> Connection:
        """How to reach the brokers. Three of them keep as many copies unless told otherwise."""
        copies = self.settings.replication if self.settings.replication > 1 else len(self._nodes)
        return Connection(self.bootstrap, replace(self.settings, replication=copies))

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the brokers that run, in their order."""
        return tuple(pid for node in self._nodes if (pid := node.kept.pid()) is not None)

    def alive(self) -> bool:
        """Whether this is an owner and every broker's process runs."""
        return bool(self._nodes) and all(node.kept.running() for node in self._nodes)

    def ended(self) -> str | None:
        """Return which broker's process does not run, with the end of its log; None if all do."""
        for node in self._nodes:
            if not node.kept.running():
                return str(node.failure("has ended"))
        return None

    def ensure(self, *, timeout: timedelta = _START_LIMIT) -> None:
        """Start again, on the same ports, the brokers that died; return when all answer."""
        deadline = time.monotonic() + timeout.total_seconds()
        with self._lock:
            if self._plan is None or not self._nodes:
                self.start(timeout=timeout)
                return
            with self._turn(deadline):
                self._run(self._nodes, self._plan, deadline)

    def kill(self, index: int = 0) -> None:
        """Kill one broker's process, as a crash would."""
        self._nodes[index].kill()

    def stop(self) -> None:
        """Give up ownership; the last owner waits until the brokers have stopped."""
        with self._lock:
            nodes, self._nodes = self._nodes, ()
            if nodes:
                # Having the turn keeps two owners that stop at once from hiding each other's
                # end; without it the brokers stop just as well, only unwaited for.
                with FileLock(self.directory / "start.lock") as turn:
                    turn.wait(timeout=_STOP_LIMIT)
                    self._let_go(nodes)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    @contextmanager
    def _turn(self, deadline: float) -> Iterator[None]:
        """Let one process at a time start brokers here; raise if the directory cannot be used."""
        try:
            make_private(self.directory)
            with FileLock(self.directory / "start.lock") as lock:
                if not lock.wait(timeout=_left(deadline)):
                    raise ConfigurationError(
                        f"another process is starting or stopping the broker in {self.directory}",
                        code="broker.busy",
                        hint="try again when that is done",
                    )
                yield
        except OSError as error:
            full = error.errno == errno.ENOSPC
            raise ConfigurationError(
                f"the broker's directory {self.directory} cannot be used: {error.strerror}",
                code="broker.disk-full" if full else "broker.directory",
                detail=str(error.filename or ""),
                hint="make room on the disk" if full else "set home to a directory of your own",
            ) from error

    @staticmethod
    def _own(nodes: tuple[BrokerNode, ...], deadline: float) -> None:
        for node in nodes:
            if not node.kept.own(timeout=_left(deadline)):
                raise node.failure("is being stopped by another process, and does not end")

    def _bring_up(
        self, nodes: tuple[BrokerNode, ...], plan: ClusterPlan, deadline: float
    ) -> ClusterPlan:
        """Start the brokers that do not run; return the plan, whose ports may have changed."""
        for node in nodes:
            node.kept.end_orphan()
        if any(node.kept.running() for node in nodes) or nodes[0].kept.owned_by_others():
            return self._run(nodes, plan, deadline)  # somebody counts on the ports
        for _ in range(_PORT_ATTEMPTS - 1):
            if not all(port_is_free(port) for port in plan.ports):
                plan = plan.moved()
            try:
                return self._run(nodes, plan, deadline)
            except ConfigurationError as error:
                if error.code != "broker.port-taken":
                    raise
                for node in nodes:
                    node.kill()
        return self._run(nodes, plan.moved(), deadline)

    def _run(
        self, nodes: tuple[BrokerNode, ...], plan: ClusterPlan, deadline: float
    ) -> ClusterPlan:
        """Start the brokers that do not run; return when all answer."""
        plan.write(self.directory)
        started: set[BrokerNode] = set()
        client: AdminClient | None = None
        while True:
            for node in nodes:
                if not node.kept.running():
                    if node in started:
                        raise node.failure()
                    # Also one that was found running and died since.
                    node.start(plan)
                    started.add(node)
            # Only when all listen: a client that finds nobody waits before it tries again.
            if client is None and all(port_answers(node.port) for node in plan.nodes):
                config = Connection(plan.bootstrap, self.settings).client_config()
                client = AdminClient(config, logger=LOG)
            if client is not None and _answers(client, brokers=len(nodes)):
                return plan
            if time.monotonic() >= deadline:
                raise nodes[0].failure("does not answer in time")
            time.sleep(_POLL_SECONDS)

    @staticmethod
    def _let_go(nodes: tuple[BrokerNode, ...]) -> None:
        """Give up ownership of every broker, then wait for those that stop."""
        stopping = [node for node in nodes if node.kept.disown()]
        for node in stopping:
            node.kept.wait_until_stopped(timeout=_STOP_LIMIT)


def _answers(client: AdminClient, *, brokers: int) -> bool:
    try:
        return len(client.list_topics(timeout=_ASK_SECONDS).brokers) == brokers
    except KafkaException:
        return False


def _left(deadline: float) -> timedelta:
    return timedelta(seconds=max(0.0, deadline - time.monotonic()))
