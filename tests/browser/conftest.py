"""A real browser on the built site: Playwright with the Chromium of the system, no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ottla.cli.docs import write
from ottla.explain import site
from tests.browser.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "site"
    write(site.files(), folder, site.file_count())
    return folder


class Visitor:
    """Opens pages of the site; whatever the browser complains about fails the test."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser = browser
        self.folder = folder
        self.complaints: list[str] = []
        self.contexts: list[Any] = []

    def open(self, path: str, *, width: int = 1280, height: int = 900, **options: Any) -> Page:
        context = self.browser.new_context(viewport={"width": width, "height": height}, **options)
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))
        page.on("request", lambda request: request.url.startswith("file:") or self.complaints.append(request.url))
        page.goto(self.address(path))
        return page

    def address(self, path: str) -> str:
        return f"{self.folder.as_uri()}/{path}"


@pytest.fixture
def visitor(browser: Browser, site_folder: Path) -> Iterator[Visitor]:
    visiting = Visitor(browser, site_folder)
    yield visiting
    for context in visiting.contexts:
        context.close()
    assert visiting.complaints == []
