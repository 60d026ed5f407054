"""The format as Spark sees it, without a JVM."""

import json
import subprocess
import sys
from pathlib import Path

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
