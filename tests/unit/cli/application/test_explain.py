"""What `penstock explain` says, and that it starts nothing to say it."""

import subprocess
import sys

import pytest

APP = """
from datetime import datetime

from penstock import App, EventTime, record
from penstock.aggregates import count, mean, maximum, quantile
from penstock.triggers import every_record, on_watermark
from penstock.windows import counted, fixed, retracting

app = App("plant")


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime
    celsius: float


event_time = EventTime(disorder="30s", idle_after="2m", closes_after="5m", ahead="1h")
readings = app.stream("readings", Reading, event_time=event_time)
calm = app.stream("calm", Reading, partitions=1)
by_minute = (
    readings.where("celsius > -273.15")
    .window(fixed("1m"), by="device", lateness="10m")
    .trigger(on_watermark(late=every_record()))
    .accumulate(retracting)
    .aggregate(fahrenheit=mean("celsius * 1.8 + 32"), middle=quantile("celsius", 0.5))
)
app.table("by_minute", by_minute)
app.stream("panes", by_minute, on="services")
app.table("hourly", calm.window(fixed("1h"), by="device").aggregate(hottest=maximum("celsius")))
app.stream("hundreds", readings.window(counted(100), by="device").aggregate(n=count("celsius")))
app.stream("arriving", calm.window(fixed("1m"), time="processing").aggregate(n=count()))


@app.service(reads=readings)
def hear(reading: Reading) -> None: ...
"""


@pytest.fixture(autouse=True)
def application(project):
    (project / "app.py").write_text(APP)


def test_an_aggregation_is_explained_with_every_reason(penstock):
    answer = penstock("explain", ".", "by_minute.windows")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "by_minute.windows  (windowed aggregation, on Spark)",
        "  computed by   the pane machine in Spark's state store",
        "  because       the trigger fires at other times than once, at the end of the window",
        "                the watermark follows the slowest partition; Spark's own follows the newest one",
        "                windows close on an idle stream (closes_after)",
        "                records ahead of the clock are set aside (ahead)",
        "                middle: Spark has no Quantile that gives the same answer",
        "  stream        readings",
        "  selection     celsius > -273.15",
        "  by            device = `device` (text)",
        "  windows       FixedWindows(size 1m, offset 0s)",
        "  time          event",
        "  trigger       AfterWatermark(late Repeat(inner AfterCount(count 1)))",
        "  accumulation  retracting",
        (
            "  aggregates    fahrenheit = Mean of celsius * 1.8 + 32 (float to float), "
            "middle = Quantile(share 0.5, error 0.01) of celsius (float to float)"
        ),
        "  lateness      10m",
        "  stamp         end",
        "  final pane    if_new",
        "  on time pane  always",
        "  watermark     30s behind the newest record of the slowest partition",
        "                an idle partition holds it back for 2m",
        "                if no record has come for 5m, it follows the clock",
        (
            "                records more than 1h ahead of the clock do not move it"
            " and go to the late ledger"
        ),
        "  panes to      table by_minute, keyed by device, window_start",
        "  late to       topic plant.late",
        "  fields        device: text",
        "                window_start: instant",
        "                window_end: instant",
        "                fahrenheit: float or null",
        "                middle: float or null",
        "                pane: one of early, on_time, late",
        "                pane_index: int",
        "                pane_last: bool",
    ]


def test_every_part_is_explained_and_others_are_a_short_line(penstock):
    answer = penstock("explain")
    titles = [line for line in answer.out.splitlines() if line and not line.startswith(" ")]
    assert titles == [
        "by_minute.windows  (windowed aggregation, on Spark)",
        "panes.windows  (windowed aggregation, on services)",
        "hourly.windows  (windowed aggregation, on Spark)",
        "hundreds.windows  (windowed aggregation, on Spark)",
        "arriving.windows  (windowed aggregation, on Spark)",
        "hear  (service, exactly once)",
    ]
    assert answer.out.splitlines()[-4:] == [
        "  reads readings",
        "  on errors     decode: dead letter",
        "                process: dead letter",
        "                produce: dead letter",
    ]


def test_the_explanation_comes_as_json(penstock):
    answer = penstock("explain", ".", "hourly.windows", "--json").json
    (part,) = answer["parts"]
    windows = part.pop("windows")
    assert answer["app"] == "plant"
    assert part == {
        "part": "hourly.windows",
        "is": "windowed aggregation, on Spark",
        "reads": ["calm"],
        "writes": ["hourly"],
    }
    assert (windows["runs_on"], windows["way"]) == ("spark", "native")
    assert windows["not_native_because"] == []
    assert windows["computes"]["aggregates"] == "hottest = Max of celsius (float to float)"
    assert windows["computes"]["lateness"] == "0s"
    assert windows["panes_to"] == {"kind": "table", "name": "hourly", "topic": "hourly"}
    assert windows["late_records_to"] == "plant.late"
    assert windows["key"] == ["device", "window_start"]
    assert windows["fields"][:2] == ["device: text", "window_start: instant"]


@pytest.mark.parametrize(
    ("name", "way", "watermark"),
    [
        (
            "panes",
            "services",
            "one for each partition, 30s behind its newest record",
        ),
        ("hourly", "native", "at the newest record"),
        ("hundreds", "panes", "windows of a number of records do not use it"),
        ("arriving", "panes", "it follows the clock: windows are in processing time"),
    ],
)
def test_a_part_is_found_by_what_it_fills_and_says_how_its_watermark_moves(
    penstock, name, way, watermark
):
    (part,) = penstock("explain", ".", name, "--json").json["parts"]
    assert part["part"] == f"{name}.windows"
    assert part["windows"]["way"] == way
    assert part["windows"]["watermark"][0] == watermark


