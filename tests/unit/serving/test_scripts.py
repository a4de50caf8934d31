"""The modules of the JavaScript client, as a gateway serves them."""

import asyncio
import re

from penstock.serving.live.scripts import SCRIPTS, script_route

ROUTE = script_route()
IMPORTED = re.compile(r"""^(?:import|export) [^;]*? from '\./([\w.]+)'""", re.MULTILINE)


def get(name, **headers):
    """Return the status, the headers and the body of an answer."""
    sent = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": SCRIPTS + name,
        "headers": [
            (each.replace("_", "-").encode(), value.encode()) for each, value in headers.items()
        ],
    }

    async def ask():
        async def send(message):
            sent.append(message)

        await ROUTE.handle(scope, None, send)

    asyncio.run(ask())
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:])


def test_each_module_that_another_imports_is_served_as_a_script_that_may_be_kept():
    wanted, seen = ["live.js"], set()
    while wanted:
        name = wanted.pop()
        status, headers, body = get(name)
        assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8"), name
        assert headers["x-content-type-options"] == "nosniff"
        assert "unsafe" not in headers["content-security-policy"]
        assert get(name, if_none_match=headers["etag"])[0] == 304
        seen.add(name)
        wanted += set(IMPORTED.findall(body.decode())) - seen
    assert len(seen) == 9
