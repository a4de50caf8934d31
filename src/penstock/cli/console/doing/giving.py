"""Dead letters given back: what would happen, and the same done."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from penstock.backbone.givingback import Choice, give_back, plan, read_record_place
from penstock.cli.console.reach import Reach
from penstock.errors import ConfigurationError
from penstock.serving.desk.offers import Asked
from penstock.serving.http.problems import Problem

__all__ = ["GivingBack"]

_MOST = 10_000
"""So many letters go back with one request; the page says that there are more."""
_NAMES = ("part", "code", "record")


class GivingBack:
    """Does what ``penstock dead-letters --give-back`` does."""

    def __init__(self, reach: Reach, tell: Callable[[str], None]) -> None:
        self._reach = reach
        self._tell = tell

    def plan(self, asked: Asked) -> dict[str, Any]:
        """Return what would go back of the letters that ``part``, ``code`` and ``record`` name."""
        choice = _choice(asked.query)
        return plan(self._reach.application, self._reach.log.connection, choice).document()

    def act(self, asked: Asked) -> dict[str, Any]:
        """Give back what the body names, and return what went back."""
        choice = _choice(asked.body)
        giving = give_back(self._reach.application, self._reach.log.connection, choice)
        for name, count in giving.to.items():
            self._tell(f"{count} dead letters were given back to {name}, from the console")
        return giving.document()


def _choice(given: Mapping[str, Any]) -> Choice:
    words = {name: given[name] for name in _NAMES if given.get(name) not in (None, "")}
    again = given.get("again", False)
    if not all(isinstance(text, str) for text in words.values()):
        raise _wrong(f"{', '.join(_NAMES)} are texts")
    if isinstance(again, str):
        again = again == "true"
    if not isinstance(again, bool):
        raise _wrong("again is true or false")
    try:
        place = read_record_place(words["record"]) if "record" in words else None
    except ConfigurationError as error:
        raise _wrong(error.message, allowed=error.hint) from error
    return Choice(
        part=words.get("part"), code=words.get("code"), record=place, most=_MOST, again=again
    )


def _wrong(text: str, **more: Any) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, "query.wrong", text, **more)
