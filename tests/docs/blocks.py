"""The fenced blocks of the documentation, and what becomes of each of them in tests.

A block is run word for word, in the order of its page. A comment on the line before it says otherwise:

- `<!-- not run: REASON -->`;
- `<!-- file: NAME -->`: it is the content of a file in the reader's directory;
- `<!-- terminal -->`: its command runs in a terminal of its own, until the end of the page or a Ctrl-C;
- `<!-- after Ctrl-C -->`: the terminals are stopped before it.

`TESTED_BY` names the tests that run the blocks of a page in a way of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

COMMANDS = ("console", "sh")
DATA = ("json", "properties")
SHOWN = ("", "text", "diff")
"""Pictures, output, excerpts of files: nothing that could be run."""

TESTED_BY = {
    ("docs/how-to/extending.md", "python"): "tests/docs/test_extending.py",
    ("docs/how-to/extending.md", "sh"): "tests/docs/test_extending.py",
    ("docs/how-to/testing.md", "python"): "tests/docs/test_testing.py",
    ("docs/how-to/share.md", "python"): "tests/docs/test_share.py",
    ("docs/how-to/observe.md", "python"): "tests/docs/test_observe.py",
    ("docs/how-to/client.md", "python"): "tests/interop/test_client_docs.py",
    ("docs/how-to/spark.md", "python"): "tests/interop/spark/test_docs.py",
    ("docs/how-to/spark-files.md", "python"): "tests/interop/spark/test_docs.py",
    ("docs/how-to/spark-share.md", "python"): "tests/interop/spark/test_docs.py",
    ("docs/how-to/spark-sink.md", "python"): "tests/interop/spark/test_docs.py",
    ("docs/how-to/pipeline.md", "console"): "tests/interop/pipeline/test_docs.py",
    ("docs/how-to/sql.md", "python"): "tests/component/spark/test_sql_page.py",
    ("docs/how-to/sql.md", "sql"): "tests/component/spark/test_sql_page.py",
    ("docs/reference/report.md", "python"): "tests/interop/pipeline/test_docs.py",
    ("README.md", "python"): "tests/docs/test_readme.py",
}
"""Page and language -> the test."""

_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_ANY_LINES = r"(?:[^\n]*\n)*?"
_GOING_ON = re.compile(r"… \d+ s")


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str
    mark: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_left_out(self) -> bool:
        return self.mark.startswith("not run: ")


class Step(NamedTuple):
    """A command with what it prints, where `…` stands for anything."""

    command: str
    output: list[str]


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    return [
        Block(name, text.count("\n", 0, found.start()) + 1, found["language"], found["text"], found["mark"] or "")
        for found in _FENCE.finditer(text)
    ]


def steps(block: Block) -> Iterator[Step]:
    """The commands of a block; those of a script have no output."""
    if block.language == "sh":
        yield Step(block.text, [])
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = next(number for number, line in enumerate(lines) if not line.endswith("\\")) + 1
        yield Step("\n".join(lines[:end]), lines[end:])


def pattern(output: list[str]) -> re.Pattern[str]:
    """What is printed; runs of spaces are alike, since columns are as wide as what is in them."""
    lines = [_ANY_LINES if line.strip() == "…" else _line(line) for line in output if line.strip()]
    return re.compile("".join(lines) + r"\Z")


def _line(line: str) -> str:
    return "[^\n]*?".join(re.escape(part) for part in " ".join(line.split()).split("…")) + "\n"


def plain(printed: str) -> str:
    """Output as `pattern` has it, without the lines that say for how long something has been going on: a slower machine
    prints more of them."""
    lines = (" ".join(line.split()) for line in printed.splitlines() if line.strip())
    return "".join(f"{line}\n" for line in lines if not _GOING_ON.fullmatch(line))
