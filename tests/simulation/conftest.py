"""What the simulations share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """The coordinator warns of each fault that is made on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def no_event_loop() -> None:
    """Worlds are taken down without help of a loop that Python would make; as after any other test."""
    asyncio.set_event_loop(None)
