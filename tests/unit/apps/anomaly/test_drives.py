"""Drives: what their values say, a model that cannot be mistaken for another, and its alarms."""

import csv
import gzip
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from apps.anomaly.__main__ import main
from apps.anomaly.drives.features import FEATURES, DriveDay, DriveHistory
from apps.anomaly.drives.files import read_days
from apps.anomaly.drives.model import DriveModel, ModelError, load_model
from apps.anomaly.drives.replay import outcome, replay
from apps.anomaly.drives.training import model_risks, with_threshold

from penstock.models import sealed

FIRST = datetime(2013, 4, 10, tzinfo=UTC)


def day(number, *, serial="A", model="M", sectors=0, pending=0, hours=None):
    hours = 20_000 + 24 * number if hours is None else hours
    at = FIRST + timedelta(days=number)
    return DriveDay(serial, at, model, 1_000_000_000_000, 7, sectors, hours, pending)


def seen(days, risk=0.1):
    """Return the last history of some days, and the features of each day."""
    history, found = DriveHistory(), []
    for each in days:
        before, history = history, history.after(each)
        features = history.features(each, before=before, model_risk=risk)
        found.append(dict(zip(FEATURES, features, strict=True)))
    return history, found


def made(**given):
    weights = {"pending": 2.0, "stalled": 5.0} | given.pop("weights", {})
    return DriveModel(
        features=list(FEATURES),
        weights=[weights.get(name, 0.0) for name in FEATURES],
        intercept=-4.0,
        threshold=given.pop("threshold", 0.5),
        certain=given.pop("certain", 0.9),
        risks={"M": 0.1},
        usual_risk=0.05,
    )


def test_what_a_drive_remembers_is_its_worst_day_and_the_last_week():
    days = [day(number, sectors=number, pending=3 - number % 4) for number in range(10)]
    history, [*_, found] = seen(days)
    assert found["reallocated"] == pytest.approx(logged(9))
    assert found["pending"] == pytest.approx(logged(3))
    assert found["reallocated_week"] == pytest.approx(logged(7))
    assert (found["any_sectors"], found["both_sectors"], found["young"]) == (1, 1, 0)
    assert len(history.reallocated_days) == len(history.pending_days) == 7


def logged(value):
    return math.log1p(value)


def test_a_drive_whose_clock_stands_still_is_stalled_and_that_fades():
    days = [day(n, hours=each) for n, each in enumerate([100, 124, 125, 149, 173])]
    _, found = seen([*days, day(20, hours=173)])
    assert [each["stalled"] for each in found] == pytest.approx([0, 0, 1, 0.9, 0.81, 0.729])


def test_a_day_that_comes_twice_or_does_not_say_its_hours_is_no_stall():
    twice = seen([day(0), day(0), day(1), day(1)])[1]
    assert not any(each["stalled"] for each in twice)
    unsaid = seen([day(0, hours=0), day(1, hours=0)])[1]
    assert not any(each["stalled"] for each in unsaid)


def test_an_alarm_is_given_once_and_more_is_done_when_it_is_certain():
    days = [(day(0), False), (day(1, pending=8), False), (day(2, pending=900), False)]
    [drive] = replay(days, made()).values()
    assert (drive.alarmed_on, drive.actions) == (
        (FIRST + timedelta(days=1)).date(),
        ("notify", "move-data", "turn-off"),
    )
    [drive] = replay(days[:2], made()).values()
    assert drive.actions == ("notify", "move-data")


def test_whether_a_drive_fails_later_changes_no_score():
    days = [(day(n, pending=n * n), n == 5) for n in range(6)]
    told = replay(days, made())["A"]
    untold = replay([(values, False) for values, _ in days], made())["A"]
    assert (told.alarmed_on, told.actions) == (untold.alarmed_on, untold.actions)


def test_an_alarm_on_the_day_of_the_failure_is_too_late():
    days = [
        (day(0, serial="late"), False),
        (day(1, serial="late", pending=900), True),
        (day(0, serial="early", pending=900), False),
        (day(4, serial="early", pending=900), True),
        (day(0, serial="well"), False),
        (day(0, serial="flagged", pending=900), False),
    ]
    found = outcome(replay(days, made()).values())
    assert (found.failing, found.found, found.healthy, found.flagged) == (2, 1, 2, 1)
    assert found.lead_days == (4,)
    assert any("1 of 2 failing drives found" in line for line in found.lines())


