"""What the ``penstock`` command is used for from here: the application, its topics, and queries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["APP", "RunningError", "penstock", "queried", "tailed"]

APP = Path(__file__).parents[1]
TAIL_SECONDS = 60.0
QUERY_SECONDS = 300.0


class RunningError(Exception):
    """The command said no; the message is what it said."""


def penstock(*arguments: str) -> list[str]:
    """Return a command line of ``penstock``, with the settings of this process."""
    home = os.environ.get("ANOMALY_HOME")
    return [
        *(sys.executable, "-m", "penstock.cli"),
        *(("--set", f"home={home}") if home else ()),
        *arguments,
    ]


def tailed(topic: str, *, limit: int = 100_000) -> list[dict[str, Any]]:
    """Return the newest records of a topic, oldest first."""
    return [
        line["value"]
        for line in _said(
            ("topics", "tail", topic, "--json", "--limit", str(limit)), seconds=TAIL_SECONDS
        )
        if isinstance(line.get("value"), dict)
    ]


def queried(text: str) -> list[dict[str, Any]]:
    """Return the rows of a query over streams, tables and the lake, which Spark runs."""
    return list(_said(("query", str(APP), text, "--json"), seconds=QUERY_SECONDS))


def _said(arguments: Sequence[str], *, seconds: float) -> Iterator[dict[str, Any]]:
    try:
        done = subprocess.run(
            penstock(*arguments), capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RunningError(f"no answer within {seconds:g} s: {arguments[0]}") from error
    if done.returncode != 0:
        raise RunningError(done.stderr.strip() or f"{arguments[0]} failed")
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            yield json.loads(line)
