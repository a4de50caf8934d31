"""Which bodies are taken: of one type, in UTF-8, as they are."""

import pytest
from starlette.requests import Request

from penstock.serving.http.bodies import JSON, NDJSON, content_type, single_header
from penstock.serving.http.problems import Problem


def request(*headers):
    listed = [(name.lower().encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "headers": listed})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("application/json", JSON),
        ("Application/JSON ; charset=UTF-8", JSON),
        ('application/x-ndjson; charset="utf-8"', NDJSON),
    ],
)
def test_json_and_lines_are_taken(given, kind):
    assert content_type(request(("Content-Type", given))) == kind
    assert content_type(request(("Content-Type", given), ("Content-Encoding", "identity"))) == kind


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ([], 415, "body.type"),
        ([("Content-Type", "text/plain")], 415, "body.type"),
        ([("Content-Type", "application/json; charset=utf-16")], 415, "body.encoding"),
        ([("Content-Type", JSON), ("Content-Encoding", "gzip")], 415, "body.encoding"),
        ([("Content-Type", NDJSON), ("Content-Encoding", "gzip, br")], 415, "body.encoding"),
        ([("Content-Type", JSON), ("Content-Type", NDJSON)], 400, "header.several"),
        (
            [("Content-Type", JSON), ("Content-Encoding", ""), ("Content-Encoding", "gzip")],
            400,
            "header.several",
        ),
    ],
)
def test_what_would_be_guessed_at_is_refused(headers, status, code):
    with pytest.raises(Problem) as refused:
        content_type(request(*headers))
    assert (refused.value.status, refused.value.code) == (status, code)


def test_a_header_that_is_there_once_is_returned():
    assert single_header(request(("A", "1")), "a") == "1"
    assert single_header(request(), "a") is None
