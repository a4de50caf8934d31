"""What pages write, and what they are shown."""

from typing import Annotated

from penstock import limits, record

__all__ = ["Edit", "Item"]


@record(key="id")
class Item:
    """A thing to do, or a list of them."""

    id: str
    list: str
    """The list that it is in; empty: it is a list."""
    text: str
    rank: str
    """Where it stands: items are in the order of these texts."""
    done: bool = False
    who: str = ""
    """Who edited it last."""
    edit: str = ""
    """The last edit that came to it, also if it changed nothing."""
    version: int = 0
    """How many edits have come to it."""


@record(key="id")
class Edit:
    """What somebody wants to change in an item; what is left out stays as it is."""

    id: Annotated[str, limits(min_length=1, max_length=64)]
    edit: Annotated[str, limits(min_length=1, max_length=64)]
    """The identity of this edit."""
    page: Annotated[str, limits(max_length=64)] = ""
    """The page that wrote it."""
    who: Annotated[str, limits(max_length=40)] = ""
    seen: int = 0
    """The version of the item that the page had seen."""
    list: Annotated[str, limits(max_length=64)] | None = None
    text: Annotated[str, limits(min_length=1, max_length=500)] | None = None
    rank: Annotated[str, limits(max_length=400, pattern="^[0-9A-Za-z]+$")] | None = None
    done: bool | None = None
    gone: bool | None = None
    """True: it is to be deleted; False: not, after all."""
