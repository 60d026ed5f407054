"""`make interop` leaves nothing out, and tests that share a broker run one after another."""

from collections import Counter

import pytest

from tests.interop.parts import PARTS, TESTS, files
from tests.interop.scheduler import group_of


def test_each_file_is_in_one_part():
    named = Counter(file for paths in PARTS.values() for path in paths for file in files(path))
    there = [file for folder in ("interop", "browser") for file in (TESTS / folder).rglob("test_*.py")]
    assert named == Counter(there)


def test_each_path_has_tests():
    assert [path for paths in PARTS.values() for path in paths if not files(path)] == []


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/interop/node/test_a.py::test_x[ottla-java]", "node-ottla-"),
        ("tests/interop/node/test_b.py::test_y[apache]", "node-apache-"),
        ("tests/interop/transactions/test_a.py::test_x[apache-tv2-java]", "transactions-apache-tv2"),
        ("tests/interop/share/test_a.py::test_x[apache-ottla]", "share-apache-"),
        ("tests/interop/test_a.py::test_x[one ottla]", "interop-test_a"),
        ("tests/interop/test_a.py::test_x", "interop-test_a"),
    ],
)
def test_the_broker_of_a_test_is_told_from_its_name(test: str, group: str):
    assert group_of(test) == group
