"""Starts drivers and waits for their end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.interop import process

TIMEOUT_S = 400
ROOT = Path(__file__).parents[3]


class Drivers:
    """Runs of one query, each in a process of its own, on one checkpoint."""

    def __init__(self, directory: Path, kind: str, options: dict[str, str]) -> None:
        self.rows = directory / "rows"
        self.rows.mkdir()
        self.options = options
        self._log = directory / "driver.log"
        self._given = {
            "kind": kind,
            "options": options,
            "checkpoint": str(directory / "checkpoint"),
            "rows": str(self.rows),
        }

    def run(self, *, batches: int, **more: Any) -> None:
        """Until so many batches are committed, or it is dead as it was told to be."""
        given = {**self._given, "batches": batches, **more}
        words = [sys.executable, "-m", "tests.interop.spark.driver", json.dumps(given)]
        # This checkout, wherever ottla is installed from, and the PySpark of this process.
        paths = (str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
        with self._log.open("ab") as log:
            started = subprocess.Popen(
                process.tied(words), stdout=subprocess.PIPE, stderr=log, env=environment, cwd=ROOT
            )
            try:
                said, _ = started.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                started.kill()
                raise AssertionError(f"the driver did not end\n{process.tail(self._log)}") from None
        if "die" in more:
            assert not said, f"the driver lived on\n{process.tail(self._log)}"
        else:
            assert said, process.tail(self._log)
            assert json.loads(said)["error"] is None, said.decode()

    def batches(self) -> dict[int, list[list[int]]]:
        """The rows of each batch: partition, offset and delivery count."""
        files = (path for path in self.rows.iterdir() if path.suffix == ".json")
        return {int(path.stem): sorted(json.loads(path.read_text())) for path in files}

    def runs(self) -> list[int]:
        """The batches as they were written, one after the other."""
        return [int(line) for line in (self.rows / "runs").read_text().split()]
