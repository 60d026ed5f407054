"""The pytest fixtures `ottla_broker` and `ottla_cluster`.

pytest loads this module in every run, so it imports nothing until it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing import Broker, Cluster

_MARKER = "ottla(process=False, nodes=3, **config): how the test's `ottla_broker` or `ottla_cluster` is started"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def ottla_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for one test; `@pytest.mark.ottla(num_partitions=3)` gives it settings, see `testing.broker`."""
    from ottla.testing import broker

    with broker(**_options(request)) as running:  # type: ignore[arg-type]  # a test's mistake is shown by broker() itself
        yield running


@pytest.fixture
def ottla_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster for one test; `@pytest.mark.ottla(nodes=5)` says how it is made, see `testing.cluster`."""
    from ottla.testing import cluster

    with cluster(**_options(request)) as running:  # type: ignore[arg-type]
        yield running


def _options(request: pytest.FixtureRequest) -> dict[str, object]:
    options: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers("ottla"))):  # the nearest marker wins
        options |= marker.kwargs
    return options
