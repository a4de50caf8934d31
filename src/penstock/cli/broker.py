"""``penstock broker``: the embedded broker in the foreground, for others to join."""

import argparse

from penstock.cli.arguments import command
from penstock.cli.session import Session
from penstock.cli.stopping import stop_on_signals
from penstock.core.settings import EMBEDDED
from penstock.errors import ConfigurationError

__all__ = ["register"]

_LOOK_SECONDS = 0.5


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    command(parser, _broker)


def _broker(session: Session) -> int:
    settings, places = session.loaded.settings, session.loaded.places
    if settings.kafka.bootstrap != EMBEDDED:
        raise ConfigurationError(
            f"the configuration names a cluster: {settings.kafka.bootstrap}",
            code="broker.not-embedded",
            hint="penstock config explain kafka.bootstrap",
        )
    from penstock.backbone.broker import EmbeddedBroker

    terminal = session.terminal
    terminal.note(f"starting the embedded broker in {places.broker}")
    with stop_on_signals() as stop, EmbeddedBroker(places.broker, settings.kafka) as broker:
        terminal.line(broker.bootstrap)
        terminal.note("it runs until Ctrl-C")
        while not stop.event.wait(_LOOK_SECONDS):
            if not broker.alive():
                terminal.warn("the broker died; starting it again on the same ports")
                broker.ensure()
                terminal.note("the broker is back")
        terminal.note("stopping the broker")
    return stop.exit_code
