"""What every verb uses: its arguments, the terminal, the configuration, the connection."""

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cached_property, partial
from threading import Timer
from typing import TYPE_CHECKING

from penstock.cli.load import Application, load_application
from penstock.cli.screen.terminal import Terminal
from penstock.core.rules.check import verified
from penstock.core.settings.settings import EMBEDDED
from penstock.machine.configfile import Loaded, load_configuration
from penstock.machine.java.jars import JarSet, missing_jars
from penstock.machine.packages import require_spark
from penstock.machine.places import Places
from penstock.machine.private import OWNER_ONLY, make_private

if TYPE_CHECKING:
    from penstock.backbone.client.connection import Connection

__all__ = ["Session"]

Note = Callable[[str], None]
_PATIENCE_SECONDS = 0.7


class Session:
    """One run of the command. What a verb does not ask for is not read or started."""

    def __init__(self, arguments: Namespace, terminal: Terminal) -> None:
        self.arguments = arguments
        self.terminal = terminal

    @cached_property
    def loaded(self) -> Loaded:
        """The configuration of this run."""
        return load_configuration(
            file=self.arguments.config,
            profile=self.arguments.profile,
            flags=dict(self.arguments.settings),
        )

    @cached_property
    def application(self) -> Application:
        """The application that the arguments name, verified."""
        application = load_application(self.arguments.app)
        verified(application.graph)
        return application

    @cached_property
    def places(self) -> Places:
        """The directories of this run, created and closed to other users.

        So is whatever the run makes, unless the lake, checkpoints or state are elsewhere: there
        others may be meant to read.
        """
        settings, places = self.loaded.settings, self.loaded.places
        with suppress(OSError):  # where it cannot be made, whoever needs it says so
            if warning := make_private(places.home):
                self.terminal.warn(warning)
        elsewhere = (settings.lake.path, settings.spark.checkpoint_dir, settings.services.state_dir)
        if not any(elsewhere):
            os.umask(OWNER_ONLY)
        return places

    def prepare_broker(self) -> None:
        """Fetch what the embedded broker runs on, unless it is here, or a cluster is configured."""
        if self.loaded.settings.kafka.bootstrap == EMBEDDED:
            self._fetch_missing(JarSet.KAFKA)

    def prepare_spark(self) -> None:
        """Fetch what Spark runs on, unless it is here; ``spark.missing`` without its packages."""
        require_spark()
        self._fetch_missing(JarSet.SPARK)

    def _fetch_missing(self, jar_set: JarSet) -> None:
        # Looked at first: the modules that fetch are not for every start.
        if missing_jars(jar_set):
            from penstock.cli.screen.fetchbar import fetch_and_show
            from penstock.machine.java.fetch import ensure_jars

            ensure_jars(jar_set, fetch=partial(fetch_and_show, self.terminal))

    def connected(self) -> AbstractContextManager["Connection"]:
        """Give a connection to the log; an embedded broker is joined, or started for the time."""
        from penstock.backbone.connect import connected

        self.prepare_broker()
        settings, places = self.loaded.settings, self.places
        return self._patient(lambda note: connected(settings, places, note=note))

    def guarded(self) -> AbstractContextManager["Connection"]:
        """Give a connection as :meth:`connected` does; a broker that dies is started again."""
        from penstock.cli.brokerguard import guarded_log

        self.prepare_broker()
        settings, places, tell = self.loaded.settings, self.places, self.terminal.note

        @contextmanager
        def opened(note: Note) -> Iterator["Connection"]:
            with guarded_log(settings, places, note=tell, starting=note) as log:
                yield log.connection

        return self._patient(opened)

    @contextmanager
    def _patient(
        self, opened: Callable[[Note], AbstractContextManager["Connection"]]
    ) -> Iterator["Connection"]:
        """Report the start of a broker only if it takes a while; joining one is not reported."""
        timers: list[Timer] = []

        def note(text: str) -> None:
            timers.append(Timer(_PATIENCE_SECONDS, self.terminal.note, [text]))
            timers[-1].daemon = True
            timers[-1].start()

        with ExitStack() as stack:
            try:
                connection = stack.enter_context(opened(note))
            finally:
                for timer in timers:
                    timer.cancel()
            yield connection
