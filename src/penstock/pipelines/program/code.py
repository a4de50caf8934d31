"""What a Python function does, as a text that is the same at every start.

It covers the function, the values it closes over, and what it names in its own module and in other
modules of the application: functions, classes, UDFs and plain values. It does not cover installed
packages, or what is only found while the function runs.
"""

import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import date, timedelta, timezone
from datetime import time as datetime_time
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

__all__ = ["code_text"]

_PLAIN = (
    *(str, bytes, int, float, complex, bool, type(None)),
    *(Decimal, date, datetime_time, timedelta, timezone, ZoneInfo, UUID, PurePath, Enum),
)
"""Types whose ``repr`` says all, and the same in every process."""
_MEMBERS = (FunctionType, staticmethod, classmethod, property, *_PLAIN)
"""What of a class does something or is a value."""
_INSTALLED = tuple(
    path
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_path(name))
)
_LIMIT = 2000
"""Functions and classes that are looked at; there are not so many behind one pipeline."""


def code_text(function: Callable[..., Any]) -> str:
    """Return what a function and what it calls are made of; equal texts do equal things."""
    return "\n".join(_Walk().text(function))


class _Walk:
    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._kept: list[object] = []
        self._inside: set[int] = set()
        """Lists, tuples and dicts that are being read: one may hold itself."""

    def text(self, value: object) -> Iterator[str]:
        """Yield the text of anything that a function may name."""
        if isinstance(value, _PLAIN):
            yield repr(value)
        elif isinstance(value, re.Pattern):
            yield repr((value.pattern, value.flags))
        elif isinstance(value, set | frozenset):
            yield repr(sorted(map(repr, value)))
        elif isinstance(value, tuple | list | dict):
            if id(value) not in self._inside:
                self._inside.add(id(value))
                yield from self._many(value)
                self._inside.discard(id(value))
        elif id(value) not in self._seen and len(self._seen) < _LIMIT:
            self._seen.add(id(value))
            # Kept, so that no other object gets its id.
            self._kept.append(value)
            yield from self._object(value)

    def _many(self, values: tuple[Any, ...] | list[Any] | dict[Any, Any]) -> Iterator[str]:
        for each in values:
            if isinstance(values, dict):
                yield repr(each)
                yield from self.text(values[each])
            else:
                yield from self.text(each)

    def _object(self, value: object) -> Iterator[str]:
        wrapped = getattr(value, "__wrapped__", None) or getattr(value, "func", None)
        if isinstance(value, partial):
            yield from self.text((value.args, value.keywords))
        if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                yield field.name
                yield from self.text(getattr(value, field.name, None))
        if isinstance(value, FunctionType):
            if _is_own(sys.modules.get(value.__module__)):
                yield from self._function(value)
        elif isinstance(value, type) and _is_own(sys.modules.get(value.__module__)):
            for name, member in vars(value).items():
                if isinstance(member, _MEMBERS):
                    yield name
                    yield from self._member(member)
        if callable(wrapped) and wrapped is not value:
            yield from self.text(wrapped)

    def _member(self, member: object) -> Iterator[str]:
        if isinstance(member, property):
            yield from self.text((member.fget, member.fset))
        elif isinstance(member, staticmethod | classmethod):
            yield from self.text(member.__func__)
        elif not isinstance(member, str):
            # Texts of a class are its name, its module and its docstring.
            yield from self.text(member)

    def _function(self, function: FunctionType) -> Iterator[str]:
        yield function.__qualname__
        yield from _code(function.__code__)
        yield from self.text(function.__defaults__ or ())
        yield from self.text(function.__kwdefaults__ or {})
        for cell in function.__closure__ or ():
            try:
                yield from self.text(cell.cell_contents)
            except ValueError:
                yield "empty"
        names = sorted(set(_names(function.__code__)))
        for name in names:
            if name in function.__globals__:
                yield from self._named(name, function.__globals__[name], names)

    def _named(self, name: str, value: object, names: list[str]) -> Iterator[str]:
        yield name
        if not isinstance(value, ModuleType):
            yield from self.text(value)
        elif _is_own(value):
            for each in names:
                if hasattr(value, each):
                    yield each
                    yield from self.text(getattr(value, each))


def _code(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _code(each)
        else:
            yield repr(sorted(map(repr, each)) if isinstance(each, frozenset) else each)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _is_own(module: ModuleType | None) -> bool:
    """Whether a module is the application's own, not an installed one."""
    if module is None or module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    installed = file is None or file.startswith(_INSTALLED)
    return not installed and module.__name__.partition(".")[0] != "penstock"
