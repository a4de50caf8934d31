"""The series detector: no look-ahead, one alarm for one anomaly, and what it does not alarm at."""

import csv
import math
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from apps.anomaly.__main__ import main
from apps.anomaly.series.detector import ALARM, SeriesDetector
from apps.anomaly.series.errors import Level, Neighbours, Range, Season
from apps.anomaly.series.surprise import Surprise
from hypothesis import given, settings
from hypothesis import strategies as st

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)


def daily(days, *, noise=1.0, seed=1, step=timedelta(minutes=15)):
    chance = random.Random(seed)
    for number in range(int(timedelta(days=days) / step)):
        at = BEGIN + number * step
        yield at, 50 + 20 * math.sin(at.hour / 24 * 2 * math.pi) + chance.gauss(0, noise)


def scores(series, **options):
    detector = SeriesDetector(**options)
    return [detector.see(at, value) for at, value in series]


def scored(file):
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def alarms(found):
    return [number for number, score in enumerate(found) if score.alarm]


def test_a_daily_rhythm_is_no_anomaly_and_a_jump_in_it_is_one_alarm():
    series = list(daily(15))
    assert len(alarms(scores(series))) <= 1
    changed = [
        (at, value + (40 if 1_000 <= n < 1_020 else 0)) for n, (at, value) in enumerate(series)
    ]
    new = set(alarms(scores(changed))) - set(alarms(scores(series)))
    assert len(new & set(range(1_000, 1_040))) == 1
    assert min(new & set(range(1_000, 1_040))) <= 1_004


def test_a_missing_peak_inside_the_usual_range_is_seen_by_its_neighbours():
    # A fast rhythm that is not the day's: only the shape says that a wave is missing.
    def series(flat):
        chance = random.Random(2)
        for n in range(3_000):
            wave = 0 if flat and 2_000 <= n < 2_030 else 10 * math.sin(n / 4)
            yield BEGIN + n * timedelta(minutes=5), wave + chance.gauss(0, 0.3)

    found = scores(series(flat=True))
    assert [n for n in alarms(found) if 2_000 <= n < 2_080]
    assert max(found[n].parts["neighbours"] for n in range(2_000, 2_060)) > 1
    assert not [n for n in alarms(scores(series(flat=False))) if 2_000 <= n < 2_080]


def test_a_score_depends_on_nothing_that_comes_later():
    series = list(daily(8, noise=4, seed=3))
    whole = [score.value for score in scores(series)]
    for cut in (1, 151, 400, len(series) - 1):
        assert [score.value for score in scores(series[:cut])] == whole[:cut]


def test_scores_are_from_0_to_1_and_do_not_depend_on_the_unit():
    series = list(daily(6, noise=5, seed=4))
    found = [score.value for score in scores(series)]
    scaled = [score.value for score in scores([(at, value * 1024) for at, value in series])]
    assert all(0 <= value <= 1 for value in found)
    assert scaled == pytest.approx(found, abs=1e-6)


def test_a_constant_series_gives_no_alarm_until_it_changes():
    series = [(BEGIN + n * timedelta(minutes=5), 7.0) for n in range(500)]
    assert alarms(scores(series)) == []
    assert alarms(scores([*series, (BEGIN + timedelta(days=3), 8.0)])) == [500]


def test_the_score_names_what_contributed():
    series = [*daily(8), (BEGIN + timedelta(days=8), 500.0)]
    last = scores(series)[-1]
    assert last.alarm
    assert last.parts["range"] > 1
    assert last.parts["level"] > 1


def test_memory_is_bounded():
    detector = SeriesDetector()
    chance = random.Random(5)
    for number in range(9_000):
        detector.see(BEGIN + number * timedelta(minutes=5), chance.random())
    assert len(detector.neighbours.values) <= 2_000 + 2 * 24
    assert all(len(each.means) <= 4_000 for each in detector.surprises.values())


def test_neighbours_that_go_on_from_their_values_say_the_same():
    chance = random.Random(6)
    values = [chance.gauss(0, 1) for _ in range(400)]
    whole, first = Neighbours(most=100), Neighbours(most=100)
    expected = [whole.see(value) for value in values]
    got = [first.see(value) for value in values[:250]]
    again = Neighbours(
        most=100, values=first.values, seen=first.seen, mean=first.mean, squares=first.squares
    )
    assert got + [again.see(value) for value in values[250:]] == expected


def test_what_each_way_of_looking_sees():
    assert [Level(gain=0.5).see(value) for value in (4.0,)] == [0.0]
    season = Season()
    for day in range(10):
        for hour in range(24):
            season.see(BEGIN + timedelta(days=day, hours=hour), float(hour))
    assert season.see(BEGIN + timedelta(days=10, hours=3), 3.0) < 0.01
    assert season.see(BEGIN + timedelta(days=10, hours=4), 3.0) > 0.9
    outside = Range(quiet=2)
    assert [outside.see(value) for value in (0.0, 10.0, 5.0, 15.0, 15.0)] == [0, 0, 0, 0.5, 0]


