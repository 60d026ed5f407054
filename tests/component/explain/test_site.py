"""The site of the documentation is the same wherever it is built."""

from __future__ import annotations

import subprocess
import sys

from tests.unit.explain.site_digest import digest


def test_the_same_package_gives_the_same_site():
    # Another process has another order in its sets.
    program = "from tests.unit.explain.site_digest import digest; print(digest())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert done.stdout.strip() == digest()
