"""A guarded node of each kind, for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.security.guarded import Guarded, guarded_node


@pytest.fixture(scope="session", params=["ottla", "apache"])
def broker(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture(scope="session")
def guarded(broker: str, apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_node(broker, tmp_path_factory.mktemp(f"guarded-{broker}")) as node:
        yield node
