"""Random SQL that Spark understands: as people write it, with everything that has a second reading.

Three tables are there, each with :data:`ROWS`: a text, a number, a price, an instant and a list.
"""

# ruff: noqa: RUF001, S608 - SQL as people write it

import random

__all__ = ["ROWS", "TABLES", "query_texts"]

TABLES = {"words": "words", "odd-name": "`odd-name`", "shop.orders": "`shop.orders`"}
"""What is declared, and how it is written."""
ROWS = """
    ('O''Brien', 1, 1.50, timestamp '2026-01-10 00:00:00', array('a', null, 'b')),
    ('OBrien', 2, 0.00, timestamp '2026-03-29 01:30:00', array()),
    ('it\\\\s', 3, -7.25, timestamp '2026-10-25 00:30:00.123456', array('x')),
    ('100%_a', null, 99999999.99, timestamp '1969-12-31 23:59:59', null),
    ('\\u00e9\\u6f22\\U0001F680', 5, null, null, array('\\'')),
    (null, -2147483648, 0.10, timestamp '0002-01-01 00:00:00', array('O''Brien'))
"""

TEXTS = r"""
'O''Brien' | 'OBrien' | 'it''s' | '''' | '' | "say ""hi"" x" | "it's" | 'a\'b' | 'a\\b' | 'x\ny' | 'tab\there'
'A' | '\101\102' | '\%' | '\_' | '\q\z' | r'\n\d' | R"a\b" | 'a' 'b' "c" | 'é漢🚀' | 'ｆｕｌｌ' | '-- no comment'
'/* no */' | '${spark.app.name}' | '{{x}}' | ':a ?' | 'select 1; select 2' | '100%_a' | ' ' | '\0' | '\U0001F680'
string(at) | word | upper(word) | word || '\'' || 'x''y' | trim(both 'O' from word) | substring(word from 2 for 3)
substr(word, 2) | concat_ws('''', word, 'b') | overlay(word placing '_' from 1) | left(word, 3) | replace(word, '''', '"')
translate(word, 'O\'', '0"') | format_string('%s''%d', word, n) | lpad(word, 9, '\\') | hex(word) | initcap(word)
case word when 'O''Brien' then 'yes' else "no" end | regexp_replace(word, '[\'O]', '\\\\') | split(word, '\\s|\'')[0]
element_at(tags, 1) | tags[0] | get(tags, 9) | array_join(tags, '\'', 'null') | to_json(struct(word, n as `a``b`))
date_format(at, "yyyy-MM-dd'T'HH:mm") | cast(price as string) | char(39) | word collate utf8_lcase | typeof(price * 2)
"""
NUMBERS = r"""
1 | -1 | 007 | 1L | 12Y | 3S | 1.5 | .5 | 1. | 1e3 | 1.5E-2 | 1BD | 1.10BD | 1e2BD | 2.5D | 1.5F | 2147483648
-9223372036854775808 | 12345678901234567890 | n | price | -n | - -1 | ~n | length(word) | n + 1.10 | n * 2 - 1
n div 2 | n % 2 | n / 2 | (n + 1) * -2 | n & 3 | n | 4 ^ 1 | 1 << 3 | -8 >> 1 | -8 >>> 60 | '7'::int | cast('1.50' as decimal(5, 1))
try_cast(word as int) | if(n > 1, 1, null) | coalesce(n, 0) | nullif(n, 1) | greatest(n, 2) | extract(year from at)
extract(dow from at) | datediff(at, date '2026-01-01') | datediff(day, at, timestamp '2026-01-01') | position('B' in word)
locate('''', word) | size(tags) | unix_micros(at) | round(price, 1) | bround(2.5) | aggregate(array(1, 2), 0, (s, x) -> s + x)
aggregate(array(n), 0L, (`s s`, `x``y`) -> `s s` + `x``y`, r -> r * 2) | x'1F' = x'1f' | crc32('\'') | ascii(word) | pmod(n, 3)
(select max(n) from words) | (select count(*) from words i where i.n > o.n) | map('a''b', 1)['a''b'] | named_struct('n', n).n
"""
INSTANTS = r"""
at | at - interval 1 day 2 hours | at + interval '1 02:03:04' day to second | at - interval '1-2' year to month
timestamp '2026-01-10 00:00:00' - interval 1 day 2 hours | dateadd(day, -1, at) | timestampadd(hour, 25, at) | at + interval 90 minutes
date_trunc('week', at) | timestamp_ntz '2026-01-01 00:00:00' | date '2026-02-28' + interval 1 month | cast('2026-10-25 02:30' as timestamp)
timestamp '2026-03-01 00:00:00Europe/Berlin' | date_add(date '2026-01-31', 1) | add_months('2026-01-31', 1) | from_utc_timestamp(at, 'Asia/Tokyo')
at - interval '1 day' - interval 2 hours | at + 2 * interval 1 hour 30 minutes | at + -interval '1' day | make_date(2026, 1, 31) + 1
"""
CONDITIONS = r"""
word = 'O''Brien' | word <> "O'Brien" | word like 'O!''%' escape '!' | word like '100!%!_%' escape '!' | word like '%\'%'
word like '100\%\_a' | word not like 'O%' | word ilike 'o\'b%' | word rlike '^O\'?B' | word not rlike r'\w+' | word like any ('O%', 'it%')
word not like all ('x', '%a') | word in ('O''Brien', 'it\\s') | n in (1, 2, null) | n not in (1) | n between 1 and 2
n not between 1 and 2 and price > 0 | n is null | n <=> null | n is not distinct from 1 | (n > 1) is true | n > 1 is not unknown
not n > 1 and word is not null | n > 1 or n < 0 and price > 0 | (n > 1 or n < 0) and price > 0 | !(n = 1) | true
n in (select n from words where n > 1) | exists (select 1 from words i where i.n = o.n and i.word = 'O''Brien') | (n, word) in (select n, word from words)
exists(tags, x -> x = 'O''Brien') | at > timestamp '2026-01-01' - interval 1 day 2 hours | array_contains(tags, 'x') | n == 1 | n != 1 | word < 'P'
"""
ALIASES = ["a", "`a b`", "`it``s`", "`select`", "`x'y`", "`--`", "`é漢`", "user", "`${x}`", "`A`"]
COMMENTS = ["", "", "", " /* a ' \" ` ; */ ", " -- it's\n", "\n\t", " /* a /* b */ c */ "]
JOINS = ["join", "left join", "right outer join", "full join", "left semi join", "left anti join"]


