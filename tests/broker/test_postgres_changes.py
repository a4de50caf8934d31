"""Changes of a real PostgreSQL: every one once and none missing, whatever is interrupted."""

import json
import random
import threading
from collections import defaultdict
from uuid import uuid4

import psycopg
import pytest
from tests.broker.sink_site import eventually, running

from penstock import App, record
from penstock.backbone.log.reader import LogReader
from penstock.backbone.topics.topics import Topics
from penstock.connectors import Captured, postgres_changes
from penstock.connectors.captured import Captured as Change
from penstock.core.rules.check import check, verified
from penstock.errors import ConfigurationError, TransientError

LIMIT_SECONDS = 120


@pytest.fixture
def secret(postgres, monkeypatch):
    monkeypatch.setenv("TEST_POSTGRES_WORD", postgres.word)
    return {"address": postgres.address, "password": "env:TEST_POSTGRES_WORD"}


@pytest.fixture
def slot(postgres):
    name = f"slot_{uuid4().hex[:8]}"
    yield name
    pause = threading.Event()
    for _ in range(LIMIT_SECONDS * 20):
        try:
            postgres.run(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE slot_name = %s",
                [name],
            )
        except psycopg.errors.ObjectInUse:
            pause.wait(0.05)
        else:
            return


class Following:
    """A source's runner without a log: it keeps what was committed, and may die at any moment."""

    def __init__(self, connector, *, seed: int = 1, dies: float = 0.0) -> None:
        self.changes: list[Change] = []
        self.faults: list[str] = []
        self.position = None
        self.deaths = 0
        self._connector = connector
        self._random = random.Random(seed)
        self._dies = dies

    def follow(self, until) -> None:
        pause = threading.Event()
        for _ in range(LIMIT_SECONDS * 20):
            try:
                with self._connector.attach() as attached:
                    self._read(attached, until)
            except TransientError:
                pause.wait(0.05)
            else:
                if until(self):
                    return
        raise AssertionError("it did not come about in time")

    def _read(self, attached, until) -> None:
        reading = attached.open("", self.position)
        try:
            for _ in range(5_000):
                if until(self):
                    return
                items = list(reading.read())
                died = self._random.random() < self._dies
                if died:
                    items = items[: self._random.randrange(len(items) + 1)]
                for item in items:
                    self.changes.append(item.content)
                    if fault := item.fault():
                        self.faults.append(fault.message)
                if items:
                    self.position = json.loads(json.dumps(reading.position_after(items[-1])))
                if died:
                    self.deaths += 1
                    return
        finally:
            reading.close()


def state(changes, key="id") -> dict:
    rows: dict = {}
    for change in changes:
        if change.now is not None:
            rows[change.now[key]] = change.now
        elif change.kind == "delete":
            rows.pop(change.before[key], None)
    return rows


def churn(postgres, table: str, seed: int, rounds: int) -> None:
    """Change rows at random: several at a time, in parallel, some of it taken back."""
    chance = random.Random(seed)
    with postgres.connect() as connection:
        connection.execute("SET lock_timeout = '5s'")
        for _ in range(rounds):
            try:
                with connection.transaction(force_rollback=chance.random() < 0.15):
                    for _ in range(chance.choice([1, 1, 2, 30])):
                        one_change(connection, table, chance)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable):
                continue


def one_change(connection, table: str, chance: random.Random) -> None:
    number, other = chance.randrange(300), chance.randrange(300)
    what = chance.random()
    if what < 0.5:
        query = (
            f"INSERT INTO {table} VALUES (%s, nextval('{table}_v'), %s)"
            f" ON CONFLICT (id) DO UPDATE SET v = excluded.v, text = excluded.text"
        )
        connection.execute(query, [name(number), f"{number} 'ö' \\ \n"])
    elif what < 0.75:
        connection.execute(f"DELETE FROM {table} WHERE id = %s", [name(number)])
    else:
        query = (
            f"UPDATE {table} t SET id = %s, v = nextval('{table}_v') WHERE id = %s"
            f" AND NOT EXISTS (SELECT 1 FROM {table} WHERE id = %s)"
        )
        try:
            with connection.transaction():
                connection.execute(query, [name(other), name(number), name(other)])
        except psycopg.errors.UniqueViolation:
            return


