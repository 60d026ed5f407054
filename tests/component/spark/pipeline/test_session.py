"""Where the standard error of Spark's processes goes, and that of the pipeline's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import subprocess, sys
from pathlib import Path
from ottla.spark.pipeline.session import _errors_into

CHILD = [sys.executable, "-c", "import sys; print('child', file=sys.stderr)"]
with _errors_into(Path(sys.argv[1])):
    print("while Spark starts", file=sys.stderr)
    subprocess.run(CHILD, check=True)
subprocess.run(CHILD, check=True)
print("afterwards", file=sys.stderr)
"""


def test_only_what_spark_says_goes_to_its_log(tmp_path: Path):
    log = tmp_path / "spark.log"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(log)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.splitlines() == ["while Spark starts", "child", "afterwards"]
    assert log.read_text() == "child\n"
