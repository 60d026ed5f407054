import asyncio
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.plan import Plan
from ottla.cli.demo.word_totals import Application, Missing, kafka_streams


def tool(folder: Path, name: str, script: str) -> None:
    """A program of this name that does as the script says."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin" if not Path("/usr/bin/java").exists() else str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def build() -> Application:
    return asyncio.run(kafka_streams(Narrator(Console(file=StringIO()))))


MAKES_ITS_OUTPUT = """
for word in "$@"; do case "$word" in -DoutputDirectory=*) /bin/mkdir -p "${word#-DoutputDirectory=}";; esac; done
"""
COMPILES = 'while [ "$1" != -d ]; do shift; done; /bin/mkdir -p "$2"'


def test_without_java(tools: Path):
    with pytest.raises(Missing, match="no Java development kit"):
        build()


def test_without_maven(tools: Path):
    for name in ("java", "javac"):
        tool(tools, name, "exit 0")
    with pytest.raises(Missing, match="no Maven"):
        build()


def test_maven_that_fails_says_why(tools: Path):
    for name in ("java", "javac"):
        tool(tools, name, "exit 0")
    tool(tools, "mvn", "echo '[ERROR] no network'; exit 1")
    with pytest.raises(Missing, match=r"Maven failed: \[ERROR\] no network"):
        build()


def test_the_second_time_nothing_is_fetched_or_compiled(tools: Path, tmp_path: Path):
    tool(tools, "java", "exit 0")
    tool(tools, "javac", COMPILES)
    tool(tools, "mvn", MAKES_ITS_OUTPUT)
    build()
    tool(tools, "javac", "exit 1")
    (tools / "mvn").unlink()
    command = build().command("word-totals-1", "b:1", DemoDirectory(tmp_path / "demo"), Plan())
    assert "application.id=word-totals" in command
    assert "WordTotals" in command


def test_another_demo_that_was_faster(tools: Path, tmp_path: Path):
    """It has fetched and compiled the same while this one did."""
    also = '/bin/mkdir -p "${folder%.*.partial}/complete"; /bin/mkdir -p "$folder/complete"'
    tool(tools, "java", "exit 0")
    tool(tools, "javac", f'while [ "$1" != -d ]; do shift; done; folder="$2"; {also}')
    tool(tools, "mvn", f'for word in "$@"; do folder="${{word#-DoutputDirectory=}}"; done; {also}')
    build()
    left = sorted(path.name.partition("-")[0] for path in (tmp_path / "cache" / "ottla" / "demo").iterdir())
    assert left == ["classes", "kafka"], "and nothing that is partial"
