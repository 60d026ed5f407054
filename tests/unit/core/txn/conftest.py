from collections.abc import Iterator

import pytest

from tests.unit.core.txn.desk import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A coordinator of a cluster with transaction version 2. What it has told its log is held against its state."""
    desk = Desk()
    yield desk
    desk.check_law()


@pytest.fixture
def desk_v1() -> Iterator[Desk]:
    desk = Desk(level=1)
    yield desk
    desk.check_law()
