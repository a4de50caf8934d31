"""The page of the console: plain files that any browser runs, without a build step."""

from pathlib import Path

__all__ = ["PAGE"]

PAGE = Path(__file__).parent / "page"
"""The directory that the page is served from."""
