"""A browser for tests: one process for all of a session, a page for each test."""

from collections.abc import Callable, Iterator

import pytest
from tests.browser.chromium import NoBrowser, find_chromium
from tests.browser.devtools import Browser
from tests.browser.page import Page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give a running Chromium; where none is to be had, the test is skipped."""
    try:
        program = find_chromium()
    except NoBrowser as error:
        pytest.skip(f"no browser: {error}")
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[[], Page]]:
    """Give what makes pages; each must end without an error in its log.

    A test that provokes errors takes them out of ``page.errors`` when it has looked at them.
    """
    pages: list[Page] = []

    def make() -> Page:
        pages.append(Page(browser))
        return pages[-1]

    yield make
    errors = [error for page in pages for error in page.errors]
    for page in pages:
        page.close()
    assert errors == []


@pytest.fixture
def page(new_page: Callable[[], Page]) -> Page:
    """Give a page of an ordinary size."""
    page = new_page()
    page.resize(1280, 800)
    return page
