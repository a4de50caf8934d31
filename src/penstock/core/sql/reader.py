"""Text to syntax: one SELECT, everything in it by the grammar of expressions.

``select [distinct] items from relation [[inner | left] join relation on condition]
[where condition] [group by ...] [having condition] [order by ...] [limit n] [offset n]``
"""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from penstock.core.expression.parsing.grammar import KEYWORDS, Reader
from penstock.core.expression.parsing.lexer import Kind
from penstock.core.expression.parsing.syntax import Syntax
from penstock.core.sql.syntax import Item, Join, JoinKind, Order, Select, Source

__all__ = ["COUNT_ALL", "COUNT_DISTINCT", "MAX_ITEMS", "read_select"]

MAX_ITEMS = 200
"""How many things a query may select, group by or order by."""
COUNT_ALL, COUNT_DISTINCT = "count(*)", "count(distinct)"
"""What the syntax calls these two, which the grammar of expressions does not have."""

_WORDS = """
    from where group having order limit offset by join inner left right full cross outer on using
    natural union intersect except window
"""
_CLAUSES = frozenset(_WORDS.split())
_REFUSED = {
    "union": "a query is one SELECT",
    "intersect": "a query is one SELECT",
    "except": "a query is one SELECT",
    "right": "write the other relation first, and LEFT JOIN",
    "full": "there are inner joins and left joins",
    "cross": "a join needs ON with an equality",
    "natural": "write JOIN ... ON",
    "using": "write ON a.key = b.key",
    "window": "there are no window functions; windows are declared, see docs/windows.md",
    "join": "a query joins two relations at most",
    "inner": "a query joins two relations at most",
    "left": "a query joins two relations at most",
}
_MOST_DIGITS = 18
_STAR_TOKENS = 3

T = TypeVar("T")


def read_select(text: str) -> Select:
    """Return the syntax of a query; FaultError at the first place where there is none."""
    return _SelectReader(text).select()


class _SelectReader(Reader):
    """Reads a query from left to right."""

    keywords = KEYWORDS | _CLAUSES
    code = "query.syntax"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def select(self) -> Select:
        """Read the whole text."""
        if self._now.word == "with":
            raise self._fault("a query has no WITH", "select from a table, or from a state")
        self._expect("select")
        distinct = bool(self._take("distinct"))
        items = self._several(self._item)
        if self._now.word != "from":
            raise self._fault(f"'FROM' is missing before {self._shown()}", "select ... from TABLE")
        self._step()
        source = self._source()
        found = Select(
            items=items,
            distinct=distinct,
            source=source,
            join=self._join(),
            where=self._expression() if self._take("where") else None,
            group=self._several(self._expression) if self._take_by("group") else (),
            having=self._expression() if self._take("having") else None,
            order=self._several(self._order) if self._take_by("order") else (),
            limit=self._count() if self._take("limit") else None,
            offset=self._count() if self._take("offset") else 0,
        )
        if not self._ended():
            self._refuse()
        return found

    def _refuse(self) -> NoReturn:
        word = self._now.word
        if word in _REFUSED:
            raise self._fault(f"there is no {word.upper()} here", _REFUSED[word])
        hint = "the order is: where, group by, having, order by, limit, offset"
        known = word in ("where", "group", "having", "order", "limit", "offset")
        raise self._fault(
            f"nothing may follow here, but there is {self._shown()}", hint if known else ""
        )

    def _several(self, read: Callable[[], T]) -> tuple[T, ...]:
        found = [read()]
        while self._take(","):
            if len(found) == MAX_ITEMS:
                raise self._fault(f"there are more than {MAX_ITEMS} of them")
            found.append(read())
        return tuple(found)

    def _take_by(self, word: str) -> bool:
        if not self._take(word):
            return False
        self._expect("by")
        return True

    def _item(self) -> Item:
        start = self._now.start
        if self._take("*"):
            return Item(expression=None, start=start, end=self._past)
        if (of := self._star()) is not None:
            return Item(expression=None, of=of, start=start, end=self._past)
        found = self._expression()
        text = self._text[start : self._past]
        return Item(expression=found, alias=self._alias(), text=text, start=start, end=self._past)

    def _star(self) -> str | None:
        """Read ``alias.*`` where it comes next."""
        coming = self._tokens[self._at : self._at + _STAR_TOKENS]
        if len(coming) < _STAR_TOKENS:
            return None
        name, point, star = coming
        if name.kind not in (Kind.NAME, Kind.QUOTED) or (point.word, star.word) != (".", "*"):
            return None
        for _ in coming:
            self._step()
        return name.value

    def _alias(self) -> str:
        """Return the name that is given behind something, with AS or without it."""
        said = bool(self._take("as"))
        token = self._now
        free = token.kind is Kind.NAME and token.word not in self.keywords
        if free or token.kind is Kind.QUOTED:
            return self._step().value
        if said:
            raise self._fault("after AS comes a name", "a word of the language needs backticks")
        return ""

    def _source(self) -> Source:
        token = self._now
        if token.word == "(":
            raise self._fault("a query reads tables and states, and no other query")
        name = self._name("a table or a state")
        if self._take("."):
            name = f"{name}.{self._name('a state')}"
        end = self._past
        alias = self._alias()
        if self._now.word == ",":
            raise self._fault(
                "relations are joined by JOIN ... ON", "from a join b on a.key = b.key"
            )
        return Source(name=name, alias=alias or name, start=token.start, end=end)

    def _name(self, what: str) -> str:
        token = self._now
        reserved = token.kind is Kind.NAME and token.word in self.keywords
        if token.kind not in (Kind.NAME, Kind.QUOTED) or reserved:
            hint = "a word of the language needs backticks" if reserved else ""
            raise self._fault(f"the name of {what} is missing before {self._shown()}", hint)
        return self._step().value

    def _join(self) -> Join | None:
        kind: JoinKind = "inner"
        if self._now.word in ("inner", "left"):
            kind = "left" if self._step().word == "left" else "inner"
            if kind == "left":
                self._take("outer")
            self._expect("join")
        elif not self._take("join"):
            return None
        source = self._source()
        self._expect("on")
        return Join(kind=kind, source=source, on=self._expression())

    def _order(self) -> Order:
        found = self._expression()
        descending = self._take("asc", "desc") == "desc"
        first = not descending  # as in Spark
        if self._take("nulls"):
            where = self._take("first", "last")
            if not where:
                raise self._fault("after NULLS comes FIRST or LAST")
            first = where == "first"
        return Order(expression=found, descending=descending, nulls_first=first)

    def _count(self) -> int:
        token = self._now
        plain = token.kind is Kind.NUMBER and token.value.isdecimal()
        if not plain or len(token.value) > _MOST_DIGITS:
            raise self._fault("a number of rows is missing")
        return int(self._step().value)

    def _arguments(self, word: str) -> tuple[str, tuple[Syntax, ...]]:
        """Read the arguments of a function; COUNT may have a star, or DISTINCT, before them."""
        if word == "count":
            if self._take("*"):
                self._expect(")")
                return COUNT_ALL, ()
            if self._take("distinct"):
                return COUNT_DISTINCT, self._list()
        if self._now.word == "distinct":
            raise self._fault("DISTINCT is for COUNT alone")
        name, arguments = super()._arguments(word)
        if self._now.word == "over":
            raise self._fault("there are no window functions", "see docs/windows.md")
        return name, arguments