def test_an_unknown_part_is_an_error_with_the_nearest_name(penstock):
    answer = penstock("explain", ".", "by_minuet")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == (
        "error: plant has no part by_minuet [part.unknown]\n"
        "  hint: did you mean 'by_minute.windows'?\n"
    )


def test_a_pipeline_says_what_it_looks_up_and_that_real_time_is_at_least_once(penstock, project):
    more = """
from penstock import real_time

devices = app.table("devices", Reading)


@app.pipeline(reads=(readings, devices), writes=calm, trigger=real_time())
def pass_on(readings, devices):
    return readings
"""
    (project / "app.py").write_text(APP + more)
    assert penstock("explain", ".", "pass_on").out.splitlines() == [
        "pass_on  (pipeline, real-time, append, at least once)",
        "  reads readings, devices, writes calm",
        "  looks up devices, as it is at each batch",
        "  at least once: after a crash, output may be written again",
    ]


def test_a_wrong_application_is_refused_with_its_problems(penstock, project):
    (project / "app.py").write_text(APP.replace("celsius > -273.15", "celcius > 0"))
    answer = penstock("explain")
    assert answer.code == 1
    assert "expression.unknown-field" in answer.err


def test_nothing_is_started_and_the_kafka_client_is_not_even_loaded(project):
    code = (
        "import sys\nfrom penstock.cli.main import main\n"
        "code = main(['explain', '--json'])\n"
        "from pyspark import SparkContext\n"
        "started = SparkContext._gateway is not None or 'confluent_kafka' in sys.modules\n"
        "sys.exit('it started something' if started else code)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=project
    )
    assert ran.returncode == 0, ran.stderr
    assert '"way":"native"' in ran.stdout


SERVICES = """
from datetime import datetime, timedelta
from typing import Annotated

from penstock import App, State, Timer, Timers, on_error, record, retry, ttl
from penstock.state import ListState, MapState

app = App("plant")


@record(key="device", time="at")
class Reading:
    device: str
    at: datetime


readings = app.stream("readings", Reading)


@app.service(
    reads=readings,
    delivery="at_least_once",
    concurrency=100,
    timeout="5s",
    errors=on_error(
        decode="stop", process=retry(5, first="200ms", longest="10s", then="stop")
    ),
)
class Ask:
    async def process(
        self,
        reading: Reading,
        asked: Annotated[State[int], ttl("1h30m")],
        recent: ListState[float],
        by_hour: MapState[int, list[str]],
        timers: Timers,
    ) -> None: ...

    async def on_timer(self, timer: Timer) -> None: ...
"""


def test_a_service_is_explained_with_what_it_keeps_and_what_it_does_on_errors(penstock, project):
    (project / "app.py").write_text(SERVICES)
    assert penstock("explain").out.splitlines() == [
        "Ask  (service, at least once, state asked, recent, by_hour)",
        "  reads readings",
        "  async         up to 100 calls at a time in each partition, each for at most 5s",
        "  state         asked: State[int], forgotten 1h30m after it was written",
        "                recent: ListState[float]",
        "                by_hour: MapState[int, list[str]]",
        "  timers        yes",
        "  changelog     topic plant.Ask.changelog",
        "  on errors     decode: stop",
        (
            "                process: retried up to 5 times, after 200ms, "
            "then twice as long up to 10s; then stop"
        ),
        "                produce: dead letter",
    ]


def test_the_facts_of_a_service_come_as_json(penstock, project):
    (project / "app.py").write_text(SERVICES)
    (part,) = penstock("explain", "--json").json["parts"]
    assert part["service"] == {
        "delivery": "at_least_once",
        "concurrency": 100,
        "timeout": "5s",
        "states": [
            {"name": "asked", "type": "State[int]", "ttl": "1h30m"},
            {"name": "recent", "type": "ListState[float]", "ttl": None},
            {"name": "by_hour", "type": "MapState[int, list[str]]", "ttl": None},
        ],
        "asks": [],
        "answers": [],
        "timers": True,
        "changelog": "plant.Ask.changelog",
        "errors": {
            "decode": {"then": "stop"},
            "process": {"retries": 5, "first": "200ms", "longest": "10s", "then": "stop"},
            "produce": {"then": "dead_letter"},
        },
    }


OPERATORS = """
from penstock import App, record

app = App("plant")


@record(key="device")
class Reading:
    device: str
    number: int


readings = app.stream("readings", Reading)
app.stream("once", readings.deduplicate(by="number", within="1h"), on="services")
app.stream("few", readings.where("number < 3").select(device="device"), on="services")
"""


def test_an_operator_says_which_state_it_holds_and_for_how_long(penstock, project):
    (project / "app.py").write_text(OPERATORS)
    answer = penstock("explain", ".", "once")
    assert answer.out.splitlines() == [
        "once.filling  (deduplication, on services, exactly once)",
        "  reads         stream readings",
        "  stream        readings",
        "  by            number = `number`",
        (
            "  holds         the key, number and the event time of each record that was passed on,"
            " until event time is 2h past it"
        ),
        "  changelog     topic plant.once.filling.changelog",
        "  results to    stream once, keyed by device",
        "  late to       topic plant.late",
        "  fields        device: text",
        "                number: int",
    ]
    facts = penstock("explain", ".", "few", "--json").json["parts"][0]["operator"]
    assert (facts["kind"], facts["holds"], facts["changelog"]) == ("selection", [], None)
    assert facts["computes"] == {"stream": "readings", "selection": "number < 3; device = device"}