def name(number: int) -> str:
    return f"{'aAöZ_'[number % 5]}{number}"


AUDIT = """
CREATE TABLE {t} (id text PRIMARY KEY, v bigint, text text);
CREATE TABLE {t}_audit (place bigserial, id text, v bigint, kind text);
CREATE SEQUENCE {t}_v;
ALTER TABLE {t} REPLICA IDENTITY FULL;
CREATE FUNCTION {t}_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' OR (TG_OP = 'UPDATE' AND OLD.id <> NEW.id) THEN
    INSERT INTO {t}_audit (id, v, kind) VALUES (OLD.id, OLD.v, 'delete');
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO {t}_audit (id, v, kind) VALUES (NEW.id, NEW.v, 'now');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER told AFTER INSERT OR UPDATE OR DELETE ON {t}
  FOR EACH ROW EXECUTE FUNCTION {t}_told();
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_comes_once_and_in_order_however_often_the_reader_dies(
    postgres, secret, slot, seed
):
    table = f"t{uuid4().hex[:8]}"
    postgres.run(AUDIT.format(t=table))
    postgres.run(
        f"INSERT INTO {table} SELECT 'old' || n, nextval('{table}_v'), 'x'"
        " FROM generate_series(1, 2500) n"
    )
    following = Following(postgres_changes(table, slot=slot, **secret), seed=seed, dies=0.3)
    writers = [
        threading.Thread(target=churn, args=(postgres, table, seed * 10 + n, 150)) for n in (1, 2)
    ]
    for each in writers:
        each.start()
    following.follow(lambda one: one.deaths >= 4)
    for each in writers:
        each.join(LIMIT_SECONDS)
    postgres.run(f"INSERT INTO {table} VALUES ('the end', nextval('{table}_v'), '')")
    following.follow(lambda one: any(c.now and c.now["id"] == "the end" for c in one.changes))

    rows = postgres.run(f"SELECT id, v, text FROM {table}")
    assert state(following.changes) == {i: {"id": i, "v": v, "text": t} for i, v, t in rows}
    told, happened = defaultdict(list), defaultdict(list)
    for change in following.changes:
        row = change.now or change.before
        told[row["id"]].append(("delete" if change.now is None else "now", row["v"]))
    for i, v, kind in postgres.run(f"SELECT id, v, kind FROM {table}_audit ORDER BY place"):
        happened[i].append((kind, v))
    assert told
    for i, own in told.items():
        missed = len(happened[i]) - len(own)
        assert missed >= 0, (i, own, happened[i])
        assert happened[i][missed:] == own, i
    reads = [change for change in following.changes if change.kind == "read"]
    assert len({change.now["id"] for change in reads}) == len(reads) >= 2_500
    assert following.deaths >= 4


@record(key="id")
class Customer:
    id: int
    name: str
    bio: str = ""


def test_what_the_server_gives_is_told_before_images_types_schema_changes_and_what_is_left_out(
    postgres, secret, slot
):
    table = f"t{uuid4().hex[:8]}"
    postgres.run(
        f"CREATE TABLE {table} (id int PRIMARY KEY, name text, bio text, at timestamptz,"
        " plain timestamp, amount numeric, tags text[], more jsonb, ok bool, raw bytea, u uuid);"
        f"ALTER TABLE {table} ALTER bio SET STORAGE EXTERNAL"
    )
    connector = postgres_changes((table,), slot=slot, **secret)
    following = Following(connector)
    with postgres.connect() as connection:
        run = connection.execute

        def after(statement: str, values=(), *, more: int = 1) -> list[Change]:
            run(statement, values)
            start = len(following.changes)
            following.follow(lambda one: len(one.changes) >= start + more)
            return following.changes[start:]

        run(f"INSERT INTO {table} (id, name) VALUES (0, 'there')")
        following.follow(lambda one: len(one.changes) == 1)
        assert following.changes[0].kind == "read"
        assert after(f"UPDATE {table} SET name = 'here' WHERE id = 0")[0].kind == "update"
        made = after(
            f"INSERT INTO {table} VALUES (1, 'Ann', %s, '2026-11-19 20:00+01', '2026-01-01',"
            " 1.50, '{a,b}', '{\"x\": 1}', true, '\\x00ff',"
            " '12345678-1234-5678-1234-567812345678')",
            ["x" * 10_000],
        )[0]
        assert made.kind == "insert"
        row = dict(made.now)
        assert row.pop("at").isoformat() == "2026-11-19T19:00:00+00:00"
        assert row.pop("plain").isoformat() == "2026-01-01T00:00:00+00:00"
        assert str(row.pop("amount")) == "1.50"
        assert row.pop("bio") == "x" * 10_000
        assert row == {
            "id": 1, "name": "Ann", "tags": ["a", "b"], "more": {"x": 1}, "ok": True,
            "raw": b"\0\xff", "u": "12345678-1234-5678-1234-567812345678",
        }  # fmt: skip

        left_out = after(f"UPDATE {table} SET name = 'Bea' WHERE id = 1")[0]
        assert (left_out.kind, left_out.now["name"], left_out.before) == ("update", "Bea", None)
        assert "left out bio" in following.faults[0]
        run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        whole = after(f"UPDATE {table} SET name = 'Cee' WHERE id = 1")[0]
        assert (whole.now["bio"], whole.before["name"]) == ("x" * 10_000, "Bea")
        assert len(following.faults) == 1

        moved = after(f"UPDATE {table} SET id = 7 WHERE id = 1", more=2)
        assert [(c.kind, (c.now or c.before)["id"]) for c in moved] == [
            ("delete", 1),
            ("insert", 7),
        ]
        run(f"ALTER TABLE {table} ADD note text DEFAULT 'n', DROP more")
        changed = after(f"INSERT INTO {table} (id, name) VALUES (8, 'Dee')")[0]
        assert changed.now["note"] == "n"
        assert "more" not in changed.now
        emptied = after(f"TRUNCATE {table}")[0]
        assert (emptied.kind, emptied.now) == ("truncate", None)


def test_columns_that_change_are_a_fact_and_a_truncation_degrades_the_source(
    postgres, secret, slot
):
    table = f"t{uuid4().hex[:8]}"
    postgres.run(f"CREATE TABLE {table} (id int PRIMARY KEY, gone int)")
    with postgres_changes(table, slot=slot, **secret).attach() as attached:
        reading = attached.open("", None)
        try:
            assert not reading.read()
            postgres.run(f"INSERT INTO {table} VALUES (1, 1)")
            postgres.run(f"ALTER TABLE {table} ADD fresh text, DROP gone")
            postgres.run(f"INSERT INTO {table} VALUES (2, 'x')")
            postgres.run(f"TRUNCATE {table}")
            found: list = []
            for _ in range(1_000):
                found += reading.read()
                if len(found) >= 3:
                    break
            assert attached.facts()["columns"] == f"public.{table}: fresh is new, gone is gone"
            assert "was truncated" in attached.complaint()
        finally:
            reading.close()


def test_what_is_missing_is_told_before_anything_is_read_and_a_lost_slot_is_a_gap(
    postgres, secret, slot
):
    table = f"t{uuid4().hex[:8]}"
    postgres.run(f"CREATE TABLE {table} (id int)")
    app = App("shop")
    connector = postgres_changes(table, slot=slot, **secret)
    source = app.source("changes", connector, into=app.table("customers", Customer))
    with pytest.raises(ConfigurationError, match="with a primary key"):
        connector.attempt(source)
    postgres.run(f"ALTER TABLE {table} ADD PRIMARY KEY (id)")
    assert "not there yet" in connector.attempt(source)
    following = Following(connector)
    postgres.run(f"INSERT INTO {table} VALUES (1)")
    following.follow(lambda one: one.changes)
    postgres.run(f"UPDATE {table} SET id = 1")
    following.follow(lambda one: len(one.changes) == 2)
    taken = connector.attach()
    with taken as attached:
        reading = attached.open("", following.position)
        try:
            with pytest.raises(TransientError, match="another reader holds the slot"):
                postgres_changes(table, slot=slot, **secret).open("", following.position)
        finally:
            reading.close()
    pause = threading.Event()
    for _ in range(LIMIT_SECONDS * 20):
        try:
            postgres.run("SELECT pg_drop_replication_slot(%s)", [slot])
        except psycopg.errors.ObjectInUse:
            pause.wait(0.05)
        else:
            break
    with pytest.raises(ConfigurationError, match="is gone") as raised:
        connector.open("", following.position)
    assert raised.value.code == "source.gap"


def test_changes_go_into_a_table_or_through_a_parse():
    app = App("shop")
    made = postgres_changes("t", slot="t", address="postgresql://db/x")
    app.source("bare", made, into=app.stream("events", Customer))
    assert [problem.code for problem in check(app.graph)] == ["source.no-parse"]
    assert Captured is Change


def test_rows_of_a_table_are_those_of_the_server_over_restarts_of_both(
    kafka, topic, postgres, secret, slot
):
    place = f"t{uuid4().hex[:8]}"
    postgres.run(f"CREATE TABLE {place} (id int PRIMARY KEY, name text, bio text DEFAULT '')")
    postgres.run(f"INSERT INTO {place} SELECT n, 'old' FROM generate_series(1, 200) n")
    app = App(topic.name("app"))
    customers = app.table(f"{app.name}.customers", Customer, partitions=1)
    app.source("shop", postgres_changes(place, slot=slot, **secret), into=customers)
    graph = verified(app.graph)
    Topics(kafka).declare(graph.topics())

    def rows() -> dict[bytes, bytes | None]:
        found = {each.key: each.value for each in LogReader(kafka).read(customers.topic.name)}
        return {key: value for key, value in found.items() if value is not None}

    with running(kafka, graph, "shop") as reports:
        eventually(lambda: reports[-1].counts.passed == 200)
        postgres.run(f"UPDATE {place} SET name = 'new' WHERE id <= 100")
        postgres.run(f"DELETE FROM {place} WHERE id > 190")
        eventually(lambda: reports[-1].counts.passed == 310)
        eventually(lambda: reports[-1].detail.get("phase") == "changes")
    postgres.run(f"UPDATE {place} SET id = 1000, name = NULL WHERE id = 1")
    with running(kafka, graph, "shop") as reports:
        eventually(lambda: reports[-1].counts.received == 2)
        postgres.kill()
        try:
            eventually(lambda: reports[-1].state == "degraded")
        finally:
            postgres.start()
        postgres.run(f"INSERT INTO {place} VALUES (201, 'last')")
        eventually(lambda: reports[-1].counts.received == 3)
        eventually(lambda: reports[-1].state == "running")
    expected = {
        str(i).encode(): json.dumps({"id": i, "name": n, "bio": b}, separators=(",", ":")).encode()
        for i, n, b in postgres.run(f"SELECT * FROM {place} WHERE name IS NOT NULL")
    }
    assert rows() == expected
    assert len(expected) == 190
    letters = list(LogReader(kafka).read(graph.dead_letters.name))
    assert [dict(each.headers)["penstock.code"] for each in letters] == [b"data.wrong-type"]
