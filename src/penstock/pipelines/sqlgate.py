"""The gate for SQL that people write: one query, over known tables, made of allowed words.

The text is parsed, every node of its tree is looked up in ``sqlwords``, and what Spark gets is
written anew from the tree, never the text itself: comments, escapes and whatever two parsers might
read differently do not get through. Functions keep the names they were called by, names are quoted,
texts with anything unusual in them travel as hexadecimal digits. Needs no Spark.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.core.place import did_you_mean
from penstock.errors import ConfigurationError
from penstock.pipelines.sqltext import literal
from penstock.pipelines.sqlwords import FUNCTIONS, SYNTAX, TABLE_FUNCTIONS, TYPES

__all__ = ["AllowedQuery", "Relation", "allowed_query"]

MAX_CHARACTERS = 20_000
MAX_NESTING = 30
"""Brackets within brackets."""
MAX_NODES = 5_000
MAX_DEPTH = 300
"""How deep the tree may be; the parsers of both sides call themselves for each step."""

_VIEW = "penstock_"
_WORDS = re.compile(r"[A-Za-z0-9_ ]*")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(e[+-]?[0-9]+)?|[0-9]+\.", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-fA-F]*")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _.,:;%/+\-]*")
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}


@dataclass(frozen=True, slots=True)
class Relation:
    """A stream or table that a query reads, perhaps as it was, and the view it is read from."""

    name: str
    version: int | None = None
    timestamp: str | None = None
    view: str = ""


@dataclass(frozen=True, slots=True)
class AllowedQuery:
    """A query that may run: its text for Spark, and the views that must be there."""

    sql: str
    reads: tuple[Relation, ...]


class _Sql(Spark):
    """Spark's dialect, every call kept as it is written."""

    class Parser(SparkParser):
        """Parses no call into anything but its name and arguments, where the syntax is plain."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in SparkParser.FUNCTION_PARSERS.items()
            if name in {"CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING"}
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {
            token: node
            for token, node in SparkParser.NO_PAREN_FUNCTIONS.items()
            if token in {TokenType.CURRENT_DATE, TokenType.CURRENT_TIMESTAMP}
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

        def _warn_unsupported(self) -> None:
            self.raise_error("this is no query")

    class Generator(SparkGenerator):
        """Writes texts so that nothing in them can end them."""

        def literal_sql(self, expression: exp.Literal) -> str:
            """Return a number as it is, and a text as a literal of exactly this value."""
            text = str(expression.this)
            if not expression.is_string or _PLAIN_TEXT.fullmatch(text):
                return f"'{text}'" if expression.is_string else text
            return literal(text)


def allowed_query(
    text: str, relations: Collection[str], *, lakes: Collection[str] = ()
) -> AllowedQuery:
    """Return the query as Spark may run it; ``lakes`` are those relations that have a past.

    Raises ConfigurationError with what is refused, its line and column, why, and what to do:
    ``query.syntax``, ``query.too-large``, ``query.unknown-table`` or ``query.refused``.
    """
    if len(text) > MAX_CHARACTERS:
        raise _too_large(f"it has {len(text)} characters; at most {MAX_CHARACTERS} are read")
    try:
        gate = _Gate(text, relations, lakes)
        tree = gate.checked(_parsed(text))
        options: dict[str, Any] = {"comments": False, "identify": True}
        sql = tree.sql(dialect=_Sql, unsupported_level=ErrorLevel.RAISE, **options)
    except RecursionError:
        raise _too_large("it is nested too deep") from None
    except UnsupportedError as error:
        raise _refusal("Spark has no way to say it", detail=str(error)) from None
    return AllowedQuery(sql, tuple(gate.reads))


def _parsed(text: str) -> exp.Expr:
    try:
        dialect = _Sql()
        tokens = dialect.tokenize(text)
        _refuse_nesting(tokens)
        trees = [tree for tree in dialect.parser().parse(tokens, text) if tree is not None]
    except (TokenError, ParseError) as error:
        found = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        where = f"line {found['line']}, column {found['col']}: " if found.get("line") else ""
        raise ConfigurationError(
            "this is no SQL that can be read",
            code="query.syntax",
            detail=f"{where}{found.get('description') or str(error).splitlines()[0]}",
            hint="one SELECT in Spark's dialect; docs/lake.md says what it may hold",
        ) from None
    if len(trees) != 1:
        raise _refusal("one query at a time", detail=f"there are {len(trees)} statements")
    return trees[0]


def _refuse_nesting(tokens: list[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > MAX_NESTING:
            raise _too_large(f"more than {MAX_NESTING} brackets are open at line {token.line}")


class _Gate:
    """Looks at every node of one tree, and puts views in place of the tables."""

    def __init__(self, text: str, relations: Collection[str], lakes: Collection[str]) -> None:
        self._text = text
        self._relations = relations
        self._lakes = frozenset(lakes)
        self._shared: set[str] = set()
        self.reads: list[Relation] = []

    def checked(self, tree: exp.Expr) -> exp.Expr:
        """Return the tree with views for tables; raise at the first thing that is not allowed."""
        if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery | exp.Values):
            raise self._refuse(tree, "only a SELECT is run, and nothing that changes anything")
        nodes = list(_measured(tree))
        self._shared = {self._named(node) for node in nodes if isinstance(node, exp.CTE)}
        for node in nodes:
            self._check(node)
        for node in nodes:
            if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
                self._resolve(node)
        return tree

    def _check(self, node: exp.Expr) -> None:
        if type(node) not in SYNTAX:
            raise self._refuse(node, f"{_spoken(node)} is not allowed in a query")
        match node:
            case exp.Anonymous():
                self._check_call(node)
            case exp.Lateral():
                self._check_lateral(node)
            case _:
                if why := _unfit(node):
                    raise self._refuse(node, why)
        for given in _raw_texts(node):
            if not _WORDS.fullmatch(given):
                raise self._refuse(node, f"{given!r} is not allowed in a query")

    def _check_call(self, node: exp.Anonymous) -> None:
        called = str(node.this).lower()
        table = isinstance(node.parent, exp.Table | exp.Lateral)
        if called not in (TABLE_FUNCTIONS if table else FUNCTIONS):
            where = "in FROM" if table else "in a query"
            raise self._refuse(node, f"the function {called}() is not allowed {where}")

    def _check_lateral(self, node: exp.Lateral) -> None:
        if not isinstance(node.this, exp.Anonymous | exp.Subquery):
            raise self._refuse(node, "LATERAL takes a query or a function")
        # The writer does not quote this name.
        alias = node.args.get("alias")
        view = alias.this if alias is not None else None
        if isinstance(view, exp.Identifier) and not _WORDS.fullmatch(view.name):
            raise self._refuse(node, f"a lateral view cannot be called {view.name!r}")

    def _named(self, shared: exp.CTE) -> str:
        name = shared.alias
        if self._found(name):
            why = f"WITH gives the name {name!r}, which is a table's, to something else"
            raise self._refuse(shared, why, hint="give it another name")
        return name.lower()

    def _resolve(self, table: exp.Table) -> None:
        """Put a view in the place of a table that is declared; leave what WITH has named."""
        name = ".".join(part.name for part in table.parts)
        version = table.args.get("version")
        if name.lower() in self._shared and len(table.parts) == 1:
            if version is not None:
                raise self._refuse(table, f"{name!r} is no table of the lake and has no past")
            return
        found = self._found(name)
        if not found:
            hint = did_you_mean(name, self._relations)
            raise self._refuse(table, f"there is no {name!r}", hint=hint, code="unknown-table")
        if len(found) > 1:
            raise self._refuse(table, f"{name!r} may be {' or '.join(found)}", hint="as declared")
        relation = self._relation(table, found[0], version)
        known = next((each for each in self.reads if _same(each, relation)), None)
        if known is None:
            known = Relation(
                relation.name, relation.version, relation.timestamp, f"{_VIEW}{len(self.reads)}"
            )
            self.reads.append(known)
        if table.args.get("alias") is None:
            alias = exp.to_identifier(table.parts[-1].name, quoted=True)
            table.set("alias", exp.TableAlias(this=alias))
        table.set("this", exp.to_identifier(known.view, quoted=True))
        for part in ("db", "catalog", "version"):
            table.set(part, None)

    def _relation(self, table: exp.Table, name: str, version: Any) -> Relation:
        if version is None:
            return Relation(name)
        if name not in self._lakes:
            hint = "a stream is read in a range: --from and --to"
            raise self._refuse(table, f"{name!r} is not in the lake and has no versions", hint=hint)
        given, kind = version.args.get("expression"), str(version.this).upper()
        if version.args.get("kind") != "AS OF" or not isinstance(given, exp.Literal):
            raise self._refuse(table, "a version is AS OF a number, a timestamp AS OF a text")
        if kind == "VERSION" and str(given.this).isdecimal():
            return Relation(name, version=int(given.this))
        if kind == "TIMESTAMP" and given.is_string:
            return Relation(name, timestamp=str(given.this))
        raise self._refuse(table, "a version is AS OF a number, a timestamp AS OF a text")

    def _found(self, name: str) -> list[str]:
        """Return what is declared by this name: as it is, or with ``_`` for dots and dashes."""
        if name in self._relations:
            return [name]
        alike = [each for each in self._relations if each.lower() == name.lower()]
        return alike or [each for each in self._relations if _normal(each) == name.lower()]

    def _refuse(
        self, node: exp.Expr, why: str, *, hint: str = "", code: str = "refused"
    ) -> ConfigurationError:
        at = next((each.meta["start"] for each in _near(node) if "start" in each.meta), None)
        if at is None:
            return _refusal(why, hint=hint, code=code)
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return _refusal(why, detail=f"at line {line}, column {column}", hint=hint, code=code)


def _unfit(node: exp.Expr) -> str:
    """Return why a node of an allowed class is not allowed; nothing where it is."""
    why = ""
    match node:
        case exp.DataType() if (kind := getattr(node.this, "name", str(node.this))) not in TYPES:
            why = f"the type {kind.lower()} is not allowed"
        case exp.Literal() if not (node.is_string or _NUMBER.fullmatch(str(node.this))):
            why = f"{node.this} is no number"
        case exp.HexString() if not _HEX.fullmatch(str(node.this)):
            why = "this is no hexadecimal number"
        case exp.Select() if not node.expressions:
            why = "a SELECT says what it selects"
        case exp.With() if node.args.get("recursive"):
            why = "WITH RECURSIVE is not allowed"
        case exp.Table() if not isinstance(node.this, exp.Identifier | exp.Anonymous):
            why = "only tables and a few functions are read from"
    return why


def _measured(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield all nodes, outer ones first; refuse a tree that is too large or too deep."""
    pending, count = [(tree, 0)], 0
    while pending:
        node, depth = pending.pop()
        count += 1
        if count > MAX_NODES:
            raise _too_large(f"it is made of more than {MAX_NODES} pieces")
        if depth > MAX_DEPTH:
            raise _too_large("it is nested too deep")
        yield node
        pending += ((each, depth + 1) for each in node.iter_expressions(reverse=True))


def _near(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield a node, what is in it, and what it is in: one of them knows its place."""
    if not isinstance(node, exp.Hint):  # which counts from its own beginning
        yield from node.walk()
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _raw_texts(node: exp.Expr) -> Iterator[str]:
    """Yield texts that are written as they are: keywords, where the parser has kept such."""
    if isinstance(node, exp.Identifier | exp.Literal | exp.HexString):
        return
    for value in node.args.values():
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, str):
                yield each


def _same(one: Relation, other: Relation) -> bool:
    return (one.name, one.version, one.timestamp) == (other.name, other.version, other.timestamp)


def _normal(name: str) -> str:
    return re.sub(r"[^0-9a-z]", "_", name.lower())


def _spoken(node: exp.Expr) -> str:
    """Return what a node is, in the words of SQL where its class has them."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _refusal(
    why: str, *, detail: str = "", hint: str = "", code: str = "refused"
) -> ConfigurationError:
    hint = hint or "docs/lake.md says what a query may hold"
    return ConfigurationError(f"refused: {why}", code=f"query.{code}", detail=detail, hint=hint)


def _too_large(why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the query is too large: {why}",
        code="query.too-large",
        hint="ask for less at once, or write a pipeline",
    )
