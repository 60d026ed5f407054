"""Patterns: RE2's language, whole names, slices, and no pattern that takes the broker's time."""

from __future__ import annotations

import subprocess
import sys


def test_re2_is_not_loaded_before_it_is_needed():
    code = "import sys, ottla.core.groups.consumer.family; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
