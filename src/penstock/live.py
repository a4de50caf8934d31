"""Live queries: what goes to ``asked`` and comes from ``news``, and a copy that is kept current."""

from penstock.core.grid.livequeries import LiveQueries
from penstock.core.grid.messages import Asked, News
from penstock.core.live.copy import ResultCopy
from penstock.core.live.written.builder import field

__all__ = ["Asked", "LiveQueries", "News", "ResultCopy", "field"]
