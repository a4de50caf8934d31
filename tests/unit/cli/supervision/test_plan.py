from dataclasses import dataclass

import pytest

from penstock import App, record
from penstock.cli.supervision.plan import Unit, make_plan
from penstock.connectors import json_files
from penstock.errors import ConfigurationError


@dataclass(frozen=True)
class Outside:
    interactive: bool = False

    def describe(self) -> str:
        return "something outside"


@record(key="word")
class Word:
    word: str


def application(*, pipelines: tuple[str, ...] = ("one", "two")):
    app = App("example")
    words, loud = app.stream("words", Word), app.stream("loud", Word)
    app.source("file", Outside(), into=words)
    app.source("keyboard", Outside(interactive=True), into=words)

    @app.service(reads=words, writes=loud)
    def shout(word: Word) -> Word:
        return word

    for name in pipelines:
        app.pipeline(reads=words, writes=loud, name=name)(lambda words: words)
    return app.graph


def test_pipelines_share_a_process_and_a_keyboard_is_left_to_a_person():
    plan = make_plan(application())
    assert plan.units == (
        Unit("file", "source", ("file",)),
        Unit("shout", "service", ("shout",)),
        Unit("pipelines", "pipeline", ("one", "two")),
    )
    assert plan.left_out == ("keyboard",)


def test_pipelines_that_do_not_share_a_spark_have_a_process_each():
    units = make_plan(application(), share=False).units
    assert [unit.name for unit in units] == ["file", "shout", "one", "two"]
    assert all(unit.parts == (unit.name,) for unit in units)


def test_a_single_pipeline_gives_its_process_its_name():
    assert make_plan(application(pipelines=("one",))).units[-1].name == "one"
    units = make_plan(application(pipelines=("one", "pipelines"))).units
    assert units[-1].name == "example.pipelines"


def test_only_chooses_and_also_adds():
    plan = make_plan(application(), only=["shout"])
    assert [unit.name for unit in plan.units] == ["shout"]
    assert plan.left_out == ()
    plan = make_plan(application(), only=["shout"], also=["keyboard"])
    assert [unit.name for unit in plan.units] == ["keyboard", "shout"]


def test_an_unknown_part_is_refused_with_the_nearest():
    with pytest.raises(ConfigurationError, match="did you mean 'shout'") as caught:
        make_plan(application(), only=["shoot", "two"])
    assert caught.value.code == "part.unknown"


def test_nothing_to_run_is_an_error_that_says_what_to_do():
    with pytest.raises(ConfigurationError, match="declare a source"):
        make_plan(App("empty").graph)
    with pytest.raises(ConfigurationError, match="penstock run APP --part keyboard"):
        make_plan(application(), only=["keyboard"])


def test_a_sink_has_a_process_of_its_own():
    app = App("out")
    app.sink("files", json_files("dump"), reads=app.stream("words", Word))
    assert make_plan(app.graph).units == (Unit("files", "sink", ("files",)),)
