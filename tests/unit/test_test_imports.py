"""What tests share lies in plain modules: nobody imports from a module of tests, whose names belong to that module.
And what unit tests share needs nothing that opens sockets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imports_of_tests(source: str) -> list[str]:
    """The modules of tests that a source names in its import statements, wherever they stand."""
    return [name for name in imports(source) if ".test_" in f".{name}"]


def imports(source: str) -> list[str]:
    return [name for node in ast.walk(ast.parse(source)) for name in imported(node)]


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield f"{node.module}"
        if f"{node.module}".split(".")[0] == "tests":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Paths and texts of all modules in folders."""
    for folder in folders:
        for path in (ROOT / folder).rglob("*.py"):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_nobody_imports_from_a_module_of_tests() -> None:
    assert {path: names for path, text in sources("tests", "benchmarks") if (names := imports_of_tests(text))} == {}


def test_unit_tests_import_nothing_of_component_tests() -> None:
    found = [path for path, text in sources("tests/unit") if any("tests.component" in name for name in imports(text))]
    assert found == []


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