def pieces(listed: str) -> list[str]:
    return [each.strip() for line in listed.splitlines() for each in line.split(" | ") if each]


TEXT, NUMBER, INSTANT = pieces(TEXTS), pieces(NUMBERS), pieces(INSTANTS)
VALUES = {"text": TEXT, "number": NUMBER, "instant": INSTANT}
CONDITION = pieces(CONDITIONS)


class Writer:
    """Writes queries by chance; each has columns of known kinds, so that they can be joined on."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def one_of(self, several):
        return self.chance.choice(several)

    def gap(self) -> str:
        return self.one_of(COMMENTS) or " "

    def query(self, depth: int = 2) -> str:
        forms = [self.projection, self.grouping, self.windows, self.literals]
        if depth:
            forms += [self.shared, self.nested, self.united, self.joined, self.lateral, self.sets]
        return self.one_of(forms)(depth - 1)

    def values(self, count: int) -> str:
        kinds = [self.one_of([TEXT, NUMBER, INSTANT]) for _ in range(count)]
        names = self.chance.sample(ALIASES[:-1], count)
        return ",".join(
            f"{self.gap()}{self.one_of(kind)} as {name}"
            for kind, name in zip(kinds, names, strict=True)
        )

    def table(self, depth: int) -> str:
        if depth > 0 and self.chance.random() < 0.3:
            return f"(select * from {self.table(depth - 1)} where{self.gap()}{self.condition()})"
        return self.one_of([*TABLES.values(), "words", "WORDS", "odd_name"])

    def condition(self) -> str:
        return self.one_of(CONDITION)

    def projection(self, depth: int) -> str:
        end = self.one_of(["", "", " order by n nulls last", " order by 1 desc, word limit 3"])
        some = self.values(self.chance.randint(1, 4))
        distinct = self.one_of(["", "", "distinct "]) if not end else ""
        return (
            f"select {distinct}{some}{self.gap()}from {self.table(depth)} o "
            f"where {self.condition()}{end}"
        )

    def literals(self, _depth: int) -> str:
        rows = ", ".join(f"({self.one_of(TEXT[:28])}, {n}.{n}0BD, {n}e1)" for n in range(3))
        return f"select *, x || '''' as `y``` from values {rows} as t(x, `n n`, `e`)"

    def grouping(self, depth: int) -> str:
        key = self.one_of([*TEXT[30:], *NUMBER[-6:-3], "word", "date_trunc('day', at)"])
        end = self.one_of(
            ["", " having count(*) >= 1", f" having max(word) <> {self.one_of(TEXT[:25])}"]
        )
        form = self.one_of(["group by 1", "group by k", f"group by {key}", "group by all"])
        measures = (
            "count(*) as c, sum(n) filter (where n > 0) as s, count(distinct word) as d, max(price)"
        )
        table = self.table(depth)
        return f"select {key} as k, {measures} from {table} o {form}{end}"

    def sets(self, depth: int) -> str:
        form = self.one_of(
            [
                "grouping sets ((word), (n), ())",
                "cube (word, n)",
                "rollup (word, n)",
                "word, rollup(n)",
            ]
        )
        return f"select word, n, grouping(n) as g, count(*) as c from {self.table(depth)} group by {form}"

    def windows(self, depth: int) -> str:
        frame = self.one_of(
            [
                "order by n",
                "partition by word like '%''%' order by n desc nulls last",
                "order by at range between interval 1 day 2 hours preceding and current row",
                "order by n rows between 1 preceding and 1 following",
            ]
        )
        call = self.one_of(["sum(n)", "lag(word, 1, 'it''s')", "first(n) ignore nulls", "count(*)"])
        if self.chance.random() < 0.5:
            frame, named = "w", f" window w as ({frame})"
            return f"select word, n, {call} over {frame} as `v``v` from {self.table(depth)}{named}"
        return f"select word, n, {call} over ({frame}) as v from {self.table(depth)}"

    def shared(self, depth: int) -> str:
        name = self.one_of(["a", "penstock_0", "`b b`", "`it's`", "views"])
        inner = self.query(depth)
        if self.chance.random() < 0.4:
            other = self.one_of(["a", "x"])
            inner = f"with {other} as ({inner}) select * from {other}"
        return f"with{self.gap()}{name} as ({inner}) select * from {name}"

    def nested(self, depth: int) -> str:
        return f"select count(*), max(t.word) from (select * from {self.table(depth)} o) t where {self.condition().replace('o.', 't.')}"

    def united(self, depth: int) -> str:
        word = self.one_of(["union all", "union", "except", "intersect", "minus", "except all"])
        sides = [f"select {self.one_of(TEXT)} as a from {self.table(depth)} o" for _ in range(3)]
        return f"{sides[0]} {word} ({sides[1]}){self.gap()}union all {sides[2]}"

    def joined(self, depth: int) -> str:
        join = self.one_of(JOINS)
        on = self.one_of(
            ["on l.n = r.n", "on l.word = r.word and l.word <> 'x''y'", "using (word, n)"]
        )
        some = "l.word, l.n as `n n`" if "using" not in on else "word"
        return f"select {some} from {self.table(depth)} l {join} {self.table(depth)} r {on}"

    def lateral(self, depth: int) -> str:
        form = self.one_of(
            [
                "lateral view explode(tags) t as tag",
                "lateral view outer posexplode(tags) `t t` as p, tag",
                ", lateral (select upper(o.word) as tag) as t",
                ", lateral explode(tags) as t(tag)",
            ]
        )
        return f"select word, tag from {self.table(depth)} o {form}"


def query_texts(seed: int, count: int) -> list[str]:
    """Return queries; the same ones for the same seed."""
    writer = Writer(seed)
    return [writer.query() for _ in range(count)]
