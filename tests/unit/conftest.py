"""Unit tests are kept from sockets, processes and waiting, and with them the fixtures that they use.

Their ends are not: the last test of a run ends what the whole run has used, such as Spark.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.unit.isolation import isolated

HERE = Path(__file__).parent


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from isolated_here(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from isolated_here(item))


def isolated_here(item: pytest.Item) -> Generator[None, object, object]:
    if HERE not in item.path.parents:
        return (yield)
    with isolated():
        return (yield)
