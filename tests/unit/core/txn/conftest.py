from collections.abc import Iterator

import pytest

from tests.unit.core.txn.driver import Driver


@pytest.fixture
def driver() -> Iterator[Driver]:
    """A coordinator of a cluster with transaction version 2. What it has told its log is held against its state."""
    driver = Driver()
    yield driver
    driver.check_law()


@pytest.fixture
def driver_v1() -> Iterator[Driver]:
    driver = Driver(level=1)
    yield driver
    driver.check_law()
