"""Every benchmark still runs. What needs Java, with which all of Spark's begin, runs in tests/interop/benchmarks."""

import pytest

from benchmarks.__main__ import benchmarks_of, folders
from tests.benchmarks.running import smoke_run

SPARK = {"pipeline", "spark"}


@pytest.mark.parametrize("folder", sorted(set(folders()) - SPARK))
def test_without_java(folder: str):
    printed = smoke_run(folder, "--no-java")
    assert printed.count("not written") == len(benchmarks_of(folder))
