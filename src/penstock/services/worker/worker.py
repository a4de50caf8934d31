"""One worker of a service: a member of its group that takes tasks over, runs them and commits."""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from penstock.backbone.client.connection import Connection
from penstock.backbone.site import Site
from penstock.core.graph.graph import Graph
from penstock.core.graph.parts import Service
from penstock.errors import FencedError, TransientError
from penstock.services.state.wholetables import whole_tables
from penstock.services.task.disk import Disk
from penstock.services.task.factory import TaskFactory
from penstock.services.task.following import Following
from penstock.services.task.kafkalog import KafkaServiceLog
from penstock.services.task.servicelog import Member, ServiceLog
from penstock.services.task.takeover import BACKOFF
from penstock.services.usererrors import LOG
from penstock.services.worker.assignment import Assignment
from penstock.services.worker.care import Care
from penstock.services.worker.loop import Loop
from penstock.services.worker.membership import PollInterval
from penstock.services.worker.topicwatch import TopicWatch, topics_of
from penstock.services.worker.work import Activity, Work

__all__ = ["MAX_TAKEOVERS", "Worker"]

MAX_TAKEOVERS = 8
"""How many tasks are restored at a time."""


class Worker:
    """Runs one service until ``site.stop`` is set.

    Records are handled one at a time and in order per partition, by this thread alone; memory is
    bounded by what the client fetches ahead and what waits to be sent. A cluster that is away is
    waited for; errors that will not pass are raised.

    The work is cut into slices that are shorter than any time-out it is done under, however slow
    the function. A single call is not interrupted: one that outlives the transaction it is part of
    is made again in a transaction of its own, and one that outlives the membership is made again
    with a membership that lasts twice as long.

    ``log`` is the log below the service; without it, that of the site's cluster.
    """

    def __init__(
        self, graph: Graph, service: Service, site: Site, *, log: ServiceLog | None = None
    ) -> None:
        settings = site.settings.services
        self._service = service
        self._site = site
        self._settings = settings
        self.log = log or KafkaServiceLog(
            graph, service, connection=_patient(site), settings=settings
        )
        self._executor = ThreadPoolExecutor(
            MAX_TAKEOVERS, thread_name_prefix=f"{service.name}-takeover"
        )
        disk = Disk(graph, service, site, log=self.log)
        following = Following(self.log, whole_tables(service))
        factory = TaskFactory(graph, service, self.log, disk=disk, followed=following)
        exactly = service.delivery == "exactly_once"
        self.work = Work(
            group=f"{graph.app}.{service.name}",
            assignment=Assignment(factory, settings=settings, executor=self._executor),
            disk=disk,
            following=following,
            care=Care(settings.transaction_timeout if exactly else None),
            poll_interval=PollInterval(service.name, settings.poll_interval),
            activity=Activity(service.name),
            topics=TopicWatch(
                f"{graph.app}.{service.name}",
                *topics_of(graph, service),
                keeps_state=service.keeps_state,
                shapes=self.log.shapes,
            ),
        )

    def run(self) -> None:
        """Work until told to stop; then commit, leave the group and return."""
        self.work.activity.start()
        self.work.disk.start()
        self.work.following.start()
        with self._executor:
            try:
                self._work_on()
            finally:
                self.work.following.close()
                self.work.disk.close()

    def _work_on(self) -> None:
        work, delays = self.work, BACKOFF.delays()
        while not self._site.stop.is_set():
            began = monotonic()
            try:
                self._be_member()
            except (TransientError, FencedError) as error:
                LOG.warning("%s starts again: %s", work.group, error)
                work.trouble = work.setback = error.message
                work.measures.restarts += 1
                if BACKOFF.is_over(monotonic() - began):
                    delays = BACKOFF.delays()
                self._site.stop.wait(next(delays))

    def _be_member(self) -> None:
        """Be a member of the group from joining to leaving."""
        work = self.work
        work.assignment.joined = False
        member = self.log.join(work.assignment.listener(), poll_interval=work.poll_interval.allowed)
        loop = Loop(work, member, service=self._service, settings=self._settings)
        try:
            self._run(loop, member)
        except (TransientError, FencedError):
            loop.look_back()
            raise
        finally:
            work.activity.end()
            work.care.forget()
            if member.trouble() is not None:
                work.assignment.leave()
            member.close()
            work.assignment.leave()

    def _run(self, loop: Loop, member: Member) -> None:
        loop.run(self._site.stop)
        if member.trouble() is None:
            loop.commit()
            self.work.disk.save_positions(self.work.assignment.tasks())


def _patient(site: Site) -> Connection:
    """Return the connection with waits that fit into the time for a stop: a commit is two calls."""
    longest = site.connection.settings.request_timeout
    return site.connection.within(min(longest, site.settings.services.stop_timeout / 2))
