"""Which records of a topic are shown, and what is said of a wrong choice."""

from types import SimpleNamespace

import pytest

from penstock import App, record
from penstock.cli.console.log import LogWatcher
from penstock.cli.console.tail import Tail, decoder_of, record_document
from penstock.serving.desk.offers import Asked


@record(key="device")
class Reading:
    device: str
    celsius: float


app = App("plant")
readings = app.stream("readings", Reading)


def raw(value, key=b"a"):
    return SimpleNamespace(
        topic="readings", partition=0, offset=7, timestamp_at=None, key=key, value=value, headers=()
    )


def problem_of(topic="readings", graph=True, **query):
    tail = Tail(LogWatcher(lambda: None), lambda: app.graph if graph else None)
    (event,) = tail.stream(Asked(path={"name": topic}, query=query))
    assert event.kind == "problem"
    return event.document["detail"]


def test_a_record_is_decoded_by_its_type_and_one_that_does_not_fit_says_why():
    decode = decoder_of(readings)
    shown, typed = decode(raw(b'{"device":"a","celsius":3}'))
    assert (shown.value, typed) == ({"device": "a", "celsius": 3.0}, Reading("a", 3.0))
    shown, typed = decode(raw(b'{"device":"a"}'))
    assert typed is None
    assert shown.value == {"device": "a"}
    assert "celsius" in shown.problem
    assert decoder_of(None)(raw(b"\xff"))[0].value == "base64:/w=="


def test_a_long_value_is_cut_and_says_how_long_it_was():
    shown, _ = decoder_of(None)(raw(b'"' + b"x" * 20_000 + b'"'))
    document = record_document(shown)
    assert len(document["value"]) == 8192
    assert document["cut"] == 20_002


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"where": "celsius >"}, "where: "),
        ({"where": "kelvin > 3"}, "kelvin"),
        ({"where": "celsius + 1"}, "where: "),
        ({"find": "("}, "find: it is not a regular expression"),
        ({"find": "x" * 20_000}, "find: it is not a regular expression"),
        ({"from": "yesterday"}, "from: "),
        ({"partition": "a"}, "partition: "),
        ({"partition": ",".join("1" * 2000)}, "partition: "),
    ],
)
def test_a_wrong_choice_is_told_with_what_is_wrong(query, said):
    assert said in problem_of(**query)


def test_an_expression_needs_a_topic_of_the_application():
    assert "only topics of the application" in problem_of(topic="other", where="celsius > 3")
    assert "only topics of the application" in problem_of(graph=False, where="celsius > 3")
