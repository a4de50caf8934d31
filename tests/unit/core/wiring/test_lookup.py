import pytest

from penstock import App, record
from penstock.connectors import keyboard
from penstock.core.graph.parts import Service, Source
from penstock.core.wiring.lookup import find_part, find_parts
from penstock.errors import ConfigurationError


@record(key="word")
class Word:
    word: str


@pytest.fixture
def graph():
    app = App("shop")
    words = app.stream("words", Word)
    app.source("typed", keyboard(), into=words)

    @app.service(reads=words)
    def count(word: Word) -> None: ...

    return app.graph


def test_a_part_is_found_by_name_and_kind(graph):
    assert find_part(graph, "count", Service).name == "count"


@pytest.mark.parametrize("name", ["cuont", "typed"])
def test_a_part_that_is_not_there_or_of_another_kind_is_an_error(graph, name):
    with pytest.raises(ConfigurationError, match=f"'shop' has no service '{name}'") as caught:
        find_part(graph, name, Service)
    assert caught.value.code == "part.unknown"
    assert "count" in caught.value.hint


def test_parts_are_found_once_each_in_the_order_of_their_declaration(graph):
    found = find_parts(graph, ["count", "typed", "count"])
    assert [part.name for part in found] == ["typed", "count"]
    assert isinstance(found[0], Source)


def test_all_names_that_are_no_parts_are_named(graph):
    with pytest.raises(ConfigurationError, match="has no part tpyed, other") as caught:
        find_parts(graph, ["tpyed", "count", "other"])
    assert caught.value.hint == "did you mean 'typed'?"
