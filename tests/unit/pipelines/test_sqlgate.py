"""Which SQL is run, and what it is when it is run."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.pipelines.sqlgate import (
    MAX_CHARACTERS,
    MAX_NESTING,
    AllowedQuery,
    Relation,
    allowed_query,
)
from penstock.pipelines.sqlwords import FUNCTIONS, TABLE_FUNCTIONS

RELATIONS = ["words", "kept", "my-stream", "shop.orders"]


def gate(text: str) -> AllowedQuery:
    return allowed_query(text, RELATIONS, lakes=["kept"])


def refusal(text: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        gate(text)
    assert caught.value.hint
    return caught.value


ALLOWED = {
    "select * from words": "SELECT * FROM `penstock_0` AS `words`",
    "SELECT word, count(*) AS n FROM words GROUP BY word HAVING n > 1 ORDER BY n DESC LIMIT 3": (
        "SELECT `word`, COUNT(*) AS `n` FROM `penstock_0` AS `words` GROUP BY `word` "
        "HAVING `n` > 1 ORDER BY `n` DESC LIMIT 3"
    ),
    "with w as (select 1 as a) select w.a from w": (
        "WITH `w` AS (SELECT 1 AS `a`) SELECT `w`.`a` FROM `w`"
    ),
    "select w.word from words w join `my-stream` s using (word)": (
        "SELECT `w`.`word` FROM `penstock_0` AS `w` JOIN `penstock_1` AS `s` USING (`word`)"
    ),
    "select 1 from words union all select 2 from words": (
        "SELECT 1 FROM `penstock_0` AS `words` UNION ALL SELECT 2 FROM `penstock_0` AS `words`"
    ),
    "select transform(tags, x -> x + 1) from words": (
        "SELECT TRANSFORM(`tags`, `x` -> `x` + 1) FROM `penstock_0` AS `words`"
    ),
    "select t.tag from words lateral view explode(tags) t as tag": (
        "SELECT `t`.`tag` FROM `penstock_0` AS `words` LATERAL VIEW EXPLODE(`tags`) t AS `tag`"
    ),
    "select * from range(3)": "SELECT * FROM RANGE(3)",
    "select a[0], m['x'], s.b from words": (
        "SELECT `a`[0], `m`['x'], `s`.`b` FROM `penstock_0` AS `words`"
    ),
    "select 1 -- ; drop table words\n": "SELECT 1",
    "select /* ; set x = 1 */ 1;": "SELECT 1",
}


@pytest.mark.parametrize("text", ALLOWED)
def test_a_query_is_written_anew_with_views_for_tables_and_without_its_comments(text):
    assert gate(text).sql == ALLOWED[text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from my_stream", "my-stream"),
        ("select * from `my-stream`", "my-stream"),
        ("select * from `shop.orders`", "shop.orders"),
        ("select * from shop.orders", "shop.orders"),
        ("select * from SHOP_ORDERS", "shop.orders"),
        ("select * from Words", "words"),
    ],
)
def test_a_name_with_dots_or_dashes_can_be_written_in_several_ways(text, expected):
    assert gate(text).reads == (Relation(expected, view="penstock_0"),)


def test_a_table_of_the_lake_is_read_as_it_was():
    text = "select * from kept version as of 3 a join kept timestamp as of '2026-01-01' b on true"
    assert gate(text).reads == (
        Relation("kept", version=3, view="penstock_0"),
        Relation("kept", timestamp="2026-01-01", view="penstock_1"),
    )
    assert "VERSION" not in gate(text).sql


def test_one_view_serves_all_that_read_the_same():
    text = "select * from kept a, kept b, kept version as of 1 c, kept version as of 1 d"
    assert [read.version for read in gate(text).reads] == [None, 1]


@pytest.mark.parametrize(
    "value", ["it's", 'a"b', "back\\slash", "${user.home}", "new\nline", "ünïcode", "x' or '1'='1"]
)
def test_a_text_with_anything_unusual_travels_as_digits(value):
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    assert gate(f"select '{escaped}'").sql == f"SELECT cast(x'{value.encode().hex()}' as string)"


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
    "select * from words tablesample (1 rows)",
    "select word into other from words",
    "select * from words for update",
    "select word from words distribute by word",
    "select cast(word as evil) from words",
    "select 1 from words lateral view explode(tags) `t as x, reflect(1)` as y",
    "select * from words pivot (sum(a) for b in (1))",
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
def test_whatever_reaches_beyond_a_query_is_refused_with_a_reason(text):
    assert refusal(text).code in {"query.refused", "query.syntax", "query.unknown-table"}


def test_a_refusal_says_where_and_why():
    error = refusal("select word,\n       reflect('a', 'b')\nfrom words")
    assert error.message == "refused: the function reflect() is not allowed in a query"
    assert error.detail == "at line 2, column 8"
    error = refusal("select * from wrds")
    assert (error.code, error.hint) == ("query.unknown-table", "did you mean 'words'?")
    assert error.detail == "at line 1, column 15"


def test_a_name_that_may_be_two_tables_is_refused():
    with pytest.raises(ConfigurationError) as caught:
        allowed_query("select * from a_b", ["a.b", "a-b"])
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
        "select 1 where true" + " and true" * 1900,
        "select 1" + " union select 1" * 1300,
        "select " + ", ".join(["1"] * 6000),
        "select * from " + "(select * from " * 40 + "words" + ")" * 40,
    ],
    ids=lambda text: text[7:30].strip(),
)
def test_a_query_is_bounded_in_size_and_depth(text):
    assert refusal(text).code == "query.too-large"


def test_brackets_are_free_up_to_their_limit():
    nested = "(" * MAX_NESTING + "1" + ")" * MAX_NESTING
    assert gate(f"select {nested}").sql == f"SELECT {nested}"


def test_no_allowed_function_reaches_out():
    reaching = {"reflect", "java_method", "try_reflect", "input_file_name", "read_files", "version"}
    assert not reaching & (FUNCTIONS | TABLE_FUNCTIONS)


PIECES = st.sampled_from(
    [
        *("select", "from", "words", "kept", "where", "reflect", "(", ")", ",", "'", '"', "`", ";"),
        *("--", "/*", "*/", "\n", "\\", "${x}", "1", "'a'", "as", "x", "union", "with", "join"),
        *("on", "true", "version as of 1", "lateral view", "explode", "parquet", ".", "/etc", "+"),
        *("set", "drop", "group by", "order by", "interval", "cast", "int", "::", "->", "[", "]"),
    ]
)


@given(st.lists(PIECES, max_size=25).map(" ".join))
def test_what_is_let_through_is_one_query_over_views_and_stays_what_it_is(text):
    try:
        found = gate(text)
    except ConfigurationError:
        return
    # A column may have any name; what must not be there is the call, and the path as a table.
    code = re.sub("'[^']*'", "''", found.sql.lower())
    assert not re.search(r"reflect`?\s*\(", code), found.sql
    assert not re.search(r"(from|join|,|\.)\s*`?/etc", code), found.sql
    # Written and read again it is the same, so nothing was left open and nothing was hidden.
    views = [read.view for read in found.reads]
    again = allowed_query(found.sql, views)
    assert [read.name for read in again.reads] == views
    assert folded(again.sql) == folded(found.sql)


def folded(sql):
    """Return a query with the texts in hexadecimal digits spelt in one way."""
    return re.sub(r"(?i)cast\(x'[0-9a-f]*' as string\)", lambda cast: cast[0].lower(), sql)


@given(st.text(max_size=40))
def test_any_text_as_a_value_stays_the_same_value(value):
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    try:
        sql = gate(f"select '{escaped}'").sql
    except ConfigurationError:
        return
    plain = f"SELECT '{value}'"
    assert sql in {plain, f"SELECT cast(x'{value.encode().hex()}' as string)"}


@given(st.text(max_size=30))
def test_no_text_breaks_the_gate(text):
    with suppress(ConfigurationError):
        assert gate(text).sql
