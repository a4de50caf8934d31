"""Life cycles on Spark: what a service gives, over a restart, and over a finished range."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from penstock import record
from penstock.lifecycles import lifecycle
from penstock.testing import Driver

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1200)]

START_AT = datetime(2026, 1, 1, tzinfo=UTC)


@record(key="drive", time="at")
class Smart:
    drive: str
    at: datetime
    errors: int


RECORDS = [
    Smart(f"d{number % 7}", START_AT + timedelta(minutes=number), (3, 12, 120, 0, 15)[number % 5])
    for number in range(150)
]


def declared(app, name: str, *, on: str):
    smart = app.stream(f"{name}smart", Smart, partitions=2)
    life = (
        lifecycle("healthy", "suspect", "failing")
        .on(smart, "healthy -> suspect", where="errors >= 10")
        .on(smart, "suspect -> healthy", where="errors = 0")
        .on(smart, "suspect -> failing", where="errors >= 100")
        .after("30m", "failing -> suspect")
        .rests("healthy", "suspect")
        .entering("failing", command="concat('drain ', drive)")
    )
    return smart, app.stream(f"{name}changes", life, on=on)


def rows_of(found) -> dict[str, list]:
    rows: dict[str, list] = {}
    for each in found:
        told = [each[name] for name in ("before", "state", "cause", "legal", "command")]
        told[2] = told[2].rpartition(".")[2]  # without what keeps this test's topics apart
        rows.setdefault(each["drive"], []).append([*told, each["at"]])
    return rows


def expected() -> dict[str, list]:
    from penstock import App

    app = App("driver")
    smart, changes = declared(app, "", on="services")
    driver = Driver(app)
    driver.pipe(smart, *RECORDS)
    return rows_of(json.loads(raw.value()) for raw in driver.read_raw(changes))


def test_a_life_cycle_gives_on_spark_what_it_gives_in_a_service(ground):
    declared(ground.app, ground.topic(""), on="spark")
    ground.declare()
    rows = [
        (
            each.drive.encode(),
            json.dumps(
                {
                    "drive": each.drive,
                    "errors": each.errors,
                    "at": each.at.isoformat().replace("+00:00", "Z"),
                }
            ).encode(),
        )
        for each in RECORDS
    ]
    filling, wanted = ground.topic("changes.filling"), expected()

    def found():
        return rows_of(json.loads(each.value) for each in ground.read("changes"))

    with ground.running(filling):
        ground.send("smart", *rows[:70])
        ground.wait("some", lambda: len(found()) == 7)
    with ground.running(filling):
        ground.send("smart", *rows[70:])
        ground.wait(
            "all", lambda: all(len(found().get(key, ())) >= len(wanted[key]) - 1 for key in wanted)
        )
    for key, changes in found().items():
        causes = [each for each in wanted[key] if each[2] != "time-out"]
        assert [each[:5] for each in changes if each[2] != "time-out"] == [e[:5] for e in causes]
