"""The Python client in the cases that all clients of live queries share."""

import asyncio
import json
from datetime import timedelta

import pytest
from tests.scriptedgateway import CASES, scripted_gateway

from penstock.client import Client, ClientLimits
from penstock.core.grid.documents import readable
from penstock.core.live.written.builder import field
from penstock.errors import PenstockError

FOUND = json.loads(CASES.read_text("utf-8"))
LIMITS = ClientLimits(
    first_wait=timedelta(milliseconds=1), longest_wait=timedelta(milliseconds=2), connections=32
)


@pytest.fixture(scope="module")
def followed():
    """Give the kinds of changes and the documents, or the error, of each case; all at once."""
    with scripted_gateway() as (address, _):
        return asyncio.run(follow_all(address))


async def follow_all(address):
    async with Client(address, limits=LIMITS) as client, asyncio.timeout(60):
        several = (follow(client, number) for number in range(len(FOUND["cases"])))
        return await asyncio.gather(*several)


async def follow(client, number):
    case, kinds = FOUND["cases"][number], []
    result = client.live(f"python:{number}")
    try:
        async for change in result:
            kinds.append(change.kind)
            if len(kinds) == len(case["kinds"]) and "fails" not in case:
                break
    except PenstockError as error:
        return kinds, error.code
    return kinds, result.documents


@pytest.mark.parametrize(
    "number", range(len(FOUND["cases"])), ids=lambda n: FOUND["cases"][n]["name"]
)
def test_the_python_client_passes_the_cases_of_all_clients(followed, number):
    case = FOUND["cases"][number]
    expected = case.get("fails") or [readable(each) for each in case.get("documents", [])]
    assert followed[number] == (case["kinds"], expected)


OPERATORS = {
    "above": "__gt__",
    "atLeast": "__ge__",
    "below": "__lt__",
    "atMost": "__le__",
    "oneOf": "one_of",
}


def built(form):
    kind, *parts = form
    if kind == "not":
        return ~built(parts[0])
    if kind in ("and", "or"):
        left, right = map(built, parts)
        return left & right if kind == "and" else left | right
    path, operator, *values = parts
    if operator == "matches":
        return field(path).matches(values[0], ignore_case=values[1])
    return getattr(field(path), OPERATORS.get(operator, operator))(*values)


def test_filters_are_built_as_in_all_clients():
    assert [built(each["built"]).document for each in FOUND["filters"]] == [
        each["document"] for each in FOUND["filters"]
    ]
