"""The page: one file that needs nothing else, and says what the facts say."""

from __future__ import annotations

import subprocess
import sys


def test_neither_spark_nor_pyarrow_is_needed_for_findings():
    code = (
        "import sys\nfor name in ('pyspark', 'pyarrow', 'pandas', 'numpy'): sys.modules[name] = None\n"
        "from ottla.spark.report import facts_of_findings, page\nassert page(facts_of_findings([], {}, 0))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
