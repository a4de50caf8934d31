"""Models: what is whole, what takes over, what is refused, and whether values drifted."""

import random
from datetime import UTC, datetime

import msgspec
import pytest

from penstock import App, record
from penstock.errors import DataError
from penstock.models import (
    Drift,
    Models,
    ModelVersion,
    Reference,
    opened,
    reference_of,
    sealed,
    shape_of,
)
from penstock.tables import Rows, broadcast
from penstock.testing import Driver


@record()
class Line:
    slope: float
    offset: float


@record()
class Curve:
    slope: float
    offset: float
    bend: float


@record(key="device")
class Reading:
    device: str
    celsius: float


@record(key="device")
class Scored:
    device: str
    score: float
    version: int


def test_what_is_sealed_opens_as_it_was():
    version = sealed("heat", 7, Line(0.1 + 0.2, -1e300), trained_on="offsets 0 to 9")
    assert opened(version, Line) == Line(0.1 + 0.2, -1e300)
    assert (version.model, version.version, version.trained_on) == ("heat", 7, "offsets 0 to 9")
    again = msgspec.json.decode(msgspec.json.encode(version), type=ModelVersion)
    assert opened(again, Line) == Line(0.1 + 0.2, -1e300)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": 8}, "model.corrupt"),
        ({"model": "cold"}, "model.corrupt"),
        ({"sha256": "0" * 64}, "model.corrupt"),
        ({"parameters": '{"slope":1,"offset":2}'}, "model.corrupt"),
        ({"shape": shape_of(Curve)}, "model.corrupt"),
    ],
)
def test_a_version_that_was_edited_is_refused(changes, code):
    version = replaced(sealed("heat", 7, Line(1.0, 2.0)), **changes)
    with pytest.raises(DataError) as refused:
        opened(version, Line)
    assert refused.value.code == code


def test_a_version_of_another_shape_is_refused():
    with pytest.raises(DataError) as refused:
        opened(sealed("heat", 1, Curve(1.0, 2.0, 3.0)), Line)
    assert refused.value.code == "model.shape"


def test_what_a_type_does_not_take_is_not_sealed():
    with pytest.raises(DataError):
        sealed("heat", 1, Line(float("nan"), 1.0))
    with pytest.raises(DataError, match="from 1"):
        sealed("heat", 0, Line(1.0, 1.0))
    with pytest.raises(TypeError, match="record type"):
        sealed("heat", 1, {"slope": 1.0})


def test_the_newest_good_version_is_used_whatever_order_they_come_in():
    models = Models("heat", Line)
    rows = [sealed("heat", 2, Line(2.0, 0.0))]
    assert models.newest(rows).version == 2
    rows.append(sealed("heat", 1, Line(1.0, 0.0)))
    assert models.newest(rows).version == 2
    rows.append(sealed("cold", 9, Line(9.0, 0.0)))
    rows.append(sealed("heat", 3, Line(3.0, 0.0)))
    assert models.newest(rows).parameters == Line(3.0, 0.0)
    assert models.refusals() == []


def test_a_broken_version_leaves_the_last_good_one_and_is_told_once():
    models = Models("heat", Line, check=sensible)
    rows = [sealed("heat", 1, Line(1.0, 0.0))]
    assert models.newest(rows).version == 1
    rows.append(replaced(sealed("heat", 2, Line(2.0, 0.0)), sha256="cut"))
    rows.append(sealed("heat", 3, Curve(1.0, 2.0, 3.0)))
    rows.append(sealed("heat", 4, Line(-4.0, 0.0)))
    for _ in range(3):
        assert models.newest(rows).version == 1
    told = {refusal.version: refusal.code for refusal in models.refusals()}
    assert told == {2: "model.corrupt", 3: "model.shape", 4: "model.senseless"}
    rows.append(sealed("heat", 5, Line(5.0, 0.0)))
    assert models.newest(rows).version == 5
    assert models.refusals() == []


