"""Where Penstock keeps things: the project's own directory, and the cache that clones share."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Places", "cache_dir"]


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of one project, all under ``home``. Whoever writes creates them."""

    home: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).expanduser().absolute())

    @property
    def broker(self) -> Path:
        """The embedded broker: its data, ports and logs."""
        return self.home / "broker"

    @property
    def checkpoints(self) -> Path:
        """The checkpoints of pipelines."""
        return self.home / "checkpoints"

    @property
    def lake(self) -> Path:
        """The Delta tables."""
        return self.home / "lake"

    @property
    def logs(self) -> Path:
        """One log file for each part that runs."""
        return self.home / "logs"

    @property
    def runs(self) -> Path:
        """One file for each command that is running parts."""
        return self.home / "runs"

    @property
    def state(self) -> Path:
        """The local state of services; it can be rebuilt from topics."""
        return self.home / "state"


def cache_dir() -> Path:
    """Return the user's cache, shared by all clones; it is not created here.

    ``$PENSTOCK_CACHE``, else where the system keeps caches: ``$XDG_CACHE_HOME/penstock`` or
    ``~/.cache/penstock`` on Linux, ``~/Library/Caches/penstock`` on macOS.
    """
    if own := os.environ.get("PENSTOCK_CACHE"):
        return Path(own).expanduser().absolute()
    from platformdirs import user_cache_path  # not for verbs that need no cache

    try:
        return user_cache_path("penstock", appauthor=False)
    except RuntimeError:  # no $HOME and no entry in the user database, as in some containers
        return Path.cwd() / ".cache" / "penstock"
