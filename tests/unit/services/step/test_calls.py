"""The user's code of one task: an object that is given is copied with all it holds."""

import threading

import pytest

from penstock import App, record
from penstock.services.step.calls import make_subject


@record(key="word")
class Word:
    word: str


class Remember:
    def __init__(self, *held):
        self.held = list(held)

    def process(self, word: Word) -> None:
        self.held.append(word)


def service(subject):
    app = App("demo")
    return app.service(reads=app.stream("words", Word), name="remember")(subject)


def test_each_task_has_a_copy_of_its_own_down_to_what_it_holds():
    given = Remember()
    one, two = make_subject(service(given)), make_subject(service(given))
    one.process(Word("a"))
    assert (len(one.held), two.held, given.held) == (1, [], [])


def test_what_cannot_be_copied_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"cannot be copied .* give the class itself"):
        make_subject(service(Remember(threading.Lock())))
