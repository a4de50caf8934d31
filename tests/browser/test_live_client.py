"""The JavaScript client in the cases that all clients share, by every way there is."""

import base64
import json
import re
from pathlib import Path

import pytest
from tests.scriptedgateway import CASES, DEFAULT, scripted_gateway

from penstock.core.live.query import read_query

FOUND = json.loads(CASES.read_text("utf-8"))
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def scripted():
    with scripted_gateway() as found:
        yield found


def called(page, source, *arguments):
    return page.evaluate(f"({source})({', '.join(map(json.dumps, arguments))})")


def script(name):
    return (HERE / name).read_text("utf-8")


@pytest.mark.parametrize("way", ["socket", "events", "poll"])
def test_the_javascript_client_passes_the_cases_of_all_clients(page, scripted, way):
    page.open(scripted[0])
    for case, given in zip(
        FOUND["cases"], called(page, script("live_cases.js"), FOUND["cases"], "", way), strict=True
    ):
        if "documents" in given:
            # A decimal is its text in JavaScript, and instants have milliseconds.
            text = json.dumps(case["documents"]).replace('{"$numberDecimal": "1.10"}', '"1.10"')
            expected = {"documents": json.loads(text.replace("00:00Z", "00:00.000Z"))}
            given["documents"] = json.loads(given["documents"])
        else:
            expected = {"fails": case.get("fails")}
        assert given == {"kinds": case["kinds"], **expected}, case["name"]


def test_filters_are_built_and_foreseen_as_the_gateway_reads_them(page, scripted):
    page.open(scripted[0])
    asked = FOUND["matches"]
    built, matched, orders = called(
        page,
        """async (filters, { documents, filters: tried, sorts }) => {
          const { field, fulfils, compare } = await import('/client/live.js');
          const { at } = await import('/client/values.js');
          const made = ([kind, ...parts]) => {
            if (kind === 'not') return made(parts[0]).not();
            if (kind === 'and' || kind === 'or') return made(parts[0])[kind](made(parts[1]));
            const [path, operator, ...values] = parts;
            if (operator === 'matches') return field(path).matches(values[0], { ignoreCase: values[1] });
            return field(path)[operator](...values);
          };
          const sorted = (sort) => [...documents].sort((a, b) => {
            for (const [path, way] of [...sort, ['_id', 1]]) {
              const found = compare(at(a, path), at(b, path)) * way;
              if (found) return found;
            }
            return 0;
          }).map((each) => each._id);
          return [filters.map((each) => made(each.built).document),
            tried.map((each) => documents.map((one) => fulfils(each, one))), sorts.map(sorted)];
        }""",
        FOUND["filters"],
        asked,
    )
    assert built == [each["document"] for each in FOUND["filters"]]
    for filter_, found in zip(asked["filters"], matched, strict=True):
        matches = read_query({"filter": filter_}).matches
        assert found == [matches(each) for each in asked["documents"]], filter_
    for sort, found in zip(asked["sorts"], orders, strict=True):
        result = read_query({"sort": sort}).result(asked["documents"])
        assert found == [each["_id"] for each in result], sort


def test_writes_are_shown_at_once_and_taken_back_where_they_are_refused(page, scripted):
    address, played = scripted
    played.cases["cases"][0]["turns"] = [
        {
            "resume": None,
            "then": "stay",
            "messages": [
                {"type": "begin", "ordered": True},
                {
                    "type": "first",
                    "documents": [{"_id": each, "rank": int(each)} for each in "145"],
                },
                {"type": "ready", "number": 1, "token": "a"},
            ],
        }
    ]
    page.open(address)
    found = called(page, script("live_writes.js"))
    page.errors.clear()  # the browser tells of each refusal
    assert found["first"] == ["1", "4", "5"]
    assert found["shown"] == [["9", "1", "4", "5"], ["9", "1"], True]
    assert found["refused"] == [True, "data.invalid-value"]
    assert found["back"] == [["1", "4", "5"], False]
    assert found["several"] == [["4", "1"], ["1"], 3]
    assert found["accepted"] == 0
    assert found["settled"] == ["1", "4", "5"]
    assert sorted(found["told"]) == [
        "refused refused",
        "settled kept",
        "settled later",
        "settled lost",
    ]
    assert (found["full"], found["kept"], found["left"]) == ("RangeError", True, 0)
    assert found["thousand"] == [1000, 1000, 1000]
    assert found["moved"] == [1000, True, 0]
    refused = "data.invalid-value"
    assert found["batches"] == [996, [[f"lost{at}", refused] for at in (7, 307, 607, 907)]]
    assert found["narrow"] == [10, []]
    assert found["unreadable"] == [4, [["unreadable2", refused]]]
    assert found["heir"] == 0
    assert found["hopeless"] == "RangeError"
    require_batches(played)
    keys = {}
    for stream, key, record in played.records:
        if re.fullmatch(r"\w\d?", record["id"]) and not record["id"].startswith("d"):
            keys.setdefault((stream, record["id"]), []).append(key)
    assert {each: len(sent) for each, sent in keys.items()} == {
        ("refused", "9"): 1,
        ("later", "1"): 2,
        ("lost", "4"): 2,
        ("kept", "5"): 1,
        ("kept", "k1"): 1,
        ("kept", "k2"): 1,
    }
    assert all(len(set(sent)) == 1 for sent in keys.values())


