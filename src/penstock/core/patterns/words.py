"""A pattern in words: to see whether it is still the one that its state was computed by.

What may change without harm is not in here: how the watermark follows the records, and the limit on
begun matches.
"""

from penstock.core.patterns.declared import DeclaredPattern
from penstock.core.patterns.steps import Element, Group

__all__ = ["words_of"]


def words_of(given: DeclaredPattern) -> tuple[tuple[str, str], ...]:
    """Return what it computes, aspect by aspect."""
    skip = [given.skip, given.skip_step or "", "must" if given.skip_must else ""]
    fields = "all" if given.fields is None else ", ".join(f"{n} = {t}" for n, t in given.fields)
    return (
        ("streams", ", ".join(str(getattr(each, "name", each)) for each in given.reads)),
        ("by", ", ".join(given.by)),
        ("steps", _chain(given.elements)),
        ("within", f"{given.within} of the {given.within_of}" if given.within else ""),
        ("lateness", str(given.lateness)),
        ("after_match", " ".join(skip).strip()),
        ("results", given.mode + (" with time-outs" if given.timeouts else "")),
        ("fields", fields),
    )


_VERBS = {"strict": "next", "relaxed": "then", "any": "any"}


def _chain(elements: tuple[Element, ...]) -> str:
    texts = []
    for number, element in enumerate(elements):
        verb = "first" if number == 0 and element.after == "relaxed" else _VERBS[element.after]
        texts.append(_element(element, verb))
    return ", ".join(texts)


def _element(element: Element, verb: str) -> str:
    if isinstance(element, Group):
        text = f"{verb} ({_chain(element.sequence.elements)})"
    else:
        where = f" where {element.where}" if element.where else ""
        stream = getattr(element.stream, "name", element.stream)
        if element.absent:
            never = "never" if element.after == "relaxed" else "not next"
            return f"{never} {element.name} of {stream}{where}"
        text = f"{verb} {element.name} of {stream}{where}{' greedy' if element.greedy else ''}"
    times = "" if element.times == 1 else f" times {element.times} {element.between}"
    optional = " optional" if element.optional else ""
    until = f" until {element.until}" if element.until else ""
    return f"{text}{times}{optional}{until}"
