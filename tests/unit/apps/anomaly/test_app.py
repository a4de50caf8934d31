"""The application in the test driver: from telemetry to a model, an anomaly, and its recovery."""

import msgspec
import pytest
from apps.anomaly import scorer, sessions
from apps.anomaly.app import app
from apps.anomaly.application import (
    acknowledgements,
    anomalies,
    commands,
    device_alarms,
    drift_alarms,
    messages,
    model_alarms,
    model_versions,
    notices,
    samples,
    telemetry,
)
from apps.anomaly.devices.device import Device, Pace
from apps.anomaly.devices.wire import FromDoor, stamped
from apps.anomaly.records import Acknowledgement, Message, Sample
from apps.anomaly.scoring import MODEL, score
from apps.anomaly.training.learning import learn
from apps.anomaly.trend import Trend
from tests.devicefleet import at, message, model, ordinary, receipt

from penstock.models import sealed
from penstock.models.drift import DRIFTED
from penstock.testing import Driver


@pytest.fixture(scope="module")
def learnt():
    return model()


@pytest.fixture
def driver(learnt):
    started = Driver(app)
    started.pipe(model_versions, sealed(MODEL, 1, learnt))
    return started


def heat(driver, *, start=0, device="a"):
    """Let a device be well for a while, and overheat."""
    driver.pipe(messages, *(message(start + number, device) for number in range(50)))
    for number in range(50, 60):
        driver.pipe(messages, message(start + number, device, **{"machine.celsius": 95.0}))


def states(driver):
    return [(each.before, each.state) for each in driver.read(sessions.device_changes)]


def test_an_overheating_device_is_scored_drained_turned_off_and_repaired_once(driver):
    heat(driver)
    found = driver.read(anomalies)
    assert {each.model_version for each in found} == {1}
    assert next(iter(found[-1].contributions)).startswith("machine.celsius")
    driver.crash()
    driver.restart()
    [move] = driver.read(commands)
    assert move.what == "move-data"
    driver.pipe(messages, receipt(60, move.id, "moving"), receipt(61, move.id, "moved"))
    [off] = driver.read(commands)
    assert off.what == "turn-off"
    driver.pipe(messages, receipt(62, off.id, "off"), receipt(63, "", "repaired"))
    [on] = driver.read(commands)
    driver.pipe(messages, receipt(64, on.id, "on"))
    moves = [after for _, after in states(driver)]
    assert moves[-4:] == ["failing", "draining", "off", "repaired"]
    assert set(moves[:-4]) <= {"suspect"}
    driver.advance_clock("10m")
    assert driver.read(commands) == []  # all were acknowledged
    assert driver.read(device_alarms) == []
    assert [each.urgent for each in driver.read(notices)][-3:] == [True, True, False]


def test_a_silent_device_is_told_again_and_then_the_administrator_is_called_once(driver):
    heat(driver)
    driver.advance_clock("2m")
    sent = driver.read(commands)
    assert [each.attempt for each in sent] == [1, 2, 3, 4, 5]
    assert len({each.id for each in sent}) == 1
    calls = [each.text for each in driver.read(notices) if "answer" in each.text]
    assert calls == ["does not answer: move-data was sent 5 times"]
    driver.advance_clock("10m")
    assert driver.read(commands) == []


def test_a_crash_between_two_tries_neither_loses_nor_doubles_one(driver):
    heat(driver)
    for _ in range(12):
        driver.advance_clock("3s")
        driver.crash()
        driver.restart()
    assert [each.attempt for each in driver.read(commands)] == [1, 2, 3, 4, 5]


def test_what_nobody_asked_for_is_an_alarm(driver):
    driver.pipe(acknowledgements, Acknowledgement("a", at(0), "c9", "moved"))
    assert [each.text for each in driver.read(device_alarms)] == ["acknowledgements in healthy"]


def versions(driver, device):
    """Return the versions that the anomalies of one more device name."""
    heat(driver, device=device)
    return {each.model_version for each in driver.read(anomalies)}


def changed(record, **fields):
    return type(record)(**(msgspec.structs.asdict(record) | fields))


def test_a_better_model_takes_over_and_a_broken_or_older_one_does_not(driver, learnt):
    driver.pipe(model_versions, sealed(MODEL, 3, learnt))
    assert versions(driver, "b") == {3}
    driver.pipe(model_versions, sealed(MODEL, 2, learnt))
    assert versions(driver, "c") == {3}
    whole = sealed(MODEL, 4, learnt)
    driver.pipe(model_versions, changed(whole, parameters=whole.parameters[:-9]))
    driver.pipe(model_versions, sealed(MODEL, 5, changed(learnt, threshold=2.0)))
    assert versions(driver, "d") == {3}
    found = {(each.version, each.code) for each in driver.read(model_alarms)}
    assert found == {(4, "model.corrupt"), (5, "model.senseless")}


