"""``penstock export``: files for other systems that watch applications."""

import argparse
import json
from pathlib import Path

from penstock.cli.arguments import add_verb, command
from penstock.cli.screen.terminal import shortened
from penstock.cli.session import Session
from penstock.core.status.dashboards import ALERTS, alert_rules, dashboard
from penstock.errors import ConfigurationError
from penstock.machine.files import write_atomically

__all__ = ["register"]

_READABLE = 0o644


def register(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs and their arguments."""
    verbs = parser.add_subparsers(metavar="grafana", required=True)
    grafana = add_verb(verbs, "grafana", "write a dashboard for Grafana and alerts for Prometheus")
    grafana.add_argument(
        "--output", type=Path, default=Path(), metavar="DIRECTORY", help="where to write the files"
    )
    command(grafana, _grafana)


def _grafana(session: Session) -> None:
    directory: Path = session.arguments.output
    files = {
        directory / "penstock-dashboard.json": json.dumps(dashboard(), indent=1) + "\n",
        directory / "penstock-alerts.yaml": alert_rules(),
    }
    for path, text in files.items():
        try:
            write_atomically(path, text, mode=_READABLE)
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be written: {error.strerror}",
                code="export.write",
                hint="choose another directory: --output DIRECTORY",
            ) from error
        session.terminal.line(shortened(path))
    session.terminal.note(f"a dashboard, and {len(ALERTS)} alerts whose thresholds are a start")
