"""The gate for SQL that people write: one query, over known tables, made of allowed words.

Spark's own parser reads the text, and what is checked is the plan that it gives: the very one that
runs. So there is one reading of a text, and it is Spark's. A text is changed in one case only: a
table that is read as it was, or whose name has several parts, gets the name of its view, at the
place that the parser tells; the changed text goes through all of it again.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.core.hints import did_you_mean
from penstock.errors import ConfigurationError
from penstock.pipelines.query.plan import Node, children, nodes, options, resolved, strings
from penstock.pipelines.query.tokens import Named, Token, deepest, name_at, tokens
from penstock.pipelines.query.words import FUNCTIONS, REACHING, TABLE_FUNCTIONS
from penstock.pipelines.spark.failures import first_lines
from penstock.pipelines.spark.sqltext import name

__all__ = ["AllowedQuery", "Relation", "allowed_query", "refuse_reaching"]

MAX_CHARACTERS = 20_000
MAX_NESTING = 30
"""Brackets within brackets."""
MAX_NODES = 5_000
MAX_DEPTH = 300
"""How deep the plan may be; Spark calls itself for each step."""

_STRING = "StringType"
_WORDS_OF_USERS = frozenset({"current_user", "session_user", "user"})
"""Without brackets they are columns; where there is no such column, Spark takes the function."""

Parse = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Relation:
    """A stream or table that a query reads, perhaps as it was.

    It is read from a view of the name that the text has for it. Without one, the text cannot name
    it: Spark takes a name of several parts for a table of a catalog.
    """

    name: str
    version: int | None = None
    timestamp: str | None = None
    view: str = ""


@dataclass(frozen=True, slots=True)
class AllowedQuery:
    """A query that may run: Spark's plan of it, and the views that must be there."""

    plan: Any
    reads: tuple[Relation, ...]
    names_users: bool
    """Whether it has a word that is a column or Spark's user: to be seen when it is looked up."""


@dataclass(frozen=True, slots=True)
class _Mention:
    """A table where the text names it."""

    relation: Relation
    named: Named
    aliased: bool


def allowed_query(
    text: str, parse: Parse, relations: Collection[str], *, lakes: Collection[str] = ()
) -> AllowedQuery:
    """Return the query as Spark may run it; ``lakes`` are those relations that have a past.

    ``parse`` is Spark's parser. Raises ConfigurationError with what is refused, its line and
    column, why, and what to do: ``query.syntax``, ``query.too-large``, ``query.unknown-table`` or
    ``query.refused``.
    """
    gate = _Gate(text, parse, relations, lakes)
    renamed = _renamed(text, gate.mentions, gate.shared)
    if renamed is None:
        return gate.allowed()
    # The same text but for some names: to be read and checked like any other.
    changed, views = renamed
    again = _Gate(changed, parse, [each.view for each in views], ())
    if [each.relation.name for each in again.mentions] != [each.view for each in views]:
        raise _refusal("the names of its tables cannot be told apart from the rest")
    return AllowedQuery(again.plan, tuple(dict.fromkeys(views)), gate.names_users)


def refuse_reaching(plan: Any) -> None:
    """Refuse a plan in which Spark has found a function, where a word could have been a column."""
    for kind, found in resolved(plan):
        if kind in REACHING:
            raise _refusal(
                f"{found.prettyName()} is not a column here, and the function is not allowed"
            )


def _renamed(
    text: str, mentions: Sequence[_Mention], shared: Collection[str]
) -> tuple[str, list[Relation]] | None:
    """Return the text with the names of views in it, and the views; None: it has them already."""
    if all(each.relation.view for each in mentions):
        return None
    taken = {*shared, *(each.relation.view for each in mentions)}
    views: dict[Relation, Relation] = {}
    for relation in (each.relation for each in mentions):
        if relation not in views:
            views[relation] = relation if relation.view else _with_view(relation, taken)
    pieces, place = [], 0
    for mention in sorted(mentions, key=lambda each: each.named.start):
        if not mention.relation.view:
            named = mention.named
            alias = "" if mention.aliased else f" as {name(named.parts[-1])}"
            pieces += [text[place : named.start], name(views[mention.relation].view), alias]
            place = named.past_end
    return "".join([*pieces, text[place:]]), [views[each.relation] for each in mentions]


