"""The compiled columns against the pure reader, on good batches and on damaged ones; Arrow; life without numba."""

import subprocess
import sys


def test_importing_columns_loads_nothing_heavy():
    code = (
        "import sys, ottla.wire.columns, ottla.wire.batch; "
        "print([m for m in ('numpy', 'numba', 'pyarrow', 'crc32c', 'cramjam') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
