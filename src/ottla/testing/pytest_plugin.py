"""The pytest fixture `ottla_broker`. pytest loads this module in every run, so it imports nothing until it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing import Broker

_MARKER = "ottla(process=False, durable=False, **config): how the test's `ottla_broker` is started"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def ottla_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for one test; `@pytest.mark.ottla(num_partitions=3)` gives it settings, see `testing.broker`."""
    from ottla.testing import broker

    options: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("ottla"))):  # the nearest marker wins
        options |= marker.kwargs
    with broker(**options) as running:  # type: ignore[arg-type]  # a test's mistake is shown by broker() itself
        yield running
