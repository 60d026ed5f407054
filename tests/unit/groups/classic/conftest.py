import pytest

from tests.unit.groups.classic.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
