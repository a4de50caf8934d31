"""schemathesis against a gateway that has one of everything: no answer is a 500, or undocumented."""

import os
import subprocess
import sys
import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Literal

import pytest

from penstock import App, State, limits, record
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified
from penstock.state import MapState

from .serving_site import open_door, working

NOT_HERE = ("positive_data_acceptance",)
"""An Idempotency-Key that is used again for another body is refused, and no schema can say so."""
SEEDS = os.environ.get("PENSTOCK_CHAOS_SEEDS", "1").split()
LONG = len(SEEDS) > 1
PHASES = "coverage,fuzzing,stateful" if LONG else "coverage,stateful"


@record()
class Part:
    name: str
    weight: float | None = None


@record(key=("site", "number"))
class Thing:
    site: str
    number: int
    kind: Literal["pump", "valve"]
    share: Annotated[float, limits(ge=0, le=1)]
    name: Annotated[str, limits(min_length=1, max_length=20)] = "x"
    seen: datetime | None = None
    day: date | None = None
    price: Decimal | None = None
    raw: bytes = b""
    good: bool = True
    parts: list[Part] = []  # noqa: RUF012 - a record copies it
    tags: dict[str, int] = {}  # noqa: RUF012


@record()
class Note:
    text: str


@pytest.fixture(scope="module")
def url(kafka, tmp_path_factory):
    home, name = tmp_path_factory.mktemp("everything"), f"all{time.time_ns()}"
    app = App(name)
    things = app.stream(f"{name}.things", Thing)
    notes = app.stream(f"{name}.notes", Note, partition_by="round_robin")
    latest = app.table(f"{name}.latest", Thing)
    checks = app.questions(f"{name}.checks", Thing, answers=Note)

    @app.service(reads=things, writes=latest)
    def keep(thing: Thing, count: State[int], seen: MapState[str, int]) -> Thing:
        count.set(count.get(0) + 1)
        seen[thing.kind] = thing.number
        return thing

    @app.service(answers=checks)
    def look(thing: Thing) -> Note:
        return Note(thing.name)

    app.gateway("door", takes=(things, notes), shows=(latest, keep), offers=checks)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    moment = timedelta(milliseconds=50)
    door = open_door(graph, kafka, home, wait_limit=moment)
    keeping, looking = (working(graph, kafka, home, each) for each in ("keep", "look"))
    with keeping, looking, door as opened:
        yield f"http://127.0.0.1:{opened.port}"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_answer_is_a_500_or_undocumented(url, tmp_path, seed):
    # What is not to be had now is a 503 that says when to come again, or a 504 with a ticket.
    expected = '["2xx", "3xx", "4xx", 503, 504]'
    (tmp_path / "schemathesis.toml").write_text(
        f"[checks]\nnot_a_server_error.expected-statuses = {expected}\n"
    )
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/v1/openapi.json"),
        *("--checks", "all", "--exclude-checks", ",".join(NOT_HERE)),
        *("--phases", PHASES, "--request-timeout", "60"),
        *("--exclude-path-regex", "/changes$"),  # these answers have no end
        *("--max-examples", "100" if LONG else "5", "--seed", seed, "--workers", "4"),
    ]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
