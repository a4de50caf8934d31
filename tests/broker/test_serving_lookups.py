"""Questions to tables and to the state of running services, through any gateway."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from urllib.parse import quote

import pytest

from penstock import App, State, record
from penstock.backbone.log.producer import Producer
from penstock.backbone.topics.topics import Topics
from penstock.core.rules.check import verified
from penstock.state import MapState

from .serving_site import LIMIT_SECONDS, open_door, until, working


@record(key="word")
class Word:
    word: str
    length: int = 0


@record(key="word")
class Count:
    word: str
    count: int


def declared(kafka, name, partitions=3):
    app = App(name)
    words = app.stream(f"{name}.words", Word, partitions=partitions)
    counts = app.table(f"{name}.counts", Count, partitions=partitions)

    @app.service(reads=words, writes=counts)
    def count(word: Word, total: State[int], lengths: MapState[int, int]) -> Count:
        value = total.get(0) + 1
        total.set(value)
        lengths[word.length] = lengths.get(word.length, 0) + 1
        return Count(word.word, value)

    app.gateway("door", takes=words, shows=(counts, count))
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())
    return graph


@pytest.fixture(scope="module", params=["memory", "disk"])
def shop(request, kafka, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    graph = declared(kafka, f"lookups{time.time_ns()}")
    with working(graph, kafka, home, state=request.param), open_door(graph, kafka, home) as door:
        name = graph.app
        door.words, door.rows = f"{name}.words", f"/v1/tables/{name}.counts/rows"
        door.values = "/v1/states/count/total/values"
        words = [f"w{number % 100:03}" for number in range(300)]
        body = [{"word": word, "length": len(word)} for word in words]
        answer = door.post(door.words, body)
        door.at_least = at_least(door.words, answer.json["records"])
        assert answer.status == 201
        until(lambda: door.get(door.values).status == 200, "workers own all tasks")
        yield door


def at_least(topic, stands):
    ends = {}
    for each in stands:
        ends[each["partition"]] = max(ends.get(each["partition"], 0), each["offset"])
    return "&at_least=" + ",".join(f"{topic}:{number}:{end}" for number, end in ends.items())


def test_a_value_has_its_position_and_its_age_and_can_be_ones_own_write(shop):
    answer = shop.get(f"{shop.values}/w007?{shop.at_least[1:]}")
    assert answer.status == 200, answer.body
    assert (answer.json["key"], answer.json["value"]) == ("w007", 3)
    assert list(answer.json["positions"]) == [shop.words]
    later = until(
        lambda: shop.get(f"{shop.values}/w007").json["stale_seconds"] == 0.0, "it is fresh"
    )
    assert later


def test_a_write_is_read_by_whoever_asks_for_its_offset(shop):
    for number in range(1, 6):
        stand = shop.post(shop.words, {"word": "own"}).json
        own = at_least(shop.words, [stand])[1:]
        assert shop.get(f"{shop.values}/own?{own}").json["value"] == number


def test_a_scan_goes_over_all_tasks_in_the_order_of_the_keys(shop):
    keys, path = [], f"{shop.values}?prefix=w&limit=17{shop.at_least}"
    following = ""
    while True:
        page = shop.get(path + following).json
        assert [row["value"] for row in page["rows"]] == [3] * len(page["rows"])
        keys += [row["key"] for row in page["rows"]]
        if page["next"] is None:
            break
        following = f"&after={quote(page['next'])}"
    assert keys == [f"w{number:03}" for number in range(100)]
    some = shop.get(f"{shop.values}?from=w010&to=w013{shop.at_least}").json
    assert [row["key"] for row in some["rows"]] == ["w010", "w011", "w012"]
    assert len(some["positions"][shop.words]) == 3


def test_maps_are_shown_whole_and_in_order(shop):
    maps = "/v1/states/count/lengths/values"
    assert shop.get(f"{maps}/w007?{shop.at_least[1:]}").json["value"] == {"4": 3}
    page = shop.get(f"{maps}?prefix=w&limit=5{shop.at_least}").json
    assert [row["key"] for row in page["rows"]] == ["w000", "w001", "w002", "w003", "w004"]
    assert page["next"] == "w004"


def test_rows_of_a_table_are_found_by_key_and_by_range(shop):
    row = until(
        lambda: (
            (found := shop.get(f"{shop.rows}/w050")).status == 200
            and found.json["value"] == {"word": "w050", "count": 3}
            and found
        ),
        "the table has the row",
    )
    assert list(row.json["positions"].values()) != [{}]
    page = until(
        lambda: (
            len((found := shop.get(f"{shop.rows}?prefix=w&limit=1000").json)["rows"]) == 100
            and found
        ),
        "the table has all rows",
    )
    assert page["next"] is None
    assert shop.get(f"{shop.rows}?from=w010&to=w012").json["rows"][0]["key"] == "w010"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("{values}/nothing", 404, "value.missing"),
        ("{rows}/nothing", 404, "row.missing"),
        ("/v1/states/count/none/values/a", 404, "state.unknown"),
        ("/v1/states/none/total/values/a", 404, "service.unknown"),
        ("/v1/tables/none/rows", 404, "table.unknown"),
        ("{values}?limit=0", 400, "query.value"),
        ("{values}?limit=1e9", 400, "query.value"),
        ("{values}/a?at_least=x", 400, "query.value"),
        ("{values}/a?max_stale=soon", 400, "query.value"),
        ("{values}/a?at_least=elsewhere:0:1", 400, "query.value"),
        ("{rows}?at_least={words}:0:1", 400, "query.value"),
        (
            "{values}/w001?at_least={words}:0:99999999,{words}:1:99999999,{words}:2:99999999&wait=50ms",
            503,
            "position.behind",
        ),
    ],
)
def test_what_cannot_be_answered_says_why(shop, path, status, code):
    answer = shop.get(path.format(values=shop.values, rows=shop.rows, words=shop.words))
    assert (answer.status, answer.json["code"]) == (status, code)


def test_a_worker_with_another_secret_is_not_believed(shop, kafka, tmp_path):
    graph = declared(kafka, shop.words.removesuffix(".words"))
    with open_door(graph, kafka, tmp_path) as stranger:
        answer = stranger.get(f"{shop.values}/w001")
    assert (answer.status, answer.json["code"]) == (503, "peer.secret")


def test_owners_are_killed_while_they_are_asked_and_no_answer_is_wrong(kafka, tmp_path):
    """Two workers are killed in turn; each answer equals a recount up to its position.

    Each has a disk of its own, as on hosts of their own: while an owner is away, a standby answers.
    """
    name = f"owners{time.time_ns()}"
    graph = declared(kafka, name)
    (tmp_path / "app.py").write_text(APP.format(name=name))
    processes = [worker(tmp_path, kafka, disk=number) for number in range(2)]
    sent = [f"k{number % 7}" for number in range(3000)]
    stop = threading.Event()
    try:
        with open_door(graph, kafka, tmp_path / ".penstock") as door:
            feeding = threading.Thread(target=feed, args=(kafka, f"{name}.words", sent, stop))
            feeding.start()
            answers, sums, refused = [], [], Counter()
            copied = 0  # answers of standbys
            deadline = time.monotonic() + LIMIT_SECONDS
            for victim in processes[:2]:
                before, killed_at = len(answers), None
                while (
                    killed_at is None
                    or time.monotonic() < killed_at + 2
                    or (not copied and time.monotonic() < deadline)
                ):
                    answer = door.get(f"/v1/states/count/total/values/k{len(answers) % 7}")
                    if answer.status == 200:
                        answers.append(answer.json)
                        copied += killed_at is not None and answer.json.get("stale", False)
                    else:
                        refused[answer.json["code"]] += 1
                    summed = door.request("POST", "/v1/sql", {"query": SUM})
                    if summed.status == 200:
                        sums.append(summed.json)
                    else:
                        refused[summed.json["code"]] += 1
                    if killed_at is None and len(answers) > before + 50:
                        victim.kill()
                        processes.append(worker(tmp_path, kafka, disk=len(processes)))
                        killed_at = time.monotonic()
            feeding.join(LIMIT_SECONDS)
            last = until(lambda: caught_up(door, sent), "every record is counted")
    finally:
        stop.set()
        for process in processes:
            process.kill()
            process.wait(LIMIT_SECONDS)
    assert set(refused) <= {"state.moving", "value.missing", "peer.gone", "scan.gone"}
    assert last == Counter(sent)
    assert copied
    history = recount(kafka, f"{name}.words")
    assert len(sums) > 10
    for each in sums:
        positions = each["relations"]["count.total"]["positions"][f"{name}.words"]
        before = sum(history[int(number)](None, offset) for number, offset in positions.items())
        assert (each["rows"][0]["n"] or 0) == before
    for answer in answers:
        (number, offset), *_ = answer["positions"][f"{name}.words"].items()
        assert answer["value"] == history[int(number)](answer["key"], offset)


SUM = "select sum(value) as n from count.total"


def worker(directory, kafka, *, disk):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "penstock.cli", "run", ".", "--part", "count"),
            *("--set", f"kafka.bootstrap={kafka.bootstrap}"),
            *("--set", "services.session_timeout=6s"),
            *("--set", "services.state=disk", "--set", "services.standby=on"),
            *("--set", f"services.state_dir={directory / f'disk{disk}'}"),
        ],
        cwd=directory,
        env=os.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def feed(kafka, topic, words, stop):
    with Producer(kafka) as producer:
        for number, word in enumerate(words):
            producer.send(topic, key=word.encode(), value=json.dumps({"word": word}).encode())
            if number % 20 == 0:
                producer.flush()
                if stop.wait(0.04):
                    return


def caught_up(door, sent):
    page = door.get("/v1/states/count/total/values")
    if page.status != 200:
        return None
    found = Counter({row["key"]: row["value"] for row in page.json["rows"]})
    return found if found.total() == len(sent) else None


def recount(kafka, topic):
    """Return for each partition what counts a word before an offset."""
    from penstock.backbone.log.reader import LogReader

    records = [(r.partition, r.offset, r.key.decode()) for r in LogReader(kafka).read(topic)]

    def counting(number):
        return lambda key, offset: sum(
            1
            for part, at, word in records
            if part == number and at < offset and key in (None, word)
        )

    return {number: counting(number) for number in range(3)}


APP = """
from penstock import App, State, record
from penstock.state import MapState

