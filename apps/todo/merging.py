"""What becomes of an item when somebody edits it who may have been offline.

No clock is asked. An edit says which version of the item its page had seen:

- Where it stands, in which list, and whether it is done: the last edit on the log holds.
- Its text: nobody overwrites a text that they have not seen. The first edit on the log holds, the
  other changes nothing at all, and its page offers to use its text all the same.
- Deleting it: nobody deletes a text that they have not seen. What is deleted stays deleted, until
  somebody says that it is not.

A page has seen what it wrote itself, whatever the version: it edits on while nothing comes back.
"""

from typing import Any, TypeVar

from msgspec.structs import replace as replace_struct

from apps.todo.records import Edit, Item
from penstock import record

__all__ = ["Kept", "merged"]


R = TypeVar("R")


@record()
class Kept:
    """An item, and what is to be known for the next edit of it."""

    item: Item
    gone: bool = False
    text_version: int = 0
    """The version in which its text was written."""
    text_page: str = ""
    """The page that wrote it."""


def merged(kept: Kept | None, edit: Edit) -> Kept | None:
    """Return what becomes of an item; None: there is none, and this edit makes none."""
    if kept is None:
        return _made(edit)
    item, gone = kept.item, kept.gone
    item = replace(item, edit=edit.edit, version=item.version + 1)
    unseen = kept.text_version > edit.seen and kept.text_page != edit.page
    if edit.gone and unseen:
        return replace(kept, item=item)
    gone = gone if edit.gone is None else edit.gone
    if gone:
        return replace(kept, item=item, gone=True)
    kept = replace(kept, gone=False)
    if edit.text is not None and unseen:
        return replace(kept, item=item)
    if edit.text is not None:
        item = replace(item, text=edit.text)
        kept = replace(kept, text_version=item.version, text_page=edit.page)
    item = replace(
        item,
        list=item.list if edit.list is None else edit.list,
        rank=item.rank if edit.rank is None else edit.rank,
        done=item.done if edit.done is None else edit.done,
        who=edit.who or item.who,
    )
    return replace(kept, item=item)


def _made(edit: Edit) -> Kept | None:
    if edit.text is None or edit.list is None or edit.rank is None or edit.gone:
        return None
    item = Item(
        id=edit.id,
        list=edit.list,
        text=edit.text,
        rank=edit.rank,
        done=bool(edit.done),
        who=edit.who,
        edit=edit.edit,
        version=1,
    )
    return Kept(item=item, text_version=1, text_page=edit.page)


def replace(value: R, **changes: Any) -> R:
    """Return a record with some fields as given."""
    found: Any = value
    changed: R = replace_struct(found, **changes)
    return changed
