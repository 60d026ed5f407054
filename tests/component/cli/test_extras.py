"""Commands where the packages of an extra are not installed: they name it, and what can do without goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.lazy import load
from ottla.cli.table import COMMANDS
from tests.unit.spark.log_directories import new_directory

TIMEOUT_S = 60
WITHOUT_EXTRAS = """
import sys

ABSENT = {"pyspark", "py4j", "pyarrow", "numpy", "pandas", "numba", "delta", "cryptography"}


class Bare:
    '''A finder that finds what it found before, without the packages of extras.'''

    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in ABSENT else self._finder.find_spec(name, *rest)

    def find_distributions(self, context):
        find = getattr(self._finder, "find_distributions", lambda _: ())
        return () if context.name in ABSENT else find(context)


sys.meta_path[:] = map(Bare, sys.meta_path)
from ottla.cli import run

sys.exit(max(run(words.split()) for words in sys.argv[1:]))
"""


def bare(*commands: str) -> subprocess.CompletedProcess[str]:
    """Commands of an ottla that was installed without extras; the exit code is the highest of theirs."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *commands],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip


@pytest.fixture
def run_json(tmp_path: Path) -> Path:
    """A directory in which a pipeline has written a table and what it did."""
    table = {"name": "findings", "format": "parquet"}
    told = {"v": 1, "ended_ms": 1, "range": {"from_ms": 0, "to_ms": 1}, "inputs": [], "tables": [table], "notes": []}
    (tmp_path / "run.json").write_text(json.dumps(told))
    (tmp_path / "tables" / "findings").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("command", ["run", "follow", "report"])
def test_the_pipeline_names_the_extra_that_it_needs(command: str, run_json: Path) -> None:
    new_directory(run_json / "logs")
    source = "" if command == "report" else f"--from-log {run_json}/logs"

    ended = bare(f"pipeline {command} --out {run_json} {source}")

    assert ended.returncode == 2, ended.stderr
    assert ended.stderr == (
        "ottla: pyspark, pyarrow, numpy, pandas, numba are not installed\n"
        '  → pip install "ottla[spark]"\n'
    )  # fmt: skip


def test_every_subcommand_of_the_pipeline_is_tried() -> None:
    assert set(load(COMMANDS["pipeline"]).commands) == {"run", "follow", "report"}  # type: ignore[attr-defined]


def test_every_command_tells_of_itself() -> None:
    ended = bare(*(f"{command} --help" for command in COMMANDS))

    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_doctor_says_what_is_missing() -> None:
    assert "○ Spark      not installed (pyspark)" in bare("doctor").stdout


def test_a_key_store_names_the_extra_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "store.p12").write_bytes(b"")
    config = tmp_path / "client.properties"
    config.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PKCS12\nssl.truststore.location={tmp_path}/store.p12"
    )

    ended = bare(f"topics list --command-config {config}")

    assert ended.returncode == 2
    assert "pip install ottla[security]" in ended.stderr


def test_a_module_of_ours_that_is_not_there_is_a_bug() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "from ottla.cli.failure import answer\nanswer(lambda: __import__('ottla.nothing'))"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip

    assert "Traceback" in ended.stderr
