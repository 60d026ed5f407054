"""The option that writes scenarios anew, and the commands that families add to the language."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

for _path in sorted(Path(__file__).parent.glob("commands_*.py")):
    import_module(f"tests.scenarios.{_path.stem}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the output that was seen into the scenarios")
