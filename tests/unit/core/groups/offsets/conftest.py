import pytest

from tests.unit.core.groups.offsets.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