def require_batches(played):
    """Each record is written once and in order, in few requests, also where an answer is lost."""
    written = {}
    for stream, body in played.written.values():
        given = json.loads(body)
        written.setdefault(stream, []).extend(
            each["id"] for each in (given if isinstance(given, list) else [given])
        )
    bad = {"lost": {7, 307, 607, 907}, "unreadable": {2}}
    for stream, count in (("lost", 1000), ("narrow", 10), ("unreadable", 5)):
        expected = [f"{stream}{at}" for at in range(count) if at not in bad.get(stream, ())]
        assert [each for each in written[stream] if each.startswith(stream)] == expected
    assert sum(count > 3 for stream, _, count in played.requests if stream == "lost") <= 30
    dying = [key for stream, key, each in played.records if each["id"] == "d2"]
    assert (len(dying), len(set(dying)), written["lost"].count("d2")) == (2, 1, 1)


@pytest.mark.parametrize(("base", "way"), [("/nosocket", "events"), ("/onlypolls", "poll")])
def test_where_a_way_is_blocked_the_next_one_is_taken(page, scripted, base, way):
    page.open(scripted[0])
    found = called(
        page,
        """async (base, name) => {
          const { connect } = await import('/client/live.js');
          const client = connect({ url: location.origin + base, firstWaitMs: 1, longestWaitMs: 2 });
          const query = client.live({}, { live: `${name}:2` });
          await query.ready;
          while (query.documents.length !== 3 || query.documents[0]._id !== 3) {
            await new Promise((resolve) => query.addEventListener('change', resolve, { once: true }));
          }
          const { way } = client;
          client.close();
          return [way, client.state];
        }""",
        base,
        f"fallback{way}",
    )
    page.errors.clear()  # the browser tells of each socket that is refused
    assert found == [way, "closed"]


ADDED = {"what": "add", "index": 1, "document": {"_id": "8"}}


def coming_back(played, name, *, told):
    """Play one document, and a second one for who comes back when ``told`` says so."""

    def turn(asked):
        if asked.get("resume") is None:
            return DEFAULT["messages"]
        if asked["resume"] == "b":
            return [{"type": "resumed", "number": 2}]
        resumed = {"type": "resumed", "number": 1}
        change = {"type": "changes", "events": [ADDED], "after": 1, "number": 2, "token": "b"}
        return [resumed, change] if told() else []

    played.turns[name] = turn


FOLLOW = """async (options, live, face) => {
  const { connect } = await import('/client/live.js');
  const state = { token: 't1', states: [], kinds: [] };
  const client = connect({ firstWaitMs: 1, longestWaitMs: 2, token: () => state.token, ...options, url: location.origin + options.url });
  client.addEventListener('state', () => state.states.push(client.state));
  const query = client.live({}, { live, face });
  query.addEventListener('change', ({ detail }) => state.kinds.push(detail.kind));
  await query.ready;
  window.one = Object.assign(state, { client, query, ids: () => query.documents.map((each) => each._id).join() });
  return client.way;
}"""


@pytest.mark.parametrize(("base", "way"), [("unsteady", "events"), ("unsteadypolls", "poll")])
def test_the_socket_is_taken_again_when_it_is_not_blocked_any_more(page, scripted, base, way):
    address, played = scripted
    played.blocked = True
    coming_back(played, base, told=lambda: not played.blocked)
    page.open(address)
    assert called(page, FOLLOW, {"url": f"/{base}", "probeMs": 60}, base) == way
    played.blocked = False
    page.wait("one.client.way === 'socket' && one.client.state === 'open' && one.ids() === '7,8'")
    page.errors.clear()  # the browser tells of each socket that is refused


def test_a_gateway_that_is_silent_is_asked_and_then_left(page, scripted):
    address, played = scripted
    coming_back(played, "silent", told=lambda: True)
    page.open(address)
    called(page, FOLLOW, {"url": "", "silenceMs": 600}, "silent")
    page.evaluate(
        "{ const { options } = one.client.connection, { told } = options; one.pongs = 0; one.states.length = 0;"
        " options.told = (message) => { one.pongs += message.type === 'pong'; told(message); }; }"
    )
    page.wait("one.pongs >= 2")
    assert played.pings >= 2
    assert page.evaluate("[one.states, one.ids()]") == [[], "7"]  # it answers: nothing changes
    played.deaf, sockets = True, played.sockets
    page.wait("one.ids() === '7,8'")
    played.deaf = False
    assert played.sockets > sockets
    assert page.evaluate("one.states.slice(0, 3)") == ["waiting", "connecting", "open"]


