"""Every benchmark still runs with all that it stands beside: Apache Kafka, Java's clients, Spark's own connector."""

from pathlib import Path

import pytest

from benchmarks.__main__ import benchmarks_of, folders
from tests.benchmarks.running import smoke_run


@pytest.mark.parametrize("folder", folders())
def test_beside_the_others(folder: str, apache_jars: Path):
    printed = smoke_run(folder)
    assert printed.count("not written") == len(benchmarks_of(folder))
    assert "without Java" not in printed
