import msgspec
import pytest

from penstock.client.refusals import error_of, mistake_of
from penstock.errors import ConfigurationError, DataError, TransientError


@pytest.mark.parametrize(
    ("status", "family"),
    [
        (302, ConfigurationError),
        (400, DataError),
        (401, ConfigurationError),
        (404, ConfigurationError),
        (408, TransientError),
        (413, DataError),
        (422, DataError),
        (429, TransientError),
        (500, TransientError),
        (503, TransientError),
        (599, TransientError),
    ],
)
def test_a_refusal_is_of_the_family_of_who_must_act(status, family):
    body = msgspec.json.encode({"code": "some.code", "detail": "so it is"})
    error = error_of(status, body)
    assert (type(error), error.code, error.message) == (family, "some.code", "so it is")


def test_the_detail_has_the_place_and_what_is_allowed():
    document = {
        "code": "request.mistakes",
        "detail": "1 of 2",
        "path": "$.a",
        "allowed": "a: float",
        "errors": [{"index": 1, "detail": "wrong", "path": "$.b"}, 7],
    }
    error = error_of(422, msgspec.json.encode(document))
    assert error.detail == "at $.a; allowed: a: float\n  record 1: wrong at $.b"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"code": 1}', b"\xff", b"[" * 5000])
def test_an_answer_that_is_no_problem_document_is_told_by_its_status(body):
    error = error_of(502, body)
    assert (error.code, error.message) == ("http.502", "the gateway answered 502")


def test_what_a_gateway_says_does_nothing_to_a_terminal():
    error = error_of(503, msgspec.json.encode({"code": "a\x1b[2J", "detail": "b\x1b[2J"}))
    assert "\x1b" not in str(error)


def test_a_line_with_a_mistake_is_the_records_fault_or_passes():
    assert isinstance(mistake_of({"code": "data.wrong-type", "detail": "x"}), DataError)
    assert isinstance(mistake_of({"code": "kafka.away", "detail": "x"}), TransientError)
    assert isinstance(mistake_of(None), DataError)
