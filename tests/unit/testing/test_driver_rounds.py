"""Records that go round in a cycle: counted in a header, and given up when it is too often."""

import pytest

from penstock import App, Context, feedback, record
from penstock.core.rules.check import check
from penstock.core.wiring.rounds import is_in_cycle
from penstock.testing import Driver


@record(key="name")
class Turn:
    name: str
    left: int


def counts(driver, stream):
    return [dict(raw.headers()).get("penstock.rounds") for raw in driver.read_raw(stream)]


@pytest.fixture
def app():
    return App("mill")


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_record_that_goes_round_too_often_is_a_dead_letter(app, kind):
    turns = app.stream("turns", Turn, partitions=1)

    if kind == "plain":

        @app.service(reads=turns, writes=feedback(turns, most=5), name="turn")
        def turn(given: Turn) -> Turn | None:
            return Turn(given.name, given.left - 1) if given.left else None

    else:

        @app.service(reads=turns, writes=feedback(turns, most=5), name="turn")
        async def turn(given: Turn) -> Turn | None:
            return Turn(given.name, given.left - 1) if given.left else None

    driver = Driver(app)
    driver.pipe(turns, Turn("short", 3), Turn("long", 50))
    (letter,) = driver.dead_letters()
    assert letter.code == "feedback.rounds"
    assert letter.value == b'{"name":"long","left":44}'
    assert "gone round 6 times" in letter.reason
    rounds = [int(each or 0) for each in counts(driver, turns)]
    assert sorted(rounds) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6]
    final = driver.counts(turn)
    assert (final.received, final.dead_lettered) == (11, 1)


def test_the_count_goes_along_through_other_services_of_the_cycle(app):
    first, second = app.stream("first", Turn), app.stream("second", Turn)

    @app.service(reads=first, writes=second)
    def forth(given: Turn, context: Context) -> Turn:
        return given

    @app.service(reads=second, writes=feedback(first, most=3))
    def back(given: Turn) -> Turn:
        return Turn(given.name, given.left - 1)

    @app.service(reads=second)
    def beside(given: Turn) -> None: ...

    assert [is_in_cycle(app.graph, part) for part in app.graph.parts] == [True, True, False]
    driver = Driver(app)
    driver.pipe(first, Turn("a", 0))
    assert counts(driver, first) == [None, b"1", b"2", b"3", b"4"]
    assert counts(driver, second) == [None, b"1", b"2", b"3"]
    assert [letter.part for letter in driver.dead_letters()] == ["forth"]


def test_the_count_goes_along_through_an_operator(app):
    first = app.stream("first", Turn)
    second = app.stream("second", first.where("left >= 0"), on="services")

    @app.service(reads=second, writes=feedback(first, most=3))
    def back(given: Turn) -> Turn:
        return Turn(given.name, given.left - 1)

    driver = Driver(app)
    driver.pipe(first, Turn("a", 2), Turn("b", 99))
    assert sorted(int(each or 0) for each in counts(driver, second)) == [0, 0, 1, 1, 2, 2, 3]
    assert [letter.part for letter in driver.dead_letters()] == ["second.filling"]


def test_what_is_wrong_with_a_bound_is_said(app):
    turns = app.stream("turns", Turn)

    @app.service(reads=turns, writes=feedback(turns, most=0))
    def turn(given: Turn) -> Turn: ...

    assert [problem.code for problem in check(app.graph)] == ["data.option"]
