"""Tokens to syntax: the part of Spark SQL's expression grammar that Penstock takes.

Precedence is Spark's own, tightest first: a sign before a value; ``* / % div``; ``+ - ||``; the
comparisons; one of ``between``, ``in``, ``like``, ``rlike``, ``is``; ``not``; ``and``; ``or``.
"""

import re

from penstock.core.expression import types
from penstock.core.expression.fault import Fault, FaultError
from penstock.core.expression.parsing.lexer import Kind, Token, tokens
from penstock.core.expression.parsing.literals import (
    INTERVAL_UNITS,
    named_type,
    read_moment,
    read_number,
)
from penstock.core.expression.parsing.syntax import (
    Call,
    Case,
    Cast,
    Constant,
    Interval,
    Item,
    Member,
    Name,
    Syntax,
)

__all__ = ["KEYWORDS", "Reader", "read"]

MAX_NESTING = 40
"""How many parentheses, calls and cases may stand inside one another."""

MAX_DEPTH = 100
"""How many operations may stand upon one another, as the terms of a sum do."""

MAX_INTERVAL = 10**18
"""How many microseconds an interval is shorter than; the years 1 to 9999 have fewer."""

_LEVELS = {
    **dict.fromkeys(("*", "/", "%", "div"), 3),
    **dict.fromkeys(("+", "-", "||"), 2),
    **dict.fromkeys(("=", "==", "<>", "!=", "<=>", "<", "<=", ">", ">="), 1),
}
"""How tightly a sign binds; signs of one level bind from left to right."""
_SPELLED = {"==": "=", "!=": "<>"}
_RESERVED = """
    and or not is null true false div distinct from select exists
    in between like ilike rlike regexp escape case when then else end cast try_cast as
"""
KEYWORDS = frozenset(_RESERVED.split())
_CONSTANTS: dict[str, tuple[object, types.Type]] = {
    "null": (None, types.VOID),
    "true": (True, types.BOOLEAN),
    "false": (False, types.BOOLEAN),
}


def read(text: str) -> Syntax:
    """Return the syntax of a text; FaultError at the first place where there is none."""
    return Reader(text).whole()


