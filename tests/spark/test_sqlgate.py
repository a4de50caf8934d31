"""Which SQL is run: by the plan that Spark's own parser makes of it."""

import os
import random
from contextlib import suppress

import pytest

from penstock.errors import ConfigurationError
from penstock.pipelines.query.gate import (
    MAX_CHARACTERS,
    MAX_NESTING,
    Relation,
    allowed_query,
)
from penstock.pipelines.query.plan import nodes, strings
from penstock.pipelines.query.query import closed_session, spark_parser
from penstock.pipelines.query.words import FUNCTIONS, TABLE_FUNCTIONS

RELATIONS = ["words", "kept", "my-stream", "shop.orders"]
SEEDS = [int(seed) for seed in os.environ.get("PENSTOCK_CHAOS_SEEDS", "0").split()]


@pytest.fixture(scope="module")
def parse(spark):
    return spark_parser(closed_session(spark))


@pytest.fixture(scope="module")
def gate(parse):
    return lambda text: allowed_query(text, parse, RELATIONS, lakes=["kept"])


@pytest.fixture(scope="module")
def refusal(gate):
    def refused(text: str) -> ConfigurationError:
        with pytest.raises(ConfigurationError) as caught:
            gate(text)
        assert caught.value.hint
        return caught.value

    return refused


