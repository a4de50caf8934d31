"""What every request passes: host, caller, number of calls; and what is told of failures."""

import asyncio
import json

import pytest

from penstock.errors import ConfigurationError, FencedError, TransientError
from penstock.serving.http.callers import Callers
from penstock.serving.http.guard import Guard
from penstock.serving.http.problems import Problem


def scope(host="localhost", path="/v1/x"):
    headers = [(b"host", host.encode())] if host is not None else []
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": headers,
        "client": ("127.0.0.1", 5),
    }


async def ask(guard, **given):
    """Return the status, the headers and the document of an answer."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    await guard(scope(**given), receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, json.loads(sent[1]["body"] or b"null")


def guarded(app, **options):
    return Guard(app, Callers(""), names=("door.example",), **{"calls_per_caller": 2, **options})


def raising(error):
    async def app(scope, receive, send):
        raise error

    return app


@pytest.mark.parametrize(
    ("error", "status", "code", "retry"),
    [
        (Problem(418, "a.code", "why", path="$.x"), 418, "a.code", None),
        (TransientError("away", code="kafka.away"), 503, "kafka.away", "1"),
        (FencedError("another", code="kafka.fenced"), 503, "kafka.fenced", "1"),
        (ConfigurationError("file /etc/x", code="kafka.denied"), 503, "kafka.denied", "30"),
        (ValueError("a secret"), 500, "internal", None),
    ],
)
def test_whatever_is_raised_becomes_a_problem_that_tells_no_secret(error, status, code, retry):
    found, headers, document = asyncio.run(ask(guarded(raising(error))))
    assert (found, document["status"], document["code"]) == (status, status, code)
    assert headers["content-type"] == "application/problem+json"
    assert headers.get("retry-after") == retry
    assert "secret" not in json.dumps(document)
    assert "/etc" not in json.dumps(document)


def test_an_answer_that_has_begun_is_cut_off_rather_than_ended():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError

    async def run():
        with pytest.raises(ConnectionAbortedError):
            await ask(guarded(app))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8800", 200),
        ("127.0.0.1", 200),
        ("[::1]:8800", 200),
        ("DOOR.example.", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("[", 421),
        ("", 421),
        (None, 421),
    ],
)
def test_without_tokens_only_names_of_this_machine_are_answered(host, status):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    assert asyncio.run(ask(guarded(app), host=host))[0] == status


def test_a_caller_with_too_many_calls_is_told_to_come_again():
    async def run():
        end = asyncio.Event()

        async def app(scope, receive, send):
            await end.wait()
            raise Problem(404, "none", "")

        guard = guarded(app)
        first = [asyncio.create_task(ask(guard)) for _ in range(2)]
        await asyncio.sleep(0)
        status, headers, document = await ask(guard)
        assert (status, document["code"], headers["retry-after"]) == (429, "caller.too-many", "1")
        end.set()
        assert [found[0] for found in await asyncio.gather(*first)] == [404, 404]
        assert (await ask(guard))[0] == 404

    asyncio.run(run())


def test_a_caller_who_calls_too_often_is_told_when_to_come_again():
    async def app(scope, receive, send):
        raise Problem(404, "none", "none")

    async def run():
        guard = guarded(app, calls_per_second=1)
        return [await ask(guard) for _ in range(11)]

    *before, (status, headers, document) = asyncio.run(run())
    assert {each[0] for each in before} == {404}
    assert (status, document["code"], headers["retry-after"]) == (429, "caller.too-often", "1")
