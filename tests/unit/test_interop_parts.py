"""`make interop` leaves nothing out: each file of tests is in one part, and each path of a part has tests."""

from collections import Counter

from tests.interop.parts import PARTS, TESTS, files


def test_each_file_is_in_one_part():
    named = Counter(file for paths in PARTS.values() for path in paths for file in files(path))
    there = [file for folder in ("interop", "browser") for file in (TESTS / folder).rglob("test_*.py")]
    assert named == Counter(there)


def test_each_path_has_tests():
    assert [path for paths in PARTS.values() for path in paths if not files(path)] == []
