"""Simulated devices: what they send, that they obey once, and that they score as services do."""

from datetime import timedelta
from random import Random

import msgspec
import pytest
from apps.anomaly.__main__ import main
from apps.anomaly.devices.device import BURST, Device, Pace
from apps.anomaly.devices.faults import FAULTS
from apps.anomaly.devices.recording import RecordingError, recorded
from apps.anomaly.devices.way import Trouble, Way
from apps.anomaly.devices.wire import FromDoor, ToDoor
from apps.anomaly.records import Command
from apps.anomaly.scoring import score
from apps.anomaly.training.learning import learn
from apps.anomaly.trend import Trend
from tests.devicefleet import T0, at

PACE = Pace(fault=20, moving=2, repair=30, again=3)
OFF = Command("a", "off@1", "turn-off", T0)
MOVE = Command("a", "move@1", "move-data", T0)


def device(name="a", *, local=False):
    return Device(name, at=T0, local=local, pace=PACE)


def taken(message):
    return msgspec.json.encode(FromDoor(taken=(message.started, message.number)))


def told(command):
    return msgspec.json.encode(FromDoor(command=command))


def messages(one, now):
    """Return what a device sends now; the door takes all of it."""
    found = [msgspec.json.decode(line, type=ToDoor) for line in one.lines(now)]
    for each in found:
        one.told(taken(each), now)
    return found


def receipts(found):
    return [(each.command, each.done) for message in found for each in message.receipts]


@pytest.fixture(scope="module")
def learnt():
    samples = []
    for number in range(20):
        one, trend = Device(f"l{number}", at=T0, pace=PACE), Trend()
        for second in range(150):
            one.measure(at(second))
            for message in messages(one, at(second)):
                for measured in message.measurements:
                    trend = trend.after(measured.metrics, measured.log)
                    if second >= 30:
                        samples.append(("server", trend.features(measured.metrics)))
    return learn(samples)


def test_a_message_is_sent_again_until_it_is_taken():
    one = device()
    one.measure(at(0))
    [line] = one.lines(at(0))
    assert one.lines(at(1)) == []
    assert one.lines(at(3.5)) == [line]
    one.reconnected(at(4))
    assert one.lines(at(4)) == [line]
    one.told(taken(msgspec.json.decode(line, type=ToDoor)), at(4))
    one.reconnected(at(5))
    assert one.lines(at(60)) == []
    assert not one.waiting


def test_a_command_is_done_once_and_reported_as_often_as_it_is_told():
    one = device()
    for _ in range(3):
        one.told(told(MOVE), at(0))
    assert receipts(messages(one, at(0))) == [(MOVE.id, "moving")] * 3
    assert receipts(messages(one, at(3))) == [(MOVE.id, "moved")]
    one.told(told(MOVE), at(4))
    assert receipts(messages(one, at(4))) == [(MOVE.id, "moving"), (MOVE.id, "moved")]
    assert one.did == [(MOVE.id, "move-data")]


def test_a_device_that_is_off_measures_nothing_and_starts_anew_when_it_is_repaired():
    one = device()
    one.fail("overheating", at(0))
    one.measure(at(0))
    one.told(told(OFF), at(0))
    one.measure(at(1))
    [last] = messages(one, at(1))
    assert (last.measurements, receipts([last])) == ([], [(OFF.id, "off")])
    one.measure(at(31))
    [first] = messages(one, at(31))
    assert receipts([first]) == [("", "repaired")]
    assert first.started > last.started
    assert [each.number for each in first.measurements] == [0]
    assert one.fault is None


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_every_fault_is_found_beyond_doubt_and_nothing_before_it(fault, learnt):
    for number in range(5):
        one, trend, found = device(f"f{number}"), Trend(), {}
        for second in range(160):
            if second == 100:
                one.fail(fault, at(second))
            one.measure(at(second))
            for message in messages(one, at(second)):
                for measured in message.measurements:
                    trend = trend.after(measured.metrics, measured.log)
                    found[second] = score(learnt, "server", trend.features(measured.metrics)).value
        alarms = [second for second, value in found.items() if value > learnt.threshold]
        assert len([each for each in alarms if each < 100]) <= 1
        assert max(found.values()) > learnt.certain


