"""A kind of part that nobody knew: what needs no more than a class, and the look-up of parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from penstock import App, feedback, record
from penstock.cli.supervision.plan import make_plan
from penstock.core.drawing.svg import draw_svg
from penstock.core.drawing.text import counted, draw_mermaid, draw_text
from penstock.core.graph.data import Data, Stream
from penstock.core.graph.parts import Part, Service
from penstock.core.rules.check import check
from penstock.core.topic import TopicSpec
from penstock.core.wiring.lookup import find_part, find_parts
from penstock.errors import ConfigurationError, Place


@record(key="word")
class Word:
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway(Part):
    """Answers questions from outside: a kind that this test declares."""

    name: str
    reads: Stream
    writes: tuple[Stream, ...] = ()
    place: Place | None = None
    kind: str = field(default="gateway", init=False)

    @property
    def inputs(self) -> tuple[Data, ...]:
        return (self.reads,)

    @property
    def outputs(self) -> tuple[Data, ...]:
        return self.writes

    @property
    def summary(self) -> str:
        return "gateway on port 80"

    def own_topics(self, app: str) -> Mapping[str, TopicSpec]:
        return {"sessions": TopicSpec(name=f"{app}.{self.name}.sessions", partitions=1)}


@pytest.fixture
def app():
    app = App("demo")
    words = app.stream("words", Word)

    @app.service(reads=words, writes=feedback(words))
    def count(word: Word) -> Word:
        return word

    return app


def with_gateway(app, **options):
    words = app.graph.find("words")
    return replace(app.graph, parts=(*app.graph.parts, Gateway(name="web", reads=words, **options)))


def test_it_is_drawn_counted_and_checked(app):
    graph = with_gateway(app)
    assert check(graph) == []
    assert counted(graph) == "1 stream, 1 service, 1 gateway"
    for drawing in (draw_text(graph), draw_mermaid(graph), draw_svg(graph)):
        assert "gateway on port 80" in drawing


def test_its_topics_are_declared_and_their_names_are_its_own(app):
    app.stream("sessions", Word)
    graph = with_gateway(app)
    assert "demo.web.sessions" in {topic.name for topic in graph.topics()}
    data = tuple(
        replace(each, topic=replace(each.topic, name="demo.web.sessions"))
        if each.name == "sessions"
        else each
        for each in graph.data
    )
    (problem,) = check(replace(graph, data=data))
    assert problem.code == "name.twice"
    assert "the sessions of gateway 'web'" in problem.message


def test_a_cycle_through_it_is_found_and_so_is_what_is_not_declared(app):
    words = app.graph.find("words")
    codes = [problem.code for problem in check(with_gateway(app, writes=(words,)))]
    assert codes == ["graph.cycle"]
    other = App("other").stream("strange", Word)
    codes = [problem.code for problem in check(with_gateway(app, writes=(other,)))]
    assert codes == ["part.undeclared"]


def test_it_is_looked_up_and_planned_like_any_other(app):
    graph = with_gateway(app)
    assert find_part(graph, "web", Gateway).kind == "gateway"
    assert [part.name for part in find_parts(graph, ["web", "count"])] == ["count", "web"]
    assert [(unit.name, unit.kind) for unit in make_plan(graph).units][-1] == ("web", "gateway")


def test_a_part_of_another_kind_or_of_no_name_is_not_found(app):
    with pytest.raises(ConfigurationError, match="'demo' has no service 'web'") as caught:
        find_part(with_gateway(app), "web", Service)
    assert caught.value.hint == "known are: count"
    with pytest.raises(ConfigurationError, match="no service 'coutn'") as caught:
        find_part(app.graph, "coutn", Service)
    assert "did you mean 'count'" in caught.value.hint
    with pytest.raises(ConfigurationError) as caught:
        find_part(app.graph, "web", Gateway)
    assert caught.value.hint == "none is declared"
    with pytest.raises(ConfigurationError, match="no part one, two"):
        find_parts(app.graph, ["one", "count", "two"])
