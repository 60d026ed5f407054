import pytest

from tests.unit.groups.offsets.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