def test_a_surprise_is_the_rarity_of_an_error():
    surprise = Surprise(short=1, quiet=100)
    chance = random.Random(7)
    usual = [surprise.of(abs(chance.gauss(0, 1))) for _ in range(2_000)]
    assert not any(usual[:100])
    assert surprise.of(6.0) > max(usual[100:1_500][:5])
    assert surprise.of(6.0) > 5


def test_files_are_scored_row_by_row_under_their_own_names(tmp_path, capsys):
    source = tmp_path / "in" / "group"
    source.mkdir(parents=True)
    with (source / "one.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["timestamp", "value"])
        writer.writerows([at.strftime("%Y-%m-%d %H:%M:%S"), value] for at, value in daily(2))
    assert main(["score", str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    rows = scored(tmp_path / "out" / "group" / "one.csv")
    assert [row["timestamp"] for row in rows] == [
        at.strftime("%Y-%m-%d %H:%M:%S") for at, _ in daily(2)
    ]
    assert all(0 <= float(row["anomaly_score"]) <= 1 for row in rows)
    assert "1 series scored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a,b\n1,2\n", "has to name timestamp and value"),
        (b"", "has to name timestamp and value"),
        (b"timestamp,value\n2026-01-01,x\n", "line 2"),
        (b"timestamp,value\nyesterday,1\n", "line 2"),
        (b"timestamp,value\n1388534400,1\n", "line 2"),
        (b"timestamp,value\n2026-01-01,-inf\n", "not a number"),
        (b"timestamp,value\n2026-01-01,1\n2026-01-0", "line 3: it has 1 of 2 columns"),
        (b"timestamp,value\n2026-01-01,1\0\n", "line 2"),
        (b"timestamp,value\n\xff\xfe,1\n", "decode"),
        (b"timestamp,value\n" + b"a" * 200_000, "field larger"),
    ],
)
def test_a_file_that_is_no_series_is_one_line_and_leaves_nothing(tmp_path, capsys, content, words):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.csv").write_bytes(content)
    assert main(["score", str(tmp_path / "in"), str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_that_is_no_series_does_not_keep_the_others_from_being_scored(tmp_path, capsys):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name in ("a", "b", "c"):
        text = "nothing" if name == "b" else "timestamp,value\n2026-01-01,1\n2026-01-02,\n"
        (source / f"{name}.csv").write_text(text)
    (source / "d.csv").mkdir()
    (source / "e.csv").write_text("timestamp,value\n")
    assert main(["score", str(source), str(target)]) == 1
    assert "1 of 4 files are not scored" in capsys.readouterr().err
    assert sorted(each.name for each in target.iterdir()) == ["a.csv", "c.csv", "e.csv"]
    assert [row["anomaly_score"] for row in scored(target / "a.csv")] == ["0", "0"]
    assert scored(target / "e.csv") == []


ODD = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1e308, -1e308, 5e-324]),
)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.datetimes(), ODD), min_size=1, max_size=5), st.integers(0, 400))
def test_whatever_the_values_and_their_times_are_cutting_a_series_changes_no_score(rows, cut):
    series = (rows * 320)[:320]
    found = [score.value for score in scores(series)]
    assert all(0 <= value <= 1 for value in found)
    assert [score.value for score in scores(series[:cut])] == found[:cut]


@pytest.mark.parametrize("made", [False, True])
def test_a_directory_without_series_is_said(tmp_path, capsys, made):
    if made:
        (tmp_path / "in").mkdir()
    assert main(["score", str(tmp_path / "in"), str(tmp_path / "out")]) == 1
    assert str(tmp_path / "in") in capsys.readouterr().err


def test_the_alarms_of_real_series_are_worth_what_the_readme_says(tmp_path):
    shared = Path(__file__).parents[5] / "shared"
    if not (shared / "data" / "nab").is_dir():
        pytest.skip("the series of the benchmark are not beside the project")
    sys.path.insert(0, str(shared / "tools"))
    try:
        import nab_score
    finally:
        sys.path.pop(0)
    data = shared / "data" / "nab" / "data"
    # One group of the five, so that the test takes seconds.
    group = "artificialWithAnomaly"
    assert main(["score", str(data / group), str(tmp_path / group)]) == 0
    windows = nab_score.json.loads((shared / "data/nab/labels/combined_windows.json").read_text())
    found = 0
    for file in sorted((tmp_path / group).iterdir()):
        rows = scored(file)[600:]  # the benchmark does not count the first ones
        [(first, last)] = windows[f"{group}/{file.name}"]
        times = [row["timestamp"] for row in rows if float(row["anomaly_score"]) > ALARM]
        found += any(first[:19] <= time <= last[:19] for time in times)
        assert len(times) <= 3
    assert found == 6