def test_contributions_add_up_to_the_score():
    model = made()
    _, [found] = seen([day(0, pending=12)])
    features = list(found.values())
    total = model.intercept + sum(model.contributions(features).values())
    assert model.score(features) == pytest.approx(1 / (1 + math.exp(-total)))
    assert next(iter(model.contributions(features))) == "pending"


def test_a_model_that_is_not_whole_is_refused(tmp_path):
    file = tmp_path / "model.json"
    good = written(made())
    file.write_bytes(good)
    assert load_model(file) == made()
    assert good.count(b"-4.0") == 1
    file.write_bytes(good.replace(b"-4.0", b"-3.0"))
    with pytest.raises(ModelError, match="not what was published"):
        load_model(file)
    file.write_bytes(good[:-9])
    with pytest.raises(ModelError):
        load_model(file)
    other = msgspec.structs.replace(made(), features=list(FEATURES[:-1]), weights=[0.0] * 11)
    file.write_bytes(written(other))
    with pytest.raises(ModelError, match="other features"):
        load_model(file)


def written(model):
    return msgspec.json.encode(sealed("drives", 1, model))


def test_a_threshold_flags_no_more_healthy_drives_than_it_may():
    days = [(day(0, serial=str(n), pending=n), False) for n in range(200)]
    model = with_threshold(made(), days, set())
    flagged = [drive for drive in replay(days, model).values() if drive.alarmed_on]
    assert len(flagged) == 8


def test_risks_are_drawn_towards_the_usual_one():
    days = [(day(0, serial=str(n), model="good" if n < 90 else "bad"), False) for n in range(100)]
    risks, usual = model_risks(days, {"95", "96", "97"})
    assert usual == 0.03
    assert risks["good"] < usual < risks["bad"] < 0.3


def test_a_file_is_replayed_in_the_order_of_its_days_whatever_its_lines_are(tmp_path, capsys):
    names = ["date", "serial_number", "model", "capacity_bytes", "failure"]
    names += [f"smart_{n}_raw" for n in (1, 5, 9, 194, 197)]
    rows = [
        [(FIRST + timedelta(days=n)).date(), "A", "M", 10**12, 0, 1, 0, 24 * n, 20, 0]
        for n in range(4)
    ]
    file = tmp_path / "drives.csv.gz"
    with gzip.open(file, "wt", newline="") as opened:
        csv.writer(opened).writerows([names, *reversed(rows)])
    model = tmp_path / "model.json"
    model.write_bytes(written(made()))
    assert [each.at.date() for each, _ in read_days(file)] == [row[0] for row in rows]
    assert main(["drives", str(file), "--model", str(model)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "serial_number,alarm_date,actions",
        "A,none,",
    ]


COLUMNS = (
    b"date,serial_number,model,capacity_bytes,failure,"
    b"smart_1_raw,smart_5_raw,smart_9_raw,smart_194_raw,smart_197_raw\n"
)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"date,model\n", "the column capacity_bytes is missing"),
        ("a.csv", b"", "is missing"),
        ("a.csv.gz", b"no gzip", "gzip"),
        ("a.csv", b"\xff\xfe", "decode"),
        ("a.csv", COLUMNS + b"2013-04-10,A,M,1\n", "line 2: it has not 10 columns"),
        ("a.csv", COLUMNS + b"2013-04-10,A,M,1,0,1,2,3,4,5,6\n", "line 2: it has not 10 columns"),
        ("a.csv", COLUMNS + b"2013-13-10,A,M,1,0,1,2,3,4,5\n", "line 2: month"),
        ("a.csv", COLUMNS + b"2013-04-10,A,M,1,0,1,2,1e999,4,5\n", "line 2"),
        ("a.csv.gz", gzip.compress(COLUMNS)[:-9], "end-of-stream"),
    ],
)
def test_a_file_without_drives_is_one_line(tmp_path, capsys, name, content, words):
    (tmp_path / name).write_bytes(content)
    assert main(["drives", str(tmp_path / name)]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_the_shipped_model_finds_failing_drives_before_they_fail():
    file = Path(__file__).parents[5] / "shared" / "data" / "backblaze" / "drives_2013.csv.gz"
    if not file.exists():
        pytest.skip("the values of real drives are not beside the project")
    found = outcome(replay(read_days(file), load_model()).values())
    assert found.found / found.failing >= 0.8
    assert found.flagged / found.healthy <= 0.05