def test_a_device_scores_as_a_service_does_and_sends_far_fewer_bytes(learnt):
    near, far = device(local=True), device()
    parameters = msgspec.json.encode(learnt).decode()
    model = Command("a", "model@1", "model", T0, 1, 1, parameters)
    near.told(told(model), at(0))
    trend, expected, sizes = Trend(), [], {"near": 0, "far": 0}
    found = []
    for second in range(300):
        if second == 200:
            near.fail("overheating", at(second))
            far.fail("overheating", at(second))
        near.measure(at(second))
        far.measure(at(second))
        for name, one in (("near", near), ("far", far)):
            for line in one.lines(at(second)):
                sizes[name] += len(line) if second < 200 else 0
                message = msgspec.json.decode(line, type=ToDoor)
                one.told(taken(message), at(second))
                if name == "near":
                    assert message.model_version == 1
                    found += [(each.number, each.score) for each in message.findings]
                    assert message.burst is None or len(message.burst.after) == BURST
                for measured in message.measurements:
                    trend = trend.after(measured.metrics, measured.log)
                    scored = score(learnt, "server", trend.features(measured.metrics))
                    if scored.value > learnt.threshold:
                        expected.append((measured.number, scored.value))
    assert found == expected
    assert found
    assert sizes["near"] < sizes["far"] / 3  # while nothing is wrong; an anomaly is a kilobyte


def test_a_device_keeps_its_model_when_it_is_told_nonsense(learnt):
    one = device(local=True)
    good = msgspec.json.encode(learnt).decode()
    one.told(told(Command("a", "m2", "model", T0, 1, 2, good)), at(0))
    for version, parameters in ((1, good), (3, good[:-5]), (4, good.replace("0.5", "7.5"))):
        one.told(told(Command("a", f"m{version}", "model", T0, 1, version, parameters)), at(0))
    one.fail("overheating", at(0))
    one.measure(at(0))
    one.told(told(MOVE), at(0))
    assert [each.model_version for each in messages(one, at(0))] == [2]


def test_a_device_without_a_connection_remembers_a_bounded_past():
    one = device()
    for second in range(2_000):
        one.measure(at(second))
    [message] = messages(one, at(2_000))
    assert [each.number for each in message.measurements] == list(range(1_500, 2_000))


def test_trouble_on_the_way_delays_doubles_and_disorders_lines_and_loses_none():
    way = Way(Trouble(late=0.2, disorder=0.3, double=0.2, bursts=0.1), Random(1))
    sent, came = [], []
    for number in range(500):
        line = b"%d\n" % number
        sent.append(line)
        way.put(line, number * 0.1)
        came += way.arrived(number * 0.1).splitlines(keepends=True)
    came += way.arrived(60).splitlines(keepends=True) or way.arrived(70).splitlines(keepends=True)
    assert set(came) == set(sent)
    assert len(came) > len(sent)
    assert came != sorted(came, key=int)
    clear = Way(Trouble(), Random(1))
    clear.put(b"a\n", 0)
    assert (clear.arrived(0), clear.skew) == (b"a\n", 0.0)


def test_a_recording_is_played_at_any_speed(tmp_path):
    file = tmp_path / "load.csv"
    file.write_text("timestamp,value\n2026-01-01 00:00:00,1.5\n2026-01-01 01:00:00,2\n")
    assert recorded(file, speed=60) == {
        "load": [(0.0, {"app.value": 1.5}), (60.0, {"app.value": 2.0})]
    }
    file.write_text("date,serial_number,smart_5_raw\n2013-04-10,S1,7\n2013-04-11,S2,\n")
    assert recorded(file, speed=86_400) == {
        "S1": [(0.0, {"app.smart_5_raw": 7.0})],
        "S2": [(1.0, {})],
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [("a,b\n", "no column"), ("at,b\n", "no rows"), ("at,b\nnever,1\n", "line 2")],
)
def test_a_file_that_is_no_recording_is_refused_with_the_place(tmp_path, text, says):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(RecordingError, match=says):
        recorded(file, speed=1)


def test_a_burst_comes_apart_as_it_was_put_together(learnt):
    from apps.anomaly.ingest import opened

    one = device(local=True)
    parameters = msgspec.json.encode(learnt).decode()
    one.told(told(Command("a", "m1", "model", T0, 1, 1, parameters)), at(0))
    for second in range(BURST):
        one.measure(T0 + timedelta(seconds=second / 2))
    [message] = messages(one, at(60))
    numbers = [each.number for each in opened(message.burst)]
    assert numbers == list(range(BURST))
    assert {name for each in opened(message.burst) for name in each.metrics} > {"os.load"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--fault", "nope"], "no such fault: nope"),
        (["--fault", "stuck:-3"], "no such fault"),
        (["--devices", "0"], "--devices 0: it is from 1 to"),
        (["--rate", "nan"], "--rate nan"),
        (["--port", "99999"], "--port 99999"),
        (["--late", "7"], "--late 7: it is from 0 to 1"),
        (["--replay", "/nowhere.csv"], "/nowhere.csv"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_before_it_starts(arguments, says, capsys):
    assert main(["simulate", *arguments]) == 1
    assert says in capsys.readouterr().err


def test_a_fleet_says_why_it_is_not_connected(capsys):
    assert (
        main(["simulate", *["--devices", "2", "--rate", "50", "--seconds", "0.3", "--port", "1"]])
        == 0
    )
    said = capsys.readouterr().err
    assert "0 of 2 devices connected" in said
    assert "('127.0.0.1', 1)" in said
