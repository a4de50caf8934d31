"""A gateway is declared, checked and drawn as any part is."""

from pathlib import Path

from penstock import App, State, record
from penstock.core.drawing.text import draw_mermaid, draw_text
from penstock.core.rules.check import check


@record(key="word")
class Word:
    word: str


@record(key="word")
class Count:
    word: str
    count: int


def declared(**options):
    app = App("shop")
    words = app.stream("words", Word)
    counts = app.table("counts", Count)

    @app.service(reads=words, writes=counts)
    def count(word: Word, total: State[int]) -> Count:
        return Count(word.word, 1)

    @app.service(reads=words)
    def look(word: Word) -> None:
        pass

    known = {"words": words, "counts": counts, "count": count, "look": look}
    given = {
        name: tuple(known.get(each, each) for each in value) if isinstance(value, tuple) else value
        for name, value in options.items()
    }
    app.gateway("door", **given)
    return app.graph


def codes(graph):
    return [problem.code for problem in check(graph)]


def test_a_gateway_that_feeds_what_fills_what_it_shows_is_no_cycle():
    graph = declared(takes=("words",), shows=("counts", "count"))
    assert codes(graph) == []
    assert graph.part("door").summary == "gateway, takes words, shows counts, state of count"
    assert "door" in draw_text(graph)
    assert ":::gateway" in draw_mermaid(graph)


def test_a_gateway_remembers_requests_on_a_topic_of_its_own():
    graph = declared(takes=("words",))
    assert "shop.door.requests" in [topic.name for topic in graph.topics()]
    assert codes(graph) == []
    assert "shop.door.requests" not in [
        topic.name for topic in declared(shows=("counts",)).topics()
    ]


def test_everything_that_is_wrong_with_a_gateway_is_told():
    assert codes(declared()) == ["gateway.empty"]
    assert codes(declared(takes=("counts",))) == ["gateway.takes", "gateway.empty"]
    assert codes(declared(shows=("look",))) == ["gateway.shows"]
    assert codes(declared(shows=("words", "counts"))) == ["gateway.shows"]
    assert codes(declared(takes=("words",), remembers="1s")) == ["gateway.remembers"]
    assert codes(declared(takes=("words",), pages=3)) == ["data.option"]
    assert codes(declared(takes=("words",), roles={"reader": ("count",)})) == ["gateway.roles"]


def test_a_gateway_has_the_live_queries_that_it_is_given():
    app = App("shop")
    live = app.live_queries("live", app.table("counts", Count))
    app.gateway("door", live=live, roles={"reader": (live,)})
    assert codes(app.graph) == []
    door = app.graph.part("door")
    assert door.summary == "gateway, live queries of live"
    assert ([each.name for each in door.inputs], [each.name for each in door.outputs]) == (
        ["live.news"],
        ["live.asked"],
    )
    assert codes(declared(takes=("words",), live=3)) == ["data.option"]


def test_the_pages_of_a_gateway_lie_beside_the_file_that_declares_it():
    graph = declared(pages="web")
    assert codes(graph) == []
    assert graph.part("door").pages_path == Path(__file__).parent / "web"
    assert graph.part("door").summary == "gateway, pages of web"
    assert declared(pages=Path("/srv/web")).part("door").pages_path == Path("/srv/web")
    assert declared(takes=("words",)).part("door").pages_path is None
