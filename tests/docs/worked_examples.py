"""The worked examples of docs/how-to/extending.md as steps, and what a reader does at each of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "extending.md"
TEXT = PAGE.read_text(encoding="utf-8")
_BLOCK = re.compile(
    r"^(?:(?P<verb>Create|Append to|Change) `(?P<path>[^`]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Step(NamedTuple):
    verb: str
    path: str
    """Empty for commands."""
    text: str


def titles() -> list[str]:
    return re.findall(r"^## (.+)$", TEXT, re.MULTILINE)


def steps(title: str) -> list[Step]:
    """Every block of an example, in order."""
    section = re.split(r"^## ", TEXT.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]
    found = []
    for block in _BLOCK.finditer(section):
        assert block["verb"] or block["kind"] == "sh", f"what is to be done with {block['text'][:60]!r}?"
        found.append(Step(block["verb"] or "Run", block["path"] or "", block["text"]))
    return found


def created() -> dict[str, str]:
    """The files that the examples create."""
    return {step.path: step.text for title in titles() for step in steps(title) if step.verb == "Create"}


def follow(step: Step, root: Path, environment: Mapping[str, str]) -> None:
    """Do what the text says."""
    if step.verb == "Run":
        for command in step.text.splitlines():
            _run(command, root, environment)
        return
    file = root / step.path
    if step.verb == "Create":
        assert not file.exists(), step.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(step.text, encoding="utf-8")
        return
    text = file.read_text(encoding="utf-8")
    file.write_text(text + step.text if step.verb == "Append to" else _changed(text, step), encoding="utf-8")


def _changed(text: str, step: Step) -> str:
    for place in step.text.split("@@\n"):
        lines = place.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert f"\n{text}".count(f"\n{old}") == 1, f"{step.path} does not have this once:\n{old}"
        text = f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:]
    return text


def _run(command: str, root: Path, environment: Mapping[str, str]) -> None:
    ran = subprocess.run(command.split(), cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
