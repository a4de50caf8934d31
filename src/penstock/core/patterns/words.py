"""A pattern in words: to see whether it is still the one that its state was computed by.

What may change without harm is not in here: how the watermark follows the records, and the limit on
begun matches.
"""

from penstock.core.patterns.pattern import Pattern
from penstock.core.patterns.steps import Element, Group

__all__ = ["words_of"]


def words_of(given: Pattern) -> tuple[tuple[str, str], ...]:
    """Return what it computes, aspect by aspect."""
    skip = [given.skip, given.skip_step or "", "must" if given.skip_must else ""]
    fields = "all" if given.fields is None else ", ".join(f"{n} = {t}" for n, t in given.fields)
    return (
        ("streams", ", ".join(str(getattr(each, "name", each)) for each in given.reads)),
        ("by", ", ".join(given.by)),
        ("steps", " ".join(_element(each) for each in given.elements)),
        ("within", f"{given.within} of {given.within_of}" if given.within else ""),
        ("lateness", str(given.lateness)),
        ("after_match", " ".join(skip).strip()),
        ("results", given.mode + (" with time-outs" if given.timeouts else "")),
        ("fields", fields),
    )


def _element(element: Element) -> str:
    if isinstance(element, Group):
        inner = " ".join(_element(each) for each in element.sequence.elements)
        text = f"{element.after} ({inner})"
    else:
        no = "no " if element.absent else ""
        where = f" where {element.where}" if element.where else ""
        greedy = " greedy" if element.greedy else ""
        stream = getattr(element.stream, "name", element.stream)
        text = f"{element.after} {no}{element.name} of {stream}{where}{greedy}"
    if element.absent if not isinstance(element, Group) else False:
        return text
    times = "" if element.times == 1 else f" times {element.times} {element.between}"
    optional = " optional" if element.optional else ""
    until = f" until {element.until}" if element.until else ""
    return f"{text}{times}{optional}{until};"
