"""What connectors say about themselves."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from penstock.connectors import CONNECTORS, catalogue
from penstock.connectors.catalogue import GROUP, entries, entry_of, read_entry
from penstock.errors import ConfigurationError


@pytest.mark.parametrize("name", CONNECTORS)
def test_every_option_of_every_connector_has_a_type_and_a_meaning(name):
    entry = entry_of(name, entries(CONNECTORS))
    assert entry.direction in ("source", "sink", "look-up")
    assert entry.promise not in ("?", "see its page")
    assert entry.summary.endswith(".")
    for option in entry.options:
        assert option.kind not in ("", "any"), option
        assert option.meaning, option


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", CONNECTORS)
def test_the_docs_have_every_connector_with_its_options(name):
    pages = [page.read_text() for page in sorted(DOCS.glob("*.md"))]
    assert f"`{name}" in (DOCS / "connectors.md").read_text() + (DOCS / "lookups.md").read_text()
    about = "".join(page for page in pages if f"`{name}" in page)
    for option in entry_of(name, entries(CONNECTORS)).options:
        shown = (f"`{option.name}`", f"{option.name}=", f"{name}({option.name})")
        assert any(each in about for each in shown), option.name


def test_defaults_are_shown_as_they_are_written():
    found = {
        option.name: option
        for option in read_entry("x", CONNECTORS["postgres_table"], package="p").options
    }
    assert (found["table"].default, found["rows"].default) == ("", "10000")
    assert (found["mode"].kind, found["mode"].default) == ("'upsert' or 'append'", "'upsert'")
    assert found["key"].kind == "str or tuple[str, ...] or None"


class Station:
    """Read a weather station."""

    def __init__(self, port: int = 7) -> None: ...

    def run(self, feed) -> None: ...


def test_a_connector_of_others_is_found_and_a_broken_one_hides_no_other(monkeypatch):
    points = [
        EntryPoint("station", f"{__name__}:Station", GROUP),
        EntryPoint("broken", "no_such_module:thing", GROUP),
    ]
    monkeypatch.setattr(
        catalogue, "entry_points", lambda *, group: points if group == GROUP else []
    )
    monkeypatch.setitem(
        __import__("sys").modules, __name__, __import__("types").SimpleNamespace(Station=Station)
    )
    found = entries(CONNECTORS)
    assert len(found) == len(CONNECTORS) + 2
    assert "does not load: ModuleNotFoundError" in entry_of("broken", found).summary
    station = entry_of("station", found)
    assert (station.direction, station.summary) == ("source", "Read a weather station.")
    with pytest.raises(ConfigurationError, match="no connector 'jsonfiles'") as raised:
        entry_of("jsonfiles", found)
    assert "json_files" in raised.value.hint
