"""Lists of things to do, for several people in several browsers at once.

::

    page ── edits ──▶ apply ──▶ items ──▶ live queries ──▶ every page
      ▲                                                       │
      └──────────────── what it shows ◀───────────────────────┘

A page writes edits and shows them at once. The service ``apply`` makes rows of them, by the rules
of ``merging``; live queries over the rows tell every page what became of them. A list is an item
that is in no list.
"""

from apps.todo.merging import Kept, merged
from apps.todo.records import Edit, Item
from penstock import App, Output, State, delete

app = App("todo")

edits = app.stream("todo.edits", Edit)
items = app.table("todo.items", Item)


@app.service(reads=edits, writes=items)
def apply(edit: Edit, kept: State[Kept]) -> Item | Output[Item] | None:
    """Apply an edit to its item."""
    found = merged(kept.get(), edit)
    if found is None:
        return None
    kept.set(found)
    return delete(items, edit.id) if found.gone else found.item


live = app.live_queries("live", items)
app.gateway("door", takes=edits, shows=items, live=live, pages="web")
"""Where pages come from, and everything that they ask for."""
