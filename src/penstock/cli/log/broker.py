"""``penstock broker``: the embedded broker in the foreground, for others to join."""

import argparse

from penstock.cli.arguments import command
from penstock.cli.brokerguard import guarded_log
from penstock.cli.session import Session
from penstock.cli.stopping import stop_on_signals
from penstock.core.settings.settings import EMBEDDED
from penstock.errors import ConfigurationError

__all__ = ["register"]

_LOOK_SECONDS = 0.5


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    command(parser, _broker)


def _broker(session: Session) -> int:
    settings = session.loaded.settings
    if settings.kafka.bootstrap != EMBEDDED:
        raise ConfigurationError(
            f"the configuration names a cluster: {settings.kafka.bootstrap}",
            code="broker.not-embedded",
            hint="penstock config explain kafka.bootstrap",
        )
    session.prepare_broker()
    terminal = session.terminal
    with (
        stop_on_signals() as stop,
        guarded_log(settings, session.places, note=terminal.note) as log,
    ):
        terminal.line(log.connection.bootstrap)
        terminal.note("it runs until Ctrl-C")
        while not stop.event.wait(_LOOK_SECONDS):
            pass  # whoever guards it looks after it
        terminal.note("stopping the broker")
    return stop.exit_code
