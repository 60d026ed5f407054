"""A console on a cluster that is at work, on three nodes of each kind; and a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from ottla.observe import Options
from tests.browser.chromium import chromium
from tests.component.console.served import Browser as Reader
from tests.component.console.served import console
from tests.interop.console.world import world

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def reader(kind: str, apache_jars: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Somebody who has logged in to the console of a cluster of this kind."""
    with (
        world(kind, tmp_path_factory.mktemp("world") / "demo") as bootstrap_servers,
        console(bootstrap_servers, Options()) as logged_in,
    ):
        logged_in.until("/overview.json", lambda data: len(data["states"]) == 4 and data["quorum"] is not None)
        yield logged_in


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with chromium() as started:
        yield started
