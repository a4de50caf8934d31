"""What `penstock check` finds in a life cycle before anything runs."""

from datetime import datetime

import pytest

from penstock import App, record
from penstock.core.rules.check import check
from penstock.lifecycles import lifecycle


@record(key="drive", time="at")
class Smart:
    drive: str
    at: datetime
    errors: int


@record(key="number")
class Other:
    number: int


@record()
class Keyless:
    text: str


@record(key="state")
class Clash:
    state: str


app = App("plant")
smart = app.stream("smart", Smart)
others = app.stream("others", Other)
keyless = app.stream("keyless", Keyless)
clash = app.stream("clash", Clash)
rows = app.table("rows", Smart)
two = lifecycle("cold", "hot")
sound = two.on(smart, "cold -> hot", where="errors > 8").after("1h", "hot -> cold").rests("cold")


def problems(life):
    made = App("plant")
    for data in (smart, others, keyless, clash, rows):
        made._declared.data.append(data)
    made.stream("changes", life, on="services")
    return check(made.graph)


def test_a_sound_life_cycle_has_no_problems():
    assert problems(sound) == []
    assert problems(sound.entering("hot", fan="true", text="concat(drive, state)")) == []


@pytest.mark.parametrize(
    ("life", "code", "text"),
    [
        (lifecycle(), "lifecycle.states", "it has no state"),
        (lifecycle("a", "a").on(smart, "a -> a").rests("a"), "lifecycle.states", "declared twice"),
        (sound.on(smart, "hot -> colt"), "lifecycle.state", "there is no state 'colt'"),
        (sound.on(smart, "hot"), "lifecycle.move", "no beginning or no end"),
        (sound.rests("hott"), "lifecycle.state", "there is no state 'hott'"),
        (two.on(smart, "cold -> hot").rests("cold"), "lifecycle.no-time-out", "'hot' could last"),
        (
            lifecycle("cold", "hot", "off").on(smart, "cold -> hot").rests("cold", "hot", "off"),
            "lifecycle.unreachable",
            "nothing leads to the state 'off'",
        ),
        (sound.rests("hot"), "lifecycle.after", "'hot' rests, and has a time-out"),
        (sound.after("2h", "hot -> cold"), "lifecycle.after", "two time-outs"),
        (sound.after("soon", "hot -> cold"), "lifecycle.after", "soon"),
        (
            two.on(smart, "cold -> hot").after("1h", "hot -> cold").after("1h", "cold -> hot"),
            "lifecycle.endless",
            "time alone goes round for ever",
        ),
        (
            sound.on(smart, "hot -> cold").on(smart, "hot -> cold", where="errors = 0"),
            "lifecycle.never",
            "'hot -> cold' never happens",
        ),
        (two.after("1h", "cold -> hot").rests("hot"), "lifecycle.reads", "no record moves it"),
        (sound.on(rows, "hot -> cold"), "lifecycle.not-a-stream", "'rows' is not a stream"),
        (sound.on("smart", "hot -> cold"), "lifecycle.not-a-stream", "'smart' is not a stream"),
        (sound.on(keyless, "hot -> cold"), "lifecycle.no-key", "'keyless' has no key"),
        (sound.on(others, "hot -> cold"), "lifecycle.keys", "'smart' and 'others'"),
        (
            two.on(clash, "cold -> hot").rests("cold", "hot"),
            "lifecycle.field",
            "the key field 'state'",
        ),
        (sound.on(smart, "hot -> cold", where="error = 0"), "expression.unknown-field", "error"),
        (sound.entering("hot", state="'x'"), "lifecycle.field", "has a field 'state' already"),
        (
            sound.entering("hot", x="1").entering("cold", x="'a'"),
            "lifecycle.field",
            "'x' is int and text",
        ),
    ],
)
def test_what_makes_no_sense_is_a_problem_with_a_way_out(life, code, text):
    found = problems(life)
    assert (code, True) in [(each.code, text in each.message) for each in found]
    assert all(each.hint or each.code == "lifecycle.field" for each in found if each.code == code)


def test_each_problem_names_the_line_it_is_about():
    life = sound.on(smart, "hot -> colt")
    (problem,) = [each for each in problems(life) if each.code == "lifecycle.state"]
    assert problem.place.file == __file__
    assert problem.place.line > 100
