"""SQL over topics and the lake: what it sees, what it cannot do, and how it is asked."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock import App, day, record
from penstock.backbone.topics.range import LATEST, Last
from penstock.cli.main import main
from penstock.errors import ConfigurationError, TransientError
from penstock.machine.configfile import load_configuration
from penstock.machine.process.processes import session_members
from penstock.pipelines.lake.snapshot import changes
from penstock.pipelines.lake.table import defaulted, make_table, stored_rows
from penstock.pipelines.query.query import QuerySpan, ask, closed_session


@record(key="word", time="at")
class Word:
    word: str
    at: datetime
    length: int


AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
APPLICATION = """
from datetime import datetime
from penstock import App, day, record

@record(key="word", time="at")
class Word:
    word: str
    at: datetime
    length: int

app = App("{name}")
words = app.stream("{name}.words", Word)
latest = app.table("{name}.latest", Word)
kept = app.lake("kept", Word, partition_by=day("at"))
"""


@dataclass
class Shop:
    """One application with a stream, a table and a lake table, each with rows."""

    ground: Any
    spark: SparkSession
    loaded: Any

    def ask(self, text, *, rows=1000, seconds=120, start=None):
        graph = self.ground.graph
        for name in ("words", "latest"):
            text = text.replace(f"@{name}", f"`{self.ground.topic(name)}`")
        limits = {"rows": rows, "time": timedelta(seconds=seconds)}
        span = QuerySpan(**limits) if start is None else QuerySpan(**limits, start=start)
        kafka = self.ground.kafka
        with ask(graph, text, self.loaded, lambda: nullcontext(kafka), span=span) as answer:
            found = list(answer.rows())
            return answer.columns, found, answer.truncated, answer.refused()

    def rows(self, text, **options):
        return self.ask(text, **options)[1]


def value(word: str, seconds: int = 0) -> bytes:
    at = (AT + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    return json.dumps({"word": word, "at": at, "length": len(word)}).encode()


@pytest.fixture(scope="module")
def shop(lasting_ground, spark) -> Shop:
    return filled(lasting_ground, spark, lasting_ground.home)


def filled(ground, spark, home) -> Shop:
    app = ground.app
    app.stream(ground.topic("words"), Word)
    app.table(ground.topic("latest"), Word)
    kept = app.lake("kept", Word, partition_by=day("at"))
    ground.declare()
    ground.send("words", *((w.encode(), value(w, n)) for n, w in enumerate(["a", "bb", "a"])))
    ground.send("words", (b"a", b"no record"), (b"x", value("a")))
    ground.send("latest", (b"a", value("a", 1)), (b"b", value("b", 1)), (b"a", value("a", 2)))
    ground.send("latest", (b"b", None), (b"a", b"no record"), (b"c", value("c", 3)))
    loaded = load_configuration(file=None, profile=None, flags={"home": str(home)})
    path = f"{home}/lake/kept"
    make_table(spark, kept, path)
    for number, word in enumerate(["a", "bb"]):
        at = (AT + timedelta(days=number)).replace(tzinfo=None)
        rows = spark.sql(f"select '{word}' as word, timestamp'{at}' as at, {number + 1}L as length")
        stored_rows(rows, kept).write.format("delta").mode("append").save(path)
    return Shop(ground, spark, loaded)


def test_a_stream_gives_all_its_records_a_table_the_latest_of_each_key(shop):
    words, latest = (shop.ground.topic(each) for each in ("words", "latest"))
    columns, rows, _, refused = shop.ask("select word, count(*) as n from @words group by 1")
    assert (columns, sorted(rows)) == (["word", "n"], [("a", 2), ("bb", 1)])
    assert refused == {words: 2}
    _, rows, _, refused = shop.ask("select word, at from @latest order by word")
    assert rows == [("a", AT + timedelta(seconds=2)), ("c", AT + timedelta(seconds=3))]
    assert refused == {latest: 1}


def test_streams_tables_and_the_lake_are_joined_in_one_query(shop):
    text = """
        with lengths as (select word, max(length) as length from @words group by word)
        select w.word, w.length, k.at_day, l.at is not null as known
        from lengths w left join kept k on k.word = w.word
        left join @latest l on l.word = w.word order by 1
    """
    found = [(word, length, str(when), known) for word, length, when, known in shop.rows(text)]
    assert found == [("a", 1, "2026-03-01", True), ("bb", 2, "2026-03-02", False)]


def test_a_range_of_the_topics_and_a_number_of_rows_can_be_chosen(shop):
    _, rows, truncated, _ = shop.ask("select * from @words limit 10", rows=2)
    assert (len(rows), truncated) == (2, True)
    assert shop.rows("select * from @words", start=LATEST) == []
    assert len(shop.rows("select * from @words", start=Last(100))) == 3


def test_a_table_is_whole_whatever_range_of_streams_is_chosen(shop):
    text = "select l.word, count(w.word) from @latest l left join @words w on true group by 1"
    assert sorted(shop.rows(text, start=LATEST)) == [("a", 0), ("c", 0)]


def test_a_table_of_the_lake_is_read_as_it_was(shop):
    assert shop.rows("select count(*) from kept") == [(2,)]
    assert shop.rows("select word from kept version as of 1") == [("a",)]
    assert shop.rows("select count(*) from kept version as of 0") == [(0,)]
    (_, first, *_) = reversed(changes(shop.spark, f"{shop.ground.home}/lake/kept", limit=10))
    when = first.at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    text = "select word from kept timestamp as of 'WHEN'"
    assert shop.rows(text.replace("WHEN", when)) == [("a",)]
    with pytest.raises(ConfigurationError, match="9"):
        shop.rows("select * from kept version as of 9")
    with pytest.raises(ConfigurationError):
        shop.rows("select * from kept timestamp as of '1999-01-01'")


def test_rows_that_are_older_than_a_field_have_its_default(spark, tmp_path):
    @record(key="word")
    class Old:
        word: str

    @record(key="word")
    class New:
        word: str
        unit: str = "K"
        note: str | None = None

    path = str(tmp_path / "units")
    old, new = App("a").lake("units", Old), App("b").lake("units", New)
    make_table(spark, old, path)
    spark.sql("select 'a' as word").write.format("delta").mode("append").save(path)
    before = defaulted(spark.read.format("delta").load(path), new)
    assert [tuple(row) for row in before.collect()] == [("a", "K", None)]
    make_table(spark, new, path)
    rows = spark.sql("select 'b' as word, 'C' as unit, cast(null as string) as note")
    rows.write.format("delta").mode("append").save(path)
    after = defaulted(spark.read.format("delta").load(path), new)
    assert [row.word for row in after.where("unit = 'K'").collect()] == ["a"]
    assert sorted(tuple(row) for row in after.collect()) == [("a", "K", None), ("b", "C", None)]


def test_values_of_every_kind_come_out_as_plain_values(shop):
    text = """
        select timestamp '2026-10-25 00:30:00' as at, date '2026-01-02' as day, 1.50BD as price,
               array(1, null) as numbers, map('k', timestamp '2026-01-01') as by_name,
               named_struct('x', 1, 'at', timestamp '2026-01-01') as inner, x'00ff' as raw,
               cast(null as timestamp) as nothing, interval '1-2' year to month as age,
               array(parse_json('{"a": [1]}')) as free
    """
    columns, (row,), *_ = shop.ask(text)
    at, when, price, numbers, by_name, inner, raw, nothing, age, free = row
    assert columns[:3] == ["at", "day", "price"]
    assert at == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    first = datetime(2026, 1, 1, tzinfo=UTC)
    assert (str(when), str(price), numbers) == ("2026-01-02", "1.50", [1, None])
    assert (by_name, inner, raw) == ({"k": first}, {"x": 1, "at": first}, b"\x00\xff")
    assert (nothing, age, free) == (None, "INTERVAL '1-2' YEAR TO MONTH", ['{"a":[1]}'])


def test_instants_are_the_same_whatever_the_time_zone_of_the_machine(shop, monkeypatch):
    text = """
        select timestamp '0001-01-01 00:00:00' as first, timestamp '9999-12-31 23:59:59.999999' as last,
               array(named_struct('a', map(timestamp '2026-10-25 00:30:00', 1))) as inner,
               timestamp '2026-03-29 02:30:00' as last
    """
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        _, ((first, last, inner, skipped),), *_ = shop.ask(text)
        with pytest.raises(ConfigurationError) as caught:
            shop.ask("select timestamp '0001-01-01 00:00:00' - interval 1 day")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert first == datetime(1, 1, 1, tzinfo=UTC)
    assert last == datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert inner == [{"a": {"2026-10-25 00:30:00+00:00": 1}}]
    assert skipped == datetime(2026, 3, 29, 2, 30, tzinfo=UTC)
    assert caught.value.code == "query.value"


def test_what_spark_does_not_understand_is_said_in_a_line(shop):
    with pytest.raises(ConfigurationError) as caught:
        shop.rows("select wrod from @words")
    assert caught.value.code == "query.wrong"
    assert "`word`" in caught.value.detail
    assert "\n" not in caught.value.detail
    with pytest.raises(ConfigurationError) as caught:
        shop.rows("select 1 / 0")
    assert "zero" in caught.value.detail.lower()


def test_a_query_ends_when_its_time_is_over(shop):
    text = "select count(*) from range(1000000000) a, range(1000000000) b where a.id = -b.id + 7"
    with pytest.raises(TransientError) as caught:
        shop.rows(text.replace("a.id = -b.id + 7", "hash(a.id, b.id) = 7"), seconds=3)
    assert caught.value.code == "query.time"


@pytest.mark.parametrize(
    "text",
    [
        # Each takes several times the limit on a quick machine, and ends by itself.
        (
            "select aggregate(sequence(1, 3000), 'a', (s, x) -> "
            "aggregate(sequence(1, 1000), s, (t, y) -> sha2(t || y, 512))) as folded"
        ),
        "values (levenshtein(repeat('a', 60000), repeat('b', 60000)))",
    ],
    ids=["optimizer", "analyzer"],
)
def test_a_query_ends_when_its_time_is_over_while_spark_still_plans(shop, text):
    with pytest.raises(TransientError) as caught:
        shop.rows(text, seconds=1)
    assert caught.value.code == "query.time"


def test_who_runs_a_query_is_not_told(shop, spark):
    for text in (
        "select current_user",
        "select session_user as x from @words",
        "select word from @words where user = 'root'",
        "select (select max(user)) from kept",
        "select transform(array(1), x -> current_user)",
    ):
        with pytest.raises(ConfigurationError) as caught:
            shop.rows(text)
        assert caught.value.code == "query.refused", text
    # A column of that name is a column.
    assert shop.rows("select user, x.user from (select 'me' as user) x") == [("me", "me")]
    assert shop.rows("select transform(array(1), user -> user + 1)") == [([2],)]
    for text in ("select _metadata.file_path from kept", "select kept._metadata from kept"):
        with pytest.raises(ConfigurationError, match="_metadata"):
            shop.rows(text)


EXPRESSIONS = """
'a\\'b' || "c"; 'a' 'b'; 5 div 2; 5 % 2; -7 % 3; 1 <=> null; null is null; 2 between 1 and 3; 'ab' like 'a%'
'ab' ilike 'A_'; 'ab' rlike 'a.'; 'a' in ('a', 'b'); case 1 when 1 then 'x' else 'y' end; if(true, 1, 2)
cast('1.5' as decimal(10, 2)); '7'::int; try_cast('x' as int); cast(array(1) as array<string>); 10L; 1.5BD; 1e3
extract(year from date '2026-03-01'); date_trunc('day', timestamp '2026-03-01 12:34:56'); to_date('2026-03-01')
date_add(date '2026-03-01', 1); datediff(date '2026-03-02', date '2026-03-01'); interval '1' day; interval 90 minutes
timestamp '2026-03-01 00:00:00' + interval 5 minutes; date_format(date '2026-03-01', 'yyyy/MM'); last_day('2026-02-01')
unix_timestamp('2026-03-01 00:00:00'); trim(both 'x' from 'xax'); trim('  a '); substring('abc' from 2 for 1)
substring('abc', 2); position('b' in 'abc'); locate('b', 'abc'); upper('a'); concat_ws(',', 'a', 'b'); split('a,b', ',')
regexp_replace('a1', '[0-9]', 'x'); regexp_extract('a1', '([0-9])', 1); format_string('%d %s', 1, 'a'); lpad('a', 3, '-')
round(2.5); bround(2.5); ceil(1.2); floor(-1.2); pmod(-7, 3); greatest(1, 2); coalesce(null, 1); nvl2(null, 1, 2); log(2, 8)
split('a,b', ',')[0]; map('a', 1)['a']; element_at(array(1, 2), -1); transform(array(1, 2), x -> x + 1); size(array(1))
aggregate(array(1, 2), 0, (s, x) -> s + x); filter(array(1, 2), x -> x > 1); exists(array(1), x -> x = 1); sequence(1, 3)
named_struct('a', 1).a; struct(1, 2); map_keys(map('a', 1)); array_sort(array(2, 1)); sort_array(array(2, 1), false)
from_json('{"x": 1}', 'x int').x; to_json(named_struct('a', 1)); get_json_object('{"x": 1}', '$.x'); md5('a'); hex('a')
typeof(1); 1 & 3 | 4; 1 ^ 3; ~1; not true; true and false or true; (1 + 2) * 3; -(-1); 'é' = 'é'; x'1F'; date '2026-01-01' > date '2025-01-01'
"""


def test_an_expression_gives_what_spark_gives(shop):
    texts = [each.strip() for line in EXPRESSIONS.splitlines() for each in line.split(";")]
    listed = ", ".join(f"string({text}) as c{n}" for n, text in enumerate(filter(None, texts)))
    whole = f"select {listed}"
    (expected,) = shop.spark.sql(whole).collect()
    assert shop.rows(whole) == [tuple(expected)]


def test_clauses_give_what_spark_gives(shop):
    source = "(select id, id % 3 as g, if(id % 4 = 0, null, id) as n from range(20))"
    for clause in (
        "select g, sum(n) filter (where n > 5) as s, count(distinct n) as d from SOURCE group by g",
        "select g, percentile_cont(0.5) within group (order by n) as m from SOURCE group by g",
        "select id, sum(id) over (partition by g order by id rows between 1 preceding and current row) as s from SOURCE",
        "select id, lag(id) over (order by id desc nulls first) as l from SOURCE",
        "select g, grouping(g) as x, count(*) as c from SOURCE group by cube (g)",
        "select g, n, count(*) as c from SOURCE group by grouping sets ((g), (n), ())",
        "select t.x from SOURCE lateral view outer explode(array(id, n)) t as x",
        "select distinct g from SOURCE where id in (select id from range(5)) union select 99",
        "select id from SOURCE except select id from range(10) intersect select 11L",
        "select a.id from SOURCE a left semi join range(3) b on a.id = b.id",
        "select a.id from SOURCE a where not exists (select 1 from range(3) b where a.id = b.id)",
        "select * except (g), first(n) ignore nulls over (order by id) as f from SOURCE",
        "select id from SOURCE order by n asc nulls last, id desc limit 7 offset 2",
        "select g, max_by(id, n) as m, array_agg(id) as a from SOURCE group by all having m > 1",
        "select * from values (1, 'a'), (2, 'b') as t(x, y)",
        "with a as (select g from SOURCE), b as (select * from a) select count(*) from b, a",
    ):
        text = clause.replace("SOURCE", source)
        expected = [tuple(row) for row in shop.spark.sql(text).collect()]
        assert sorted(map(str, shop.rows(text))) == sorted(map(str, expected)), text


def test_the_session_of_a_query_cannot_reach_out_by_itself(shop, tmp_path):
    spark = closed_session(shop.spark)
    shop.spark.range(1).write.parquet(str(tmp_path / "p"))
    for text in (
        "select reflect('java.lang.System', 'getProperty', 'user.home')",
        "select java_method('java.lang.System', 'getProperty', 'user.home')",
        "select try_reflect('java.lang.System', 'getProperty', 'user.home')",
        "select current_user()",
        "select * from parquet.`PATH`",
        "select ${spark.app.name}",
    ):
        with pytest.raises(PySparkException):
            spark.sql(text.replace("PATH", f"{tmp_path}/p")).collect()
    assert shop.spark.sql("select reflect('java.lang.Math', 'abs', -1)").first()[0] == "1"


def test_the_command_writes_rows_as_lines_json_or_csv(shop, capsys):
    name, home = shop.ground.name, shop.ground.home
    file = home / "app.py"
    file.write_text(APPLICATION.format(name=name))
    settings = ["--set", f"home={home}", "--set", f"kafka.bootstrap={shop.ground.kafka.bootstrap}"]

    def run(sql: str, *options: str) -> tuple[int, str, str]:
        code = main(["query", str(file), sql, *options, *settings])
        return code, *capsys.readouterr()

    sql = "select word, at from APP.words order by at, word"
    code, out, err = run(sql.replace("APP", name), "--json")
    assert [json.loads(line)["word"] for line in out.splitlines()] == ["a", "bb", "a"]
    assert json.loads(out.splitlines()[0])["at"] == "2026-03-01T12:00:00Z"
    left_out = f"{name}.words: 2 entries were left out: they are not valid records\n"
    assert (code, err) == (0, left_out)
    _, out, _ = run("select word, length, at_day from kept order by word", "--csv")
    assert out == "word,length,at_day\na,1,2026-03-01\nbb,2,2026-03-02\n"
    _, out, err = run("select word, length from kept order by word", "--limit", "1")
    assert out == "word\tlength\na\t1\n"
    assert err == "there are more than these 1 rows; --limit N shows more\n"
    code, out, err = run("select reflect('a', 'b')")
    assert (code, out) == (1, "")
    assert "at line 1, column 8" in err
    code, _, err = run("select 1 as a, 2 as a", "--json")
    assert (code, "two columns have one name: a, a" in err) == (1, True)


@pytest.mark.spark
def test_an_interrupted_query_leaves_no_process_behind(tmp_path):
    (tmp_path / "app.py").write_text(APPLICATION.format(name="shop"))
    sides = "range(1000000000) a, range(1000000000) b"
    endless = f"select count(*) from {sides} where hash(a.id, b.id) = 7"  # noqa: S608
    words = ["query", str(tmp_path / "app.py"), endless, "--set", f"home={tmp_path / 'home'}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", *words],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def wait(what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not what():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    try:
        # Spark has begun to work, or the process has ended with a reason.
        wait(lambda: process.poll() is not None or any(tmp_path.glob("home/spark/*/blockmgr-*")))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert (process.returncode, out) == (130, b"")
    wait(lambda: session_members(process.pid) == [])