class Reader:
    """Reads tokens from left to right, one method for each rule of the grammar.

    A grammar that has expressions in it is a class derived from this one.
    """

    keywords = KEYWORDS
    code = "expression.syntax"

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens(text))
        self._at = 0
        self._nesting = 0

    def whole(self) -> Syntax:
        """Read an expression that is the whole text."""
        if self._ended():
            raise self._fault("the expression is empty")
        found = self._expression()
        if not self._ended():
            raise self._fault(f"nothing may follow here, but there is {self._shown()}")
        return found

    def _ended(self) -> bool:
        return self._now.kind is Kind.END

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _step(self) -> Token:
        token = self._now
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _take(self, *words: str) -> str:
        """Return the word and go past it where it is one of these; "" otherwise."""
        word = self._now.word
        return self._step().word if word and word in words else ""

    def _expect(self, word: str) -> Token:
        if self._now.word != word:
            raise self._fault(f"{word.upper()!r} is missing before {self._shown()}")
        return self._step()

    def _shown(self) -> str:
        token = self._now
        return "the end" if token.kind is Kind.END else f"{token.kind.value} {token.value!r}"

    def _fault(self, message: str, hint: str = "", *, token: Token | None = None) -> FaultError:
        token = token or self._now
        end = max(token.end, token.start + 1)
        return FaultError(Fault(self.code, message, token.start, end, hint))

    def _expression(self) -> Syntax:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._too_large(f"it is nested more than {MAX_NESTING} deep here")
        found = self._chain("or", "and")
        self._nesting -= 1
        return found

    def _too_large(self, message: str) -> FaultError:
        end = max(self._now.end, self._now.start + 1)
        return FaultError(Fault("expression.too-large", message, self._now.start, end))

    def _chain(self, word: str, *tighter: str) -> Syntax:
        """Read operands joined by a word as one node, so that a long list is not a deep tree."""
        found: list[Syntax] = []
        while not found or self._take(word):
            found.append(self._chain(*tighter) if tighter else self._negation())
        return found[0] if len(found) == 1 else self._call(word, *found)

    def _call(
        self, name: str, *arguments: Syntax, start: int | None = None, end: int | None = None
    ) -> Call:
        return Call(
            name=name,
            arguments=arguments,
            start=arguments[0].start if start is None else start,
            end=arguments[-1].end if end is None else end,
            depth=self._depth(*arguments),
        )

    def _depth(self, *parts: Syntax) -> int:
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > MAX_DEPTH:
            raise self._too_large(f"more than {MAX_DEPTH} operations stand upon one another here")
        return depth

    def _negation(self) -> Syntax:
        signs = []
        while self._now.word in ("not", "!"):
            signs.append(self._step())
        found = self._predicate()
        for sign in reversed(signs):
            found = self._call("not", found, start=sign.start)
        return found

    def _predicate(self) -> Syntax:
        subject = self._operation()
        if self._take("is"):
            return self._is(subject)
        negated = self._now.word in ("not", "!") and bool(self._step())
        match self._now.word:
            case "between":
                found = self._between(subject)
            case "in":
                found = self._in(subject)
            case "like":
                found = self._like(subject)
            case "rlike" | "regexp":
                self._step()
                found = self._call("rlike", subject, self._operation())
            case _ if negated:
                raise self._fault("after NOT comes BETWEEN, IN, LIKE or RLIKE here")
            case _:
                return subject
        return self._call("not", found) if negated else found

    def _is(self, subject: Syntax) -> Syntax:
        negated = bool(self._take("not", "!"))
        token = self._step()
        match token.word:
            case "null":
                return self._call("is not null" if negated else "is null", subject, end=self._past)
            case "true" | "false" as word:
                right = Constant(value=word == "true", type=types.BOOLEAN, **self._last)
                found = self._call("<=>", subject, right)
            case "unknown":
                return self._call("is not null" if negated else "is null", subject, end=self._past)
            case "distinct":
                self._expect("from")
                found = self._call("<=>", subject, self._operation())
                negated = not negated
            case _:
                message = "after IS comes [NOT] NULL, TRUE, FALSE or DISTINCT FROM"
                raise self._fault(message, token=token)
        return self._call("not", found) if negated else found

    def _between(self, subject: Syntax) -> Syntax:
        self._step()
        low = self._operation()
        self._expect("and")
        return self._call("between", subject, low, self._operation())

    def _in(self, subject: Syntax) -> Syntax:
        self._step()
        self._expect("(")
        items = self._list()
        if not items:
            raise self._fault("the list of IN is empty")
        return self._call("in", subject, *items, end=self._past)

    def _like(self, subject: Syntax) -> Syntax:
        self._step()
        pattern = self._operation()
        if not self._take("escape"):
            return self._call("like", subject, pattern)
        if self._now.kind is not Kind.TEXT:
            raise self._fault("after ESCAPE comes one character in quotes")
        token = self._step()
        escape = Constant(value=token.value, type=types.STRING, start=token.start, end=token.end)
        return self._call("like", subject, pattern, escape)

    def _operation(self, level: int = 1) -> Syntax:
        """Read operands joined by signs that bind at least as tightly as the level."""
        found = self._signed()
        while (binds := _LEVELS.get(sign := self._now.word, 0)) >= level:
            self._step()
            found = self._call(_SPELLED.get(sign, sign), found, self._operation(binds + 1))
        return found

    def _signed(self) -> Syntax:
        signs = []
        while self._now.word == "-":
            signs.append(self._step().start)
        if self._now.word == "+":
            raise self._fault("a plus before a value does nothing", "leave it out")
        if signs and self._now.kind is Kind.NUMBER:
            # As in Spark, the sign belongs to the number: -9223372036854775808 is a bigint.
            found = self._postfix(self._number(start=signs.pop(), negative=True))
        else:
            found = self._primary()
        for start in reversed(signs):
            found = self._call("-x", found, start=start)
        return found

    def _number(self, *, start: int, negative: bool = False) -> Syntax:
        token = self._step()
        value, type_ = read_number(token, negative=negative)
        return Constant(value=value, type=type_, start=start, end=token.end)

    def _primary(self) -> Syntax:
        token = self._now
        match token.kind:
            case Kind.NUMBER:
                found = self._number(start=token.start)
            case Kind.TEXT:
                self._step()
                found = Constant(value=token.value, type=types.STRING, **self._last)
            case Kind.QUOTED:
                self._step()
                found = Name(name=token.value, **self._last)
            case Kind.NAME:
                found = self._word()
            case _ if self._take("("):
                found = self._expression()
                if self._now.word == ",":
                    raise self._fault("expressions have no rows of values")
                self._expect(")")
            case _:
                raise self._fault(f"a value is missing before {self._shown()}")
        return self._postfix(found)

    def _word(self) -> Syntax:  # noqa: PLR0911 - one for each kind of word
        token = self._step()
        word, follows = token.word, self._now
        if word in _CONSTANTS:
            value, type_ = _CONSTANTS[word]
            return Constant(value=value, type=type_, **self._last)
        if word == "case":
            return self._case(token)
        if word in ("cast", "try_cast"):
            return self._cast(token)
        if word in ("date", "timestamp") and follows.kind is Kind.TEXT:
            value, type_ = read_moment(self._step(), kind=word)
            return Constant(value=value, type=type_, start=token.start, end=follows.end)
        if word == "interval" and (follows.kind in (Kind.NUMBER, Kind.TEXT) or follows.word == "-"):
            return self._interval(token)
        if word in self.keywords:
            raise self._fault(
                f"a value is missing before the word {token.value!r}",
                "a field of this name stands in backticks",
                token=token,
            )
        if self._take("("):
            name, arguments = self._arguments(word)
            spot = {"start": token.start, "end": self._past, "depth": self._depth(*arguments)}
            return Call(name=name, arguments=arguments, **spot)
        return Name(name=token.value, **self._last)

    def _postfix(self, found: Syntax) -> Syntax:
        while sign := self._take("[", "."):
            if sign == "[":
                index = self._expression()
                self._expect("]")
                spot = {"start": found.start, "end": self._past}
                found = Item(of=found, index=index, depth=self._depth(found, index), **spot)
                continue
            if self._now.kind not in (Kind.NAME, Kind.QUOTED):
                raise self._fault("after a point comes the name of a field")
            name = self._step().value
            spot = {"start": found.start, "end": self._past}
            found = Member(of=found, name=name, depth=self._depth(found), **spot)
            if self._now.word == "(":
                raise self._fault("functions have no qualified names")
        return found

    def _arguments(self, word: str) -> tuple[str, tuple[Syntax, ...]]:
        """Read what follows a function and a parenthesis; return its name and its arguments."""
        return word, self._list()

    def _list(self) -> tuple[Syntax, ...]:
        """Read expressions up to the closing parenthesis."""
        if self._take(")"):
            return ()
        found = [self._expression()]
        while self._take(","):
            found.append(self._expression())
        self._expect(")")
        return tuple(found)

    def _case(self, token: Token) -> Syntax:
        subject = None if self._now.word == "when" else self._expression()
        branches = []
        while self._take("when"):
            condition = self._expression()
            self._expect("then")
            branches.append((condition, self._expression()))
        if not branches:
            raise self._fault("CASE has no WHEN")
        otherwise = self._expression() if self._take("else") else None
        end = self._expect("end").end
        parts = [part for pair in branches for part in pair]
        parts += [part for part in (subject, otherwise) if part is not None]
        return Case(
            subject=subject,
            branches=tuple(branches),
            otherwise=otherwise,
            start=token.start,
            end=end,
            depth=self._depth(*parts),
        )

    def _cast(self, token: Token) -> Syntax:
        self._expect("(")
        operand = self._expression()
        self._expect("as")
        name = self._step()
        numbers: list[int] = []
        if self._take("("):
            while not numbers or self._take(","):
                if not re.fullmatch("[0-9]{1,2}", self._now.value):
                    raise self._fault("a count of digits is missing")
                numbers.append(int(self._step().value))
            self._expect(")")
        type_ = named_type(name, tuple(numbers))
        spot = {"start": token.start, "end": self._expect(")").end}
        return Cast(operand=operand, type=type_, depth=self._depth(operand), **spot)

    def _interval(self, token: Token) -> Syntax:
        sign = -1 if self._take("-") else 1
        count, unit = self._step(), self._step()
        size = INTERVAL_UNITS.get(unit.word.removesuffix("s"))
        try:
            length = sign * int(count.value)
        except ValueError:
            raise self._fault("an interval is a whole number of units", token=count) from None
        if size is None:
            hint = f"known are: {', '.join(INTERVAL_UNITS)}"
            raise self._fault(f"{unit.value!r} is not a unit of intervals", hint, token=unit)
        if abs(length * size) >= MAX_INTERVAL:
            raise self._fault("the interval is longer than all of time", token=count)
        return Interval(microseconds=length * size, start=token.start, end=unit.end)

    @property
    def _past(self) -> int:
        """Where the token just read ends."""
        return self._tokens[self._at - 1].end

    @property
    def _last(self) -> dict[str, int]:
        """The place of the token just read."""
        token = self._tokens[self._at - 1]
        return {"start": token.start, "end": token.end}