app = App("{name}")

@record(key="word")
class Word:
    word: str
    length: int = 0

@record(key="word")
class Count:
    word: str
    count: int

words = app.stream("{name}.words", Word, partitions=3)
counts = app.table("{name}.counts", Count, partitions=3)

@app.service(reads=words, writes=counts)
def count(word: Word, total: State[int], lengths: MapState[int, int]) -> Count:
    value = total.get(0) + 1
    total.set(value)
    lengths[word.length] = lengths.get(word.length, 0) + 1
    return Count(word.word, value)

app.gateway("door", takes=words, shows=(counts, count))
"""


def test_the_command_line_shows_the_state_of_running_services(kafka, tmp_path):
    name = f"cli{time.time_ns()}"
    graph = declared(kafka, name)
    (tmp_path / "app.py").write_text(APP.format(name=name))

    def penstock(*words):
        command = [sys.executable, "-m", "penstock.cli", "state", *words, "--json"]
        where = ["--set", f"kafka.bootstrap={kafka.bootstrap}"]
        done = subprocess.run(
            [*command, *where], check=False, cwd=tmp_path, capture_output=True, timeout=60
        )
        return json.loads(done.stdout) if done.stdout else done.stderr.decode()

    with Producer(kafka) as producer:
        for word in ("a", "b", "b"):
            producer.send(
                f"{name}.words", key=word.encode(), value=b'{"word":"%s"}' % word.encode()
            )
    with working(graph, kafka, tmp_path / ".penstock"):
        until(
            lambda: (
                (found := penstock("get", "count.total", "b"))
                and isinstance(found, dict)
                and found["value"] == 2
            ),
            "both are counted",
        )
        assert penstock("scan", "count.total", "--limit", "5") == [
            {"key": "a", "value": 1},
            {"key": "b", "value": 2},
        ]
        stores = penstock("stores")
    assert [(each["state"], each["kind"], each["running"]) for each in stores] == [
        ("count.total", "value", 3),
        ("count.lengths", "map", 3),
    ]
    assert "has no state" in penstock("get", "count.nothing", "b")