def _with_view(relation: Relation, taken: set[str]) -> Relation:
    """Return a relation with a view of a name that nothing else in the query has."""
    at = relation.timestamp if relation.version is None else relation.version
    view = f"{relation.name} as of {at or 'now'}".lower()
    while _normal(view) in map(_normal, taken):
        view += "'"
    taken.add(view)
    return replace(relation, view=view)


class _Gate:
    """Looks at every node of the plan of one text."""

    def __init__(
        self, text: str, parse: Parse, relations: Collection[str], lakes: Collection[str]
    ) -> None:
        self._relations = relations
        self._lakes = frozenset(lakes)
        self._tokens = _bounded(text)
        self.plan = _parsed(text, parse)
        self.names_users = False
        found = list(_measured(self.plan))
        self.shared = {each.lower() for node in found for each in self._shared(node)}
        """What WITH has named."""
        for node in found:
            self._check(node)
        if found and found[0].kind == "UnresolvedRelation":
            raise _refuse(found[0], "only a SELECT may run; it cannot change anything")
        self.mentions = [each for node in found for each in self._mentioned(node)]
        """The tables, in the order of the plan."""

    def allowed(self) -> AllowedQuery:
        """Return the query with its plan as it is."""
        reads = dict.fromkeys(each.relation for each in self.mentions)
        return AllowedQuery(self.plan, tuple(reads), self.names_users)

    def _check(self, node: Node) -> None:
        if not node.allowed:
            raise _refuse(node, f"{_spoken(node.kind)} is not allowed in a query")
        match node.kind:
            case "UnresolvedFunction":
                self._check_call(node, strings(node.java.nameParts()), FUNCTIONS)
            case "UnresolvedTableValuedFunction":
                self._check_call(node, strings(node.java.name()), TABLE_FUNCTIONS)
            case "UnresolvedGenerator":
                called = node.java.name()
                whole = [options(called.catalog()), options(called.database()), called.funcName()]
                self._check_call(node, [each for each in whole if each], TABLE_FUNCTIONS)
            case "UnresolvedWith" if node.java.allowRecursion():
                raise _refuse(node, "WITH RECURSIVE is not allowed")
            case "UnresolvedRelation" if node.java.isStreaming() or node.java.options().size():
                raise _refuse(node, "a table is read as it is, without options")
            case "UnresolvedAttribute" | "UnresolvedNamedLambdaVariable":
                parts = strings(node.java.nameParts())
                self.names_users |= len(parts) == 1 and parts[0].lower() in _WORDS_OF_USERS

    def _check_call(self, node: Node, parts: Sequence[str], allowed: Collection[str]) -> None:
        called = ".".join(parts).lower()
        if called not in allowed:
            where = "in FROM" if allowed is TABLE_FUNCTIONS else "in a query"
            raise _refuse(node, f"the function {called}() is not allowed {where}")

    def _shared(self, node: Node) -> Iterator[str]:
        """Yield the names that a WITH gives; refuse one that is a table's."""
        if node.kind != "UnresolvedWith":
            return
        several = node.java.cteRelations()
        for number in range(several.size()):
            given = str(several.apply(number).productElement(0))
            if self._found(given):
                why = f"WITH reuses the name {given!r}, which is the name of a table"
                raise _refuse(node, why, hint="give it another name")
            yield given

    def _mentioned(self, node: Node) -> Iterator[_Mention]:
        """Yield the table that a node names; not what WITH has named."""
        if node.kind != "UnresolvedRelation":
            return
        outer = node.parent
        past = outer if outer is not None and outer.kind == "RelationTimeTravel" else None
        parts = strings(node.java.multipartIdentifier())
        written = ".".join(parts)
        if len(parts) == 1 and written.lower() in self.shared:
            if past:
                raise _refuse(node, f"{written!r} is not a lake table, so it has no versions")
            return
        found = self._found(written)
        if not found:
            hint = did_you_mean(written, self._relations)
            raise _refuse(node, f"there is no {written!r}", hint=hint, code="unknown-table")
        if len(found) > 1:
            raise _refuse(node, f"{written!r} may be {' or '.join(found)}", hint="as declared")
        place = node.place()
        named = None if place is None else name_at(self._tokens, place.start)
        if named is None or named.parts != parts or (named.past_end > named.end) != bool(past):
            raise _refuse(node, f"{written!r} is not a valid name of a table")
        above = past.parent if past else outer
        aliased = above is not None and above.kind == "SubqueryAlias"
        yield _Mention(self._relation(past, found[0], parts), named, aliased)

    def _relation(self, past: Node | None, declared: str, parts: Sequence[str]) -> Relation:
        if past is None:
            return Relation(declared, view=parts[0].lower() if len(parts) == 1 else "")
        if declared not in self._lakes:
            hint = "to read a range of a stream, use --from and --to"
            raise _refuse(
                past, f"{declared!r} is not a lake table, so it has no versions", hint=hint
            )
        _, timestamp, version = (each for each in children(past.java))
        number, instant = options(version), options(timestamp)
        if number is not None and str(number).isascii() and str(number).isdecimal():
            return Relation(declared, version=int(number))
        if instant is not None and instant.productPrefix() == "Literal":
            value, kind = children(instant)
            if kind.getClass().getSimpleName().startswith(_STRING) and value is not None:
                return Relation(declared, timestamp=str(value.toString()))
        raise _refuse(past, "write VERSION AS OF with a number, TIMESTAMP AS OF with a text")

    def _found(self, written: str) -> list[str]:
        """Return what is declared by this name: as it is, or with ``_`` for dots and dashes."""
        if written in self._relations:
            return [written]
        alike = [each for each in self._relations if each.lower() == written.lower()]
        return alike or [each for each in self._relations if _normal(each) == written.lower()]


