"""What can be shown of a run: the report, and a score of the past computed once more."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from apps.anomaly.evidence.explain import ExplainError, explain
from apps.anomaly.evidence.plots import WIDTH, points
from apps.anomaly.evidence.report import TOPICS, page
from apps.anomaly.scoring import MODEL, score
from tests.devicefleet import at, model, ordinary

from penstock.models import sealed

HOSTILE = '<script>alert("x")</script>'


def row(number, device="a", **more):
    return {"device": device, "at": at(number).isoformat(), "started": 1, "number": number} | more


def change(number, before, state, device=HOSTILE):
    return row(number, device, before=before, state=state, legal=True)


@pytest.fixture
def found():
    return {
        "telemetry": [
            row(n, device, metrics=ordinary(n, device)) for n in range(50) for device in "ab"
        ],
        "anomalies": [row(7, contributions={"machine.celsius.level": 3.0})],
        "samples": [row(n, score=n / 100, model_version=1 + n // 50) for n in range(100)],
        "drift_alarms": [{"at": at(3).isoformat(), "version": 1, "of": "score", "index": 0.5}],
        "decisions": [
            {
                "at": at(9).isoformat(),
                "published": 2,
                "in_service": 1,
                "chosen": "medians of all",
                "losses": {"in service": 0.4, "medians of all": 0.3},
            }
        ],
        "model_versions": [
            {"version": 1, "model": MODEL, "trained_on": HOSTILE, "figures": {"samples": 3.0}}
        ],
        "device_changes": [
            change(1, "healthy", "failing"),
            change(2, "failing", "draining"),
            change(6, "draining", "off"),
        ],
        "notices": [row(5, text=HOSTILE)],
    }


def test_the_report_has_every_plot_loads_nothing_and_shows_the_texts_of_strangers_as_texts(found):
    shown = page(found)
    assert HOSTILE not in shown
    assert "1 recoveries, the median is 5.0 s" in shown
    assert "version 2" in shown
    assert not re.search(r"(src|href)=|https?://|@import|url\(", shown)
    plots = re.findall(r"<svg.*?</svg>", shown, re.DOTALL)
    assert len(plots) == 7
    for plot in plots:
        ET.fromstring(plot)  # noqa: S314 - it is ours
    assert plots[0].count("<circle") == 1  # the anomaly is marked
    [takeover] = [plot for plot in plots if 'aria-label="take-over"' in plot]
    assert takeover.count("<polyline") == 2
    assert takeover.count("stroke-dasharray") == 2  # a drift alarm, and what was published
    old, new = (re.findall(r"points=\"(.*?)\"", takeover)[n].split() for n in (0, 1))
    assert float(old[0].split(",")[1]) < float(old[-1].split(",")[1])  # it goes from 1 to 0
    assert float(new[0].split(",")[1]) > float(new[-1].split(",")[1])


def test_a_legend_is_never_cut_by_the_edge_of_its_plot():
    names = [f"version 1, app.{'a' * 10 * n} of servers" for n in range(9)]
    shown = points({name: [(0.0, 1.0), (9.0, 2.0)] for name in names}, "long")
    for entry in re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="start">(.*?)<', shown):
        assert float(entry[0]) + 6 * len(entry[1]) <= WIDTH


def test_a_report_of_nothing_says_so():
    shown = page({topic: [] for topic in TOPICS})
    assert shown.count("nothing to show") >= 4


class Lake:
    """Answers of the lake: a record, and the version that scored it."""

    def __init__(self, **changed):
        learnt = model()
        features = {"machine.celsius.level": 95.0, "os.load.level": 0.4}
        value = score(learnt, "server", features).value
        version = sealed(MODEL, 3, learnt, trained_on="samples 0: 0-9")
        self.row = {
            **row(7, kind="server", score=value, model_version=3, features=features),
            **{
                name: getattr(version, name)
                for name in ("sha256", "shape", "parameters", "trained_on", "figures")
            },
        } | changed
        self.asked = []

    def __call__(self, text):
        self.asked.append(text)
        return [self.row] if self.row["device"] else []


def test_a_score_is_computed_once_more_to_the_last_bit():
    found = explain("a/1/7", Lake())
    assert found.same
    text = "\n".join(found.lines())
    assert "trained on samples 0: 0-9" in text
    assert "the same to the last bit" in text
    assert "machine.celsius.level" in text
    assert not explain("a/1/7", Lake(score=0.75)).same


@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        ("a/1", {}, "is no id"),
        ("a' or 1=1 --/1/7", {}, "is no id"),
        ("a/1/7", {"device": ""}, "not in the lake"),
        ("a/1/7", {"sha256": None}, "version 3 is not in the lake"),
        ("a/1/7", {"parameters": "{}"}, "not what was published"),
        ("a/1/7", {"kind": "toaster"}, "does not know"),
    ],
)
def test_what_cannot_be_explained_is_said(name, changed, says):
    lake = Lake(**changed)
    with pytest.raises(ExplainError, match=says):
        explain(name, lake)
    assert bool(lake.asked) == ("no id" not in says)


def test_the_demo_is_the_application_with_a_fleet_and_a_story():
    root = Path(__file__).parents[4]
    text = (
        "from apps.anomaly.demo import PARTS, app\n"
        "from penstock.core.rules.check import check\n"
        "missing = set(PARTS) - {part.name for part in app.graph.parts}\n"
        "print(missing, check(app.graph))"
    )
    command = [sys.executable, "-c", text]  # of its own: it adds to the application
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "set() []\n"