def test_a_newer_token_goes_on_over_the_same_socket(page, scripted):
    address, played = scripted
    coming_back(played, "tokens", told=lambda: True)
    page.open(address)
    for way, expected in (("socket", [[], "9"]), ("events", [["connecting", "open"], "7,8"])):
        called(page, FOLLOW, {"url": "", "ways": [way]}, "tokens")
        page.evaluate("one.states.length = 0; one.token = 't2'; one.client.authenticate()")
        if way == "socket":
            page.evaluate("one.token = 'other'; one.client.authenticate()")
        page.wait(f"one.ids() === {expected[1]!r} && one.client.state === 'open'")
        assert page.evaluate("[one.states, one.ids()]") == expected
        page.evaluate("one.client.close()")
    assert played.tokens == ["t2", "other"]
    assert played.bearers[-2:] == ["Bearer t1", "Bearer t2"]


def test_whole_results_are_followed_and_asked_for_anew_after_a_break(page, scripted):
    address, played = scripted

    def told(number, *ids):
        documents = [{"_id": each} for each in ids]
        return {"type": "results", "documents": documents, "number": number, "token": "a"}

    played.turns["whole"] = iter(
        [
            {"resume": None, "then": "break", "messages": [told(1, 1, 2), told(9, 2)]},
            {"resume": None, "then": "stay", "messages": [told(3, 2, 1, 4)]},
        ]
    )
    page.open(address)
    called(page, FOLLOW, {"url": "", "ways": ["socket"]}, "whole", "results")
    page.wait("one.ids() === '2,1,4'")
    assert page.evaluate("one.kinds") == ["result"] * 3
    asked = [each for each in played.asked if each.get("live") == "whole"]
    assert [(each["face"], "resume" in each) for each in asked] == [("results", False)] * 2


def test_a_token_that_has_expired_is_asked_for_anew_until_nobody_knows_a_better_one(page, scripted):
    address, played = scripted
    resumed = {"type": "resumed", "number": 1}
    added = {"what": "add", "index": 1, "document": {"_id": "8"}}
    change = {"type": "changes", "events": [added], "after": 1, "number": 2, "token": "b"}
    unknown = {"resume": "b", "then": "unknown", "messages": []}
    played.turns["expiring"] = iter(
        [
            {**DEFAULT, "then": "unknown"},
            {"resume": "a", "then": "unknown", "messages": [resumed, change]},
            *[unknown] * 3,
            {"resume": "b", "then": "stay", "messages": [{**resumed, "number": 2}]},
        ]
    )
    page.open(address)
    before = len(played.protocols)
    states = called(
        page,
        """async () => {
          const { connect } = await import('/client/live.js');
          let asked = 0;
          const client = connect({ url: location.origin, token: async () => `t${asked += 1}`, firstWaitMs: 1, longestWaitMs: 2 });
          const state = (wanted) => new Promise((resolve) => {
            const look = () => { if (client.state === wanted) resolve(client.state); };
            client.addEventListener('state', look);
            look();
          });
          const query = client.live({}, { live: 'expiring' });
          await query.ready;
          const refused = await state('refused');
          const why = client.problem.code;
          client.authenticate();
          const open = await state('open');
          const found = [refused, why, open, query.documents.map((each) => each._id)];
          client.close();
          return found;
        }""",
    )
    assert states == ["refused", "caller.unknown", "open", ["7", "8"]]
    protocols = played.protocols[before:]
    tokens = [base64.urlsafe_b64decode(each.rpartition(".")[2] + "==") for each in protocols]
    assert tokens == [b"t%d" % number for number in range(1, len(tokens) + 1)]
    page.errors.clear()


def test_the_scripts_of_the_guide_run(page, scripted):
    page.open(scripted[0])
    text = (HERE.parents[1] / "docs" / "javascript.md").read_text("utf-8")
    (html,) = re.findall(r"^```html\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    first, *others = re.findall(r"^```js\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(others) == 3
    page.evaluate(f"document.body.innerHTML = {json.dumps(html)}; null")
    for name, source in (("one", first), ("all", "\n".join(others))):
        page.evaluate(
            "document.head.append(Object.assign(document.createElement('script'),"
            f" {{ type: 'module', text: {json.dumps(f'{source}{chr(10)}window.ran = {name!r};')} }}))"
        )
        page.wait(f"window.ran === {name!r}")
    page.wait_text("water the plants", "#orders")
    assert page.log[:2] == ["log: water the plants", "log: result Array(0) 1"]
