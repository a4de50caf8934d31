"""To which URLs answers may be sent."""

import pytest

from penstock.core.graph.webhooks import is_webhook

ALLOWED = ("https://hooks.example/answers/", "http://127.0.0.1:8080/")


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example/answers/",
        "https://hooks.example/answers/7?order=3",
        "http://127.0.0.1:8080/x",
    ],
)
def test_what_begins_as_the_application_allows_may_be_sent_to(url):
    assert is_webhook(url, ALLOWED)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://hooks.example",
        "https://hooks.example/other/",
        "http://hooks.example/answers/",
        "https://hooks.example.evil/answers/",
        "https://hooks.example@evil.example/answers/",
        "https://user:word@hooks.example/answers/",
        "https://hooks.example:444/answers/",
        "https://hooks.example/answers/../admin",
        "https://hooks.example/answers/%2e%2e/admin",
        "https://hooks.example/answers/..%2fadmin",
        "https://hooks.example/answers//evil",
        "https://hooks.example/answers/\\evil",
        "https://hooks.example/answers/ evil",
        "https://hooks.example/answers/\r\nHost: evil",
        "https://hooks.example/answers/\u00e9",
        "https://hooks.example/answers/" + "x" * 1000,
        "http://10.0.0.1/",
        "file:///etc/passwd",
        "http://[::1/",
        "http://127.0.0.1:99999/",
    ],
)
def test_everything_else_may_not(url):
    assert not is_webhook(url, ALLOWED)
