"""The format as Spark sees it, without a JVM."""

import json
import subprocess
import sys
from pathlib import Path

from tests.unit.spark.log_directories import filled

SOURCES = Path(__file__).parents[3] / "src"


def test_finding_the_formats_brings_nothing_heavy():
    """Spark imports all of them at the first use of any Python source."""
    modules = [path.stem for path in SOURCES.glob("pyspark_*.py")]
    program = (
        f"import sys, pyspark.sql.datasource; before = set(sys.modules); import {', '.join(modules)}; import json; "
    )
    program += "json.dump(sorted(set(sys.modules) - before), sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stderr)}
    assert not {"numba", "numpy", "pyarrow", "pandas", "asyncio"} & loaded


def test_planning_files_brings_nothing_heavy(tmp_path: Path):
    """Each plan is made in a new process, which imports everything again."""
    filled(tmp_path, batches=20)
    program = (
        "import json, sys; from ottla.spark.log.source import LogDataSource; "
        "tasks = LogDataSource({'path': sys.argv[1], 'maxbytesperpartition': '1000'}).reader(None).partitions(); "
        "json.dump([len(tasks), sorted(sys.modules)], sys.stdout)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, loaded = json.loads(done.stdout)
    assert count > 7, "segments are split, by their indexes"
    assert not {"numba", "numpy", "pyarrow", "pandas", "ottla.log.partition"} & set(loaded)
