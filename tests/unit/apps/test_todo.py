"""The service of the todo application in the driver, and its rule for edits that meet."""

import pytest
from apps.todo.app import app, edits, items
from apps.todo.records import Edit

from penstock.core.rules.check import check
from penstock.testing import Driver

MILK = {"id": "1", "list": "home", "text": "milk", "rank": "V"}


@pytest.fixture
def shown():
    """Give what pipes edits and returns the row that they lead to."""
    driver = Driver(app)
    numbers = iter(range(100))

    def pipe(*several):
        for each in several:
            driver.pipe(edits, Edit(**{"id": "1", "edit": f"e{next(numbers)}", **each}))
        return driver.table(items).get("1")

    return pipe


def test_the_application_has_no_problems():
    assert check(app.graph) == []


def test_an_edit_changes_what_it_names_and_notes_its_identity(shown):
    shown(MILK | {"who": "Ann", "page": "a"})
    item = shown({"seen": 1, "page": "b", "who": "Bo", "done": True})
    assert (item.text, item.rank, item.done, item.who) == ("milk", "V", True, "Bo")
    assert (item.edit, item.version) == ("e1", 2)


def test_edits_of_several_fields_that_did_not_see_each_other_are_merged(shown):
    shown(MILK | {"page": "a"})
    item = shown(
        {"seen": 1, "page": "a", "text": "oat milk"},
        {"seen": 1, "page": "b", "done": True},
        {"seen": 1, "page": "c", "rank": "W"},
    )
    assert (item.text, item.done, item.rank) == ("oat milk", True, "W")


def test_nobody_overwrites_or_deletes_a_text_that_they_have_not_seen(shown):
    shown(MILK | {"page": "a"})
    first = {"seen": 1, "page": "a", "who": "Ann", "text": "oat milk"}
    item = shown(first, {"seen": 1, "page": "b", "who": "Bo", "text": "soy milk"})
    assert (item.text, item.who, item.edit) == ("oat milk", "Ann", "e2")
    assert shown({"seen": 1, "page": "b", "gone": True}).text == "oat milk"
    assert shown({"seen": item.version, "page": "b", "text": "soy milk"}).text == "soy milk"
    assert shown({"seen": 6, "page": "a", "gone": True}) is None


def test_a_page_has_seen_what_it_wrote_itself(shown):
    item = shown(*(MILK | {"page": "a", "text": f"milk {n}"} for n in range(5)))
    assert item.text == "milk 4"


def test_what_is_deleted_stays_deleted_until_somebody_says_that_it_is_not(shown):
    shown(MILK | {"page": "a"})
    assert shown({"seen": 1, "page": "b", "gone": True}) is None
    assert shown({"seen": 1, "page": "a", "text": "oat milk"}) is None
    item = shown({"seen": 2, "page": "b", "gone": False})
    assert (item.text, item.list) == ("milk", "home")


def test_an_edit_of_an_item_that_is_not_known_makes_none(shown):
    assert shown({"seen": 3, "done": True}) is None
