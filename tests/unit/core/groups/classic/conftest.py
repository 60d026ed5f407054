import pytest

from tests.unit.core.groups.classic.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
