"""The path of a newcomer, word for word, with nothing but the wheel: quickstart, report, Spark, pytest, demo."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import DOCS, Block, Step, blocks
from tests.docs.following import follow
from tests.docs.sessions import Session, session
from tests.wheel import ROOT, built_wheel

INSTALL_MAX_S = 900
DEMO_MAX_S = 900
QUICKSTART = DOCS / "tutorial" / "quickstart.md"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with ottla and its Spark extra, and what the pages tell to install besides."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder / "venv", with_pip=True)
    found = folder / "venv" / "bin" / "python"
    wheel = built_wheel(folder)
    versions = folder / "versions.txt"
    pinned = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE)
    versions.write_text("\n".join(pinned))
    wanted = [f"{wheel}[spark]", "confluent-kafka", "pytest"]
    command = [found, "-m", "pip", "install", "--quiet", "--no-input", "--constraint", versions, *wanted]
    subprocess.run(command, check=True, timeout=INSTALL_MAX_S)
    return found


@pytest.fixture
def shell(tmp_path: Path, python: Path) -> Iterator[Session]:
    with session(tmp_path / "reader", None, python) as opened:
        yield opened


def test_it_is_the_wheel_that_is_used(shell: Session, python: Path):
    shell.save("where.py", "import ottla\nprint(ottla.__file__)\n")
    assert shell.run(Step("python where.py", [])).startswith(str(python.parents[1]))
    assert python != Path(sys.executable)


def test_the_quickstart_with_its_report_and_a_look_at_the_topic_in_spark(shell: Session):
    follow(quickstart(), shell)
    assert (shell.directory / "out" / "report.html").stat().st_size > 10_000
    follow([next(each for each in blocks(QUICKSTART) if each.mark == "terminal")], shell)
    follow(blocks(DOCS / "how-to" / "spark.md")[:1], shell)


def quickstart() -> Iterator[Block]:
    """The page, with the report, for which it says to stop the node."""
    for block in blocks(QUICKSTART):
        if block.mark.startswith("not run: it starts Spark"):
            yield block._replace(mark="after Ctrl-C")
        elif not block.is_left_out:
            yield block


def test_a_test_with_a_broker(shell: Session):
    follow(blocks(DOCS / "how-to" / "test-recipes.md")[:2], shell)


def test_the_demo(shell: Session):
    printed = shell.run(Step("ottla demo", []), DEMO_MAX_S)
    met, wanted = re.search(r"expectations met: (\d+) of (\d+)", printed).groups()  # type: ignore[union-attr]
    assert met == wanted
    assert (shell.directory / "demo" / "report.html").stat().st_size > 10_000