def replaced(given, **changes):
    return ModelVersion(**(msgspec.structs.asdict(given) | changes))


def sensible(line):
    if line.slope < 0:
        raise ValueError("the slope is negative")


def test_a_version_that_replaces_another_row_is_seen_after_a_while():
    models = Models("heat", Line)
    rows = [sealed("heat", 1, Line(1.0, 0.0))]
    models.newest(rows)
    rows[0] = sealed("heat", 2, Line(2.0, 0.0))
    assert {models.newest(rows).version for _ in range(1_000)} == {1, 2}


def application():
    app = App("heating")
    readings, scored = app.stream("readings", Reading), app.stream("scored", Scored)
    versions = app.table("versions", ModelVersion)

    @app.service(reads=(readings, broadcast(versions)), writes=scored)
    class Score:
        def __init__(self):
            self.models = Models("heat", Line)

        def process(self, reading: Reading, rows: Rows[ModelVersion]) -> Scored | None:
            served = self.models.newest(rows)
            if served is None:
                return None
            line = served.parameters
            score = line.offset + line.slope * reading.celsius
            return Scored(reading.device, score, served.version)

    return app, readings, scored, versions


def test_a_service_takes_a_new_version_over_without_a_restart_and_keeps_it_over_one():
    app, readings, scored, versions = application()
    driver = Driver(app)
    driver.pipe(readings, Reading("a", 1.0))
    driver.pipe(versions, sealed("heat", 1, Line(1.0, 0.0)))
    driver.pipe(readings, Reading("b", 2.0))
    broken = replaced(sealed("heat", 2, Line(9.0, 9.0)), parameters="{}")
    driver.pipe(versions, broken)
    driver.pipe(readings, Reading("c", 3.0))
    driver.crash()
    driver.restart()
    driver.pipe(readings, Reading("d", 4.0))
    driver.pipe(versions, sealed("heat", 3, Line(10.0, 0.0)))
    driver.pipe(readings, Reading("e", 5.0))
    found = {each.device: (each.score, each.version) for each in driver.read(scored)}
    assert found == {"b": (2.0, 1), "c": (3.0, 1), "d": (4.0, 1), "e": (50.0, 3)}


def test_values_as_in_training_do_not_drift_and_others_do():
    chance = random.Random(1)
    reference = reference_of(chance.gauss(0, 1) for _ in range(10_000))
    same, moved, wider = (Drift(reference, window=500) for _ in range(3))
    for _ in range(3_000):
        same.see(chance.gauss(0, 1))
        moved.see(chance.gauss(1, 1))
        wider.see(chance.gauss(0, 3))
    assert same.index < 0.1
    assert not same.drifted
    assert moved.drifted
    assert wider.drifted


def test_a_drift_that_is_over_fades():
    chance = random.Random(2)
    drift = Drift(reference_of(chance.gauss(0, 1) for _ in range(5_000)), window=300)
    for _ in range(1_000):
        drift.see(chance.gauss(3, 1))
    assert drift.drifted
    again = Drift(drift._reference, window=300, counts=list(drift.counts))
    for _ in range(3_000):
        drift.see(value := chance.gauss(0, 1))
        again.see(value)
    assert not drift.drifted
    assert again.counts == drift.counts


def test_few_values_say_nothing_yet_and_equal_values_are_one_part():
    drift = Drift(reference_of([1.0] * 50 + [2.0] * 50), window=10)
    for _ in range(9):
        drift.see(2.0)
    assert drift.index == 0.0
    drift.see(2.0)
    assert drift.drifted
    assert reference_of([5.0] * 9) == Reference([], [1.0])
    for values in ([], [float("inf")]):
        with pytest.raises(ValueError, match="finite"):
            reference_of(values)


def test_a_reference_can_be_part_of_the_parameters():
    @record()
    class Watched:
        line: Line
        celsius: Reference

    parameters = Watched(Line(1.0, 2.0), reference_of(range(100)))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert opened(sealed("heat", 1, parameters, published_at=at), Watched) == parameters
