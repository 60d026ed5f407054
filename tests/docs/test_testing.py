"""The tutorial on testing is a test file in pieces: put together, it has to pass."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "testing.md"
TIME_LIMIT_S = 120


def test_the_tutorial_passes(tmp_path: Path):
    code = "\n\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    tests = re.findall(r"^def (test_\w+)", code, re.MULTILINE)
    (tmp_path / "test_tutorial.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "--strict-markers", "."]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{len(tests)} passed" in run.stdout
    assert len(tests) > 5