def test_the_first_model_is_learnt_from_the_stream_and_published_once(monkeypatch):
    monkeypatch.setattr(scorer, "ENOUGH", 400)
    driver = Driver(app)
    for number in range(150):
        driver.pipe(messages, *(message(number, device) for device in "abcd"))
    [first] = driver.table(model_versions).values()
    assert (first.model, first.version) == (MODEL, 1)
    heat(driver, start=200)
    assert {each.model_version for each in driver.read(anomalies)} == {1}


def test_once_there_is_a_model_every_tenth_measurement_is_a_sample_with_its_score(driver):
    heat(driver)
    found = driver.read(samples)
    assert [each.number for each in found] == [30, 40, 50]
    assert {each.model_version for each in found} == {1}
    first, *_, last = found
    assert first.score == 0.0
    assert last.score > 0.5


def test_a_device_that_scores_by_itself_is_sent_the_newest_model_until_it_says_that_it_has_it(
    driver, learnt
):
    near = Device("n", at=at(0), local=True, pace=Pace())

    def sent(second):
        near.measure(at(second))
        for line in near.lines(at(second)):
            told = msgspec.json.decode(stamped(line, at(second)), type=Message)
            driver.pipe(messages, told)
            taken = FromDoor(taken=(told.started, told.number))
            near.told(msgspec.json.encode(taken), at(second))
        return driver.read(commands)

    [first] = sent(0)
    assert (first.what, first.model_version) == ("model", 1)
    assert sent(1) == []  # it was sent it just now
    [again] = sent(7)
    assert again.id == first.id
    near.told(msgspec.json.encode(FromDoor(command=again)), at(7))
    assert sent(20) == []
    driver.pipe(model_versions, sealed(MODEL, 2, learnt))
    near.fail("overheating", at(21))
    found = [each for second in range(21, 60) for each in sent(second)]
    assert {each.model_version for each in found if each.what == "model"} == {2}
    [each] = {each.model_version for each in driver.read(anomalies)}
    assert each == 1  # nobody has told it of the new one yet
    assert [each.what for each in found if each.what != "model"] == ["move-data"]


def test_drift_of_inputs_and_of_scores_is_told_once_for_each_version(driver, learnt):
    def samples_of(version, count, *, by=learnt, warmer=0.0):
        for number in range(count):
            metrics = ordinary(number) | {
                "machine.celsius": ordinary(number)["machine.celsius"] + warmer
            }
            features = Trend().after(metrics).features(metrics)
            found = score(by, "server", features)
            yield Sample(
                MODEL, "server", features, "a", at(number), 1, number, found.value, version
            )

    usual = learn([("server", each.features) for each in samples_of(1, 2_000)])
    for version in (2, 3):
        driver.pipe(model_versions, sealed(MODEL, version, usual))
        driver.pipe(samples, *samples_of(version, 700, by=usual))
        assert driver.read(drift_alarms) == []
        driver.pipe(samples, *samples_of(version, 700, by=usual, warmer=20))
        driver.crash()
        driver.restart()
        driver.pipe(samples, *samples_of(version, 300, by=usual, warmer=20))
        found = driver.read(drift_alarms)
        assert sorted(each.of for each in found) == ["machine.celsius.level", "score"]
        assert {each.version for each in found} == {version}
        assert all(each.index >= DRIFTED for each in found)


def test_a_model_that_lies_takes_few_devices_out_of_use_and_is_told(driver, learnt):
    strict = {
        kind: {name: changed(usual, low=1e6, high=1e6) for name, usual in features.items()}
        for kind, features in learnt.kinds.items()
    }
    driver.pipe(model_versions, sealed(MODEL, 2, changed(learnt, kinds=strict)))
    names = [f"d{number}" for number in range(60)]
    for number in range(12):
        driver.pipe(messages, *(message(number, name) for name in names))
    alarms = [(each.version, each.code) for each in driver.read(model_alarms)]
    assert set(alarms) == {(2, "model.wild")}
    assert len(alarms) <= telemetry.topic.partitions
    assert 0 < len({each.device for each in driver.read(commands)}) < 30
    assert not driver.read(anomalies)[-1].certain
    driver.pipe(model_versions, sealed(MODEL, 3, learnt))
    heat(driver, start=20, device="honest")
    assert {each.what for each in driver.read(commands) if each.device == "honest"} == {"move-data"}
