"""What tests share lies in plain modules: nobody imports from a module of tests, whose names belong to that module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imports_of_tests(source: str) -> list[str]:
    """The modules of tests that a source names in its import statements, wherever they stand."""
    return [name for node in ast.walk(ast.parse(source)) for name in imported(node) if ".test_" in f".{name}"]


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield f"{node.module}"
        if f"{node.module}".split(".")[0] == "tests":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nobody_imports_from_a_module_of_tests() -> None:
    sources = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in sources
        if (names := imports_of_tests(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "from tests.unit.log.test_append import led",
        "from tests.unit.log import logs, test_append",
        "import tests.unit.log.test_append as append",
        "def late():\n    from tests.unit.log.test_append import led",
    ],
)
def test_an_import_from_a_module_of_tests_is_seen(source: str) -> None:
    assert "tests.unit.log.test_append" in imports_of_tests(source)


@pytest.mark.parametrize("source", ["from tests.unit.log.logs import led", "from ottla.testing import broker"])
def test_other_imports_are_fine(source: str) -> None:
    assert imports_of_tests(source) == []