def _bounded(text: str) -> list[Token]:
    """Return the tokens of a text that is not too large for a parser."""
    if len(text) > MAX_CHARACTERS:
        raise _too_large(f"it has {len(text)} characters; at most {MAX_CHARACTERS} are allowed")
    found = list(tokens(text))
    if deepest(found) > MAX_NESTING:
        raise _too_large(f"more than {MAX_NESTING} brackets are nested")
    return found


def _parsed(text: str, parse: Parse) -> Any:
    try:
        return parse(text)
    except (PySparkException, Py4JError) as error:
        if "StackOverflow" in str(error) or "TOO_COMPLEX" in str(error):
            raise _too_large("it is nested too deep") from None
        raise ConfigurationError(
            "this is not valid SQL",
            code="query.syntax",
            detail=first_lines(str(error)),
            hint="one SELECT in Spark's dialect; docs/lake.md says what it may contain",
        ) from None


def _measured(plan: Any) -> Iterator[Node]:
    """Yield all nodes, outer ones first; refuse a plan that is too large or too deep."""
    for count, node in enumerate(nodes(plan)):
        if count >= MAX_NODES:
            raise _too_large(f"its plan has more than {MAX_NODES} nodes")
        if node.depth > MAX_DEPTH:
            raise _too_large("it is nested too deep")
        yield node


def _normal(declared: str) -> str:
    return re.sub(r"[^0-9a-z]", "_", declared.lower())


def _spoken(kind: str) -> str:
    """Return what a node is, in the words of SQL where its class has them."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.removeprefix("Unresolved").rstrip("$")).upper()


def _refuse(node: Node, why: str, *, hint: str = "", code: str = "refused") -> ConfigurationError:
    place = node.place()
    detail = f"at line {place.line}, column {place.column}" if place else ""
    return _refusal(why, detail=detail, hint=hint, code=code)


def _refusal(
    why: str, *, detail: str = "", hint: str = "", code: str = "refused"
) -> ConfigurationError:
    hint = hint or "docs/lake.md says what a query may contain"
    return ConfigurationError(f"refused: {why}", code=f"query.{code}", detail=detail, hint=hint)


def _too_large(why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the query is too large: {why}",
        code="query.too-large",
        hint="split the query, or write a pipeline",
    )
