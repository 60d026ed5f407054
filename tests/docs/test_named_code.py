"""Every file, function and class that the pages for contributors name is there.

`path` is a file or folder, from the root or from src/ottla on; `path::name` is a function, class, method or constant in
it. A bare name with a capital letter or an underscore is defined somewhere in the tree, or is Kafka's. What the worked
examples create counts as there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ottla import wire
from ottla.wire import keyed
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import api_names
from tests.docs.worked_examples import created

ROOT = Path(__file__).parents[2]
PAGES = ("docs/explanation/architecture.md", "docs/how-to/extending.md")
_PATH = re.compile(r"[\w./-]*/[\w./-]*|[\w-]+\.(py|txt|md|toml)")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_DEFINED = re.compile(r"^ *(?:(?:async )?def |class )?([A-Za-z_]\w+)(?=[(:=\[]| =)", re.MULTILINE)


def spans(page: str) -> Iterator[str]:
    """What stands in backticks, outside of blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return iter(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)))


def source(path: str) -> str | None:
    """The text of a file, or that of an example; empty for a folder, None if there is no such thing."""
    if path in created():
        return created()[path]
    found = next((each for each in (ROOT / path, ROOT / "src" / "ottla" / path) if each.exists()), None)
    return None if found is None else found.read_text(encoding="utf-8") if found.is_file() else ""


@cache
def names_in(path: str) -> frozenset[str]:
    return frozenset(_names(ast.parse(source(path) or "").body))


def _names(body: list[ast.stmt], before: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield before + node.name
            yield from _names(node.body, f"{before}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (before + each.id for each in targets if isinstance(each, ast.Name))


@cache
def known_names() -> frozenset[str]:
    files = [path for part in ("src", "simulation", "tests", "tools") for path in (ROOT / part).rglob("*.py")]
    ours = {name for path in files for name in _DEFINED.findall(path.read_text(encoding="utf-8"))}
    of_examples = {word for text in created().values() for word in re.findall(r"\w+", text)}
    kafkas = {*wire.names(), *api_names().values(), *keyed.FAMILIES, *(code.name for code in ErrorCode)}
    return frozenset(ours | of_examples | kafkas)


def is_there(span: str) -> bool:
    path, _, name = span.partition("::")
    if name:
        return name in names_in(path)
    if _PATH.fullmatch(span):
        return source(span) is not None
    if _NAME.fullmatch(span) and re.search(r"[A-Z_]", span):
        return all(part in known_names() for part in span.split(".") if re.search(r"[A-Z_]", part))
    return True


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_names_is_there(page: str) -> None:
    assert [span for span in spans(page) if not is_there(span)] == []


def test_what_is_not_there_is_noticed() -> None:
    present = [
        "broker/node.py",
        "broker/node.py::Node.submit",
        "Node.submit",
        "core/groups/",
        "ShareFetch",
        "a.setting",
    ]
    missing = ["broker/nod.py", "broker/node.py::Node.x", "Node.no_such", "core/nothing/", "NoClass"]
    assert [span for span in present + missing if is_there(span)] == present
