"""The place of a definition is a line of the user, whatever the user's package is called."""

from pathlib import Path

import pytest

import penstock
from penstock.core.place import caller, is_penstocks
from penstock.services.usererrors import describe_error

PACKAGE = Path(penstock.__file__).parent


def run_in(file, source, **names):
    exec(compile(source, str(file), "exec"), names)  # noqa: S102 - as if it stood in that file
    return names


def test_a_package_beside_penstock_whose_name_begins_with_it_is_the_users():
    beside = PACKAGE.with_name("penstock_shop") / "app.py"
    place = run_in(beside, "\nplace = caller()", caller=caller)["place"]
    assert (place.file, place.line) == (str(beside), 2)


def test_what_such_a_package_raises_is_told_with_its_line():
    beside = PACKAGE.with_name("penstock-shop") / "app.py"
    fail = run_in(beside, "def fail():\n    raise ValueError('no room')")["fail"]
    with pytest.raises(ValueError, match="no room") as raised:
        fail()
    assert describe_error(raised.value) == "raised ValueError: no room (app.py:2)"


def test_files_of_penstock_are_its_own():
    assert is_penstocks(str(PACKAGE / "core" / "place.py"))
    assert not is_penstocks(str(PACKAGE) + "s/core/place.py")
