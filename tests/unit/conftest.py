"""Unit tests are kept from sockets, processes and waiting, and with them the fixtures that they use."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.unit.isolation import isolated


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with isolated():
        return (yield)
