"""`ottla completion`: what shells are told, and what they get when they ask."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from ottla.cli import run


def asked(words: str) -> list[str]:
    """What a shell is told of a line that ends with these words."""
    environment = {
        **os.environ,
        "_OTTLA_COMPLETE": "bash_complete",
        "COMP_WORDS": f"ottla {words}",
        "COMP_CWORD": str(len(words.split(" "))),
    }
    program = "import sys; from ottla.cli import main; sys.argv = ['ottla']; main()"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("top", ["topics"]),
        ("topics gr", ["grow"]),
        ("topics list --un", ["--unhealthy"]),
        ("configs get gr", ["group"]),
        ("nothing x", []),
    ],
)
def test_words_are_completed(words: str, expected: list[str]):
    assert asked(words) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_reads_its_script(capsys: pytest.CaptureFixture[str]):
    run(["completion", "bash"])
    script = capsys.readouterr().out
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