ALLOWED = [
    "select * from words",
    "SELECT word, count(*) AS n FROM words GROUP BY word HAVING n > 1 ORDER BY n DESC LIMIT 3",
    "with w as (select 1 as a) select w.a from w",
    "select w.word from words w join `my-stream` s using (word)",
    "select 1 from words union all select 2 from words",
    "select transform(tags, x -> x + 1) from words",
    "select t.tag from words lateral view explode(tags) t as tag",
    "select t.tag from words lateral view explode(tags) `t as x, reflect(1)` as tag",
    "select * from range(3)",
    "select a[0], m['x'], s.b from words",
    "select 1 -- ; drop table words\n",
    "select /* ; set x = 1 */ 1;",
    "select 'reflect(1)', \"parquet.`/etc`\", '${user.home}', `reflect` from words",
    "select * from words where word = 'O''Brien' or word like '!_%' escape '!'",
    "select at - interval 1 day 2 hours, dateadd(day, 1, at) from words",
    "select window(at, '5 minutes').start, count(*) from words group by window(at, '5 minutes')",
    "with a as (with b as (select 1 x) select * from b) select * from a",
    "select (with z as (select w.n + 1 v) select v from z) from words w",
    "with penstock_0 as (select 1 x) select * from penstock_0, words",
    "values (1, 'a'), (2, 'b')",
    "select user, words.current_user from words",
    # To Spark, a LIMIT.
    "select * from words tablesample (1 rows)",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_only_computes_over_known_tables_is_let_through_as_it_is(gate, parse, text):
    # But for numbers that the parser counts on, it is the plan of this very text.
    assert shape(gate(text).plan) == shape(parse(text))


def shape(plan):
    return [(node.kind, node.place()) for node in nodes(plan)]


@pytest.mark.parametrize(
    ("text", "name", "view"),
    [
        ("select * from my_stream", "my-stream", "my_stream"),
        ("select * from `my-stream`", "my-stream", "my-stream"),
        ("select * from `shop.orders`", "shop.orders", "shop.orders"),
        ("select * from SHOP_ORDERS", "shop.orders", "shop_orders"),
        ("select * from Words", "words", "words"),
        ("select '🚀', a from shop . /* . */ orders -- x", "shop.orders", "shop.orders as of now"),
    ],
)
def test_a_name_with_dots_or_dashes_can_be_written_in_several_ways(gate, text, name, view):
    assert gate(text).reads == (Relation(name, view=view),)


def test_a_table_of_the_lake_is_read_as_it_was(gate):
    text = "select * from kept version as of 3 a join kept timestamp as of '2026-01-01' b on true"
    assert gate(text).reads == (
        Relation("kept", version=3, view="kept as of 3"),
        Relation("kept", timestamp="2026-01-01", view="kept as of 2026-01-01"),
    )


def test_one_view_serves_all_that_read_the_same(gate):
    text = "select * from kept a, kept b, kept version as of 0 c, kept version as of 0 d"
    assert [read.version for read in gate(text).reads] == [None, 0]


def test_a_view_has_a_name_that_the_query_gives_to_nothing_else(gate):
    text = (
        "with `kept as of 3` as (select 1 as a) select * from kept version as of 3, `kept as of 3`"
    )
    (read,) = gate(text).reads
    assert read.view not in text


ATTACKS = [
    # calls that reach out
    "select reflect('java.lang.Runtime', 'getRuntime')",
    "select java_method('java.lang.System', 'exit', 1)",
    "select try_reflect('java.lang.System', 'getenv', 'HOME')",
    "select `reflect`('java.lang.System', 'getenv', 'HOME')",
    "select system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "select /* */ ReFlEcT /**/ ('a', 'b')",
    "select 1 from words lateral view reflect('a', 'b') t as x",
    "select transform(word) using 'cat /etc/passwd' as (line) from words",
    "select transform(*) using '/bin/sh' from words",
    "from words map word using 'cat' as line",
    "select input_file_name() from words",
    "select current_user()",
    "select session_user()",
    "select `current_user`()",
    "select identifier('current_user')()",
    "select identifier('reflect')('java.lang.System', 'getenv', 'HOME')",
    "select identifier('word') from words",
    "select current_path()",
    "select current_schema()",
    "select current_timezone()",
    "select input_file_block_start() from words",
    "select spark_partition_id() from words",
    "select transform(array(1), x -> current_user())",
    "select * from words w, lateral (select current_user())",
    "select * from words where exists (select 1 from kept where word = current_user())",
    "select (with z as (select current_user() as v) select v from z)",
    "with a as (with b as (select version()) select * from b) select * from a",
    "select sum(1) over w from words window w as (order by version())",
    "select * from words group by grouping sets ((version()))",
    "select * from words having version() = '4'",
    "select * from words qualify version() = '4'",
    "select * from words join kept on version() = '4'",
    "select * from words order by version()",
    "select * from words offset length(version())",
    "select * except (word), version() from words",
    "select word[version()] from words",
    "select * from range(length(version()))",
    "select 1 from words lateral view explode(array(version())) t as x",
    "select named_struct('a', version()).a",
    "select * from values (1), (length(version()))",
    "select word not in (select version()) from words",
    "select system.session.f(word) from words",
    "select version()",
    "select current_catalog()",
    "select current_database()",
    "select raise_error('x')",
    "select uuid() , secret('a', 'b')",
    "select my_udf(word) from words",
    "select aes_decrypt(word, 'key') from words",
    "select ai_query('model', word) from words",
    "select filter(array(1), x -> reflect('a', 'b'))",
    "select sum(word) filter (where reflect('a', 'b') = 1) from words",
    "select sum(word) over (order by reflect('a', 'b')) from words",
    "select case when true then reflect('a', 'b') end",
    "select * from words where word in (select reflect('a', 'b'))",
    "select * from words limit cast(reflect('a', 'b') as int)",
    "select cast(reflect('a', 'b') as int)",
    "values (reflect('a', 'b'))",
    "with x as (select reflect('a', 'b')) select * from x",
    # files, formats, catalogs
    "select * from parquet.`/etc/passwd`",
    "select * from delta.`/srv/lake/kept`",
    "select * from `parquet`.`s3a://bucket/x`",
    "select * from csv.`file:///etc/passwd` c",
    "select * from text.`http://127.0.0.1/`",
    "select * from read_files('/etc/passwd')",
    "select * from binaryFile.`/etc/shadow`",
    "select * from json.`/tmp/x`",
    "select * from `/etc/passwd`",
    "select * from spark_catalog.default.words",
    "select * from default.words",
    "select * from global_temp.words",
    "select * from penstock_0",
    "select * from information_schema.tables",
    "select * from identifier('words')",
    "select * from identifier('par' || 'quet.`/etc/passwd`')",
    "select * from cloud_files('/x')",
    "select * from identifier('delta.`/srv/lake/kept`')",
    "select * from identifier('shop.orders')",
    "select * from words with (path = '/etc')",
    "select * from stream words",
    "select * from stream(words)",
    "select * from python_worker_logs()",
    "select * from collations()",
    "select * from vacuum.kept",
    "select * from kept.history",
    "select * from parquet.`/etc` p, words",
    "select (select count(*) from text.`/etc/passwd`)",
    "with a as (select * from text.`/etc/passwd`) select * from a",
    "select * from words where word in (select value from text.`/etc/passwd`)",
    "select * from words, lateral (select * from text.`/etc/passwd`)",
    "select * from words w, kept.files",
    "select * from table_changes('kept', 1)",
    "select * from sql_keywords()",
    "select * from statestore('/x')",
    "select * from read_kafka(bootstrapServers => 'x')",
    "select * from lateral reflect('a', 'b')",
    # other statements
    "set spark.sql.runSQLOnFiles = true",
    "reset",
    "add jar /tmp/evil.jar",
    "add file /etc/passwd",
    "list jars",
    "create temporary function f as 'Evil' using jar '/tmp/evil.jar'",
    "create table x as select * from words",
    "create view x as select 1",
    "insert into kept select * from words",
    "insert overwrite directory '/tmp/x' select * from words",
    "insert overwrite local directory '/tmp/x' stored as orc select * from words",
    "delete from kept",
    "update kept set word = 'x'",
    "merge into kept using words on true when matched then delete",
    "truncate table kept",
    "drop table kept",
    "alter table kept drop partition (x = 1)",
    "vacuum kept retain 0 hours",
    "optimize kept",
    "restore table kept to version as of 0",
    "describe history kept",
    "explain select 1",
    "show tables",
    "use default",
    "cache table words",
    "refresh words",
    "analyze table kept compute statistics",
    "call system.rollback('kept')",
    "execute immediate 'select 1'",
    "declare x int default 1",
    "begin select 1; end",
    "load data inpath '/etc/passwd' into table kept",
    "export table kept to '/tmp/x'",
    "table words",
    "copy into kept from '/x'",
    # more than one
    "select 1; select 2",
    "select 1;; drop table kept",
    "select 1 /* */ ; /* */ set x = 1",
    "; drop table kept",
    # names that hide
    "with words as (select 1) select * from words",
    "with kept as (select * from kept) select * from kept version as of 1",
    "with `my_stream` as (select 1 as a) select * from my_stream",
    "with recursive r as (select 1 union all select * from r) select * from r",
    "with a as (select 1) select * from a version as of 1",
    "select * from words version as of 1",
    "select * from kept version as of (select 1)",
    "select * from kept timestamp as of current_timestamp()",
    "select * from kept version as of 'a'",
    "select * from kept@v1",
    # substitution, parameters, hints, odd syntax
    "select ${spark.driver.host}",
    "select ${env:HOME}",
    "select :x",
    "select ?",
    "select @x",
    "select {{ x }}",
    "select /*+ broadcast(words) */ * from words",
    "select /*+ repartition(100000) */ * from words",
    "select word into other from words",
    "select * from words for update",
    "select word from words distribute by word",
    "select cast(word as evil) from words",
    "select * from words pivot (sum(a) for b in (1))",
    "select * from words unpivot (a for b in (c, d))",
    "select * from words |> where true",
    "select * from words tablesample (1 percent)",
    "select * from words tablesample (bucket 1 out of 2)",
    "from words insert into kept select *",
    "select word from words cluster by word",
    "select 'unclosed",
    "select `unclosed",
    "select (1",
    "select",
    "",
    " ; ",
    "/* only a comment */",
    "\x00",
    "select 1 \u2028 ; \u2029 drop table kept",
    "ｓｅｌｅｃｔ 1",  # noqa: RUF001 - letters that only look alike
    "select * from wоrds",  # noqa: RUF001 - a Cyrillic letter
    "select ʳeflect('a')",
    "select * from \u200bwords",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_whatever_reaches_beyond_a_query_is_refused_with_a_reason(refusal, text):
    assert refusal(text).code in {"query.refused", "query.syntax", "query.unknown-table"}


def test_a_refusal_says_where_and_why(refusal):
    error = refusal("select word,\n       reflect('a', 'b')\nfrom words")
    assert error.message == "refused: the function reflect() is not allowed in a query"
    assert error.detail == "at line 2, column 8"
    error = refusal("select * from wrds")
    assert (error.code, error.hint) == ("query.unknown-table", "did you mean 'words'?")
    assert error.detail == "at line 1, column 15"


def test_a_name_that_may_be_two_tables_is_refused(parse):
    with pytest.raises(ConfigurationError) as caught:
        allowed_query("select * from a_b", parse, ["a.b", "a-b"])
    assert caught.value.message == "refused: 'a_b' may be a.b or a-b"


@pytest.mark.parametrize(
    "text",
    [
        f"select '{'x' * MAX_CHARACTERS}'",
        "select " + "(" * (MAX_NESTING + 1) + "1" + ")" * (MAX_NESTING + 1),
        "select " + "(" * 9000 + "1" + ")" * 9000,
        "select " + "not " * 4000 + "true",
        "select " + "- " * 5000 + "1",
        "select " + "case when true then " * 500 + "1" + " end" * 500,
        "select 1" + " + 1" * 4000,
        "select 1 where a" + " and a" * 3000,
        "select 1" + " union select 1" * 1300,
        "select " + ", ".join(["1"] * 6000),
        "select * from " + "(select * from " * 40 + "words" + ")" * 40,
    ],
    ids=lambda text: text[7:30].strip(),
)
def test_a_query_is_bounded_in_size_and_depth(refusal, text):
    assert refusal(text).code == "query.too-large"


def test_brackets_are_free_up_to_their_limit(gate):
    nested = "(" * MAX_NESTING + "1" + ")" * MAX_NESTING
    assert gate(f"select {nested}, '{'(' * 99}' -- {'(' * 99}").reads == ()


def test_no_allowed_function_reaches_out():
    reaching = {"reflect", "java_method", "try_reflect", "input_file_name", "read_files", "version"}
    assert not reaching & (FUNCTIONS | TABLE_FUNCTIONS)


PIECES = [
    *("select", "from", "words", "kept", "where", "reflect", "(", ")", ",", "'", '"', "`", ";"),
    *("--", "/*", "*/", "\n", "\\", "${x}", "1", "'a'", "as", "x", "union", "with", "join"),
    *("on", "true", "version as of 1", "lateral view", "explode", "parquet", ".", "/etc", "+"),
    *("set", "drop", "group by", "order by", "interval", "cast", "int", "::", "->", "[", "]"),
    *("select 1", "select * from words", "from kept", "count(*)", "shop.orders", "identifier"),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_let_through_reads_known_tables_and_calls_known_functions(gate, seed):
    chance, let_through = random.Random(seed), 0
    for _ in range(2000 if seed else 400):
        some = chance.choices(PIECES, k=chance.randrange(8))
        text = " ".join([chance.choice(["", "select 1 from words", "select *"]), *some])
        with suppress(ConfigurationError):
            query = gate(text)
            let_through += 1
            views = {read.view for read in query.reads} | {"x", "a"}
            for node in nodes(query.plan):
                assert node.allowed
                if node.kind == "UnresolvedRelation":
                    assert ".".join(strings(node.java.multipartIdentifier())).lower() in views, text
                if node.kind == "UnresolvedFunction":
                    assert strings(node.java.nameParts())[-1].lower() in FUNCTIONS, text
    assert let_through > 20  # or nothing was shown
