"""kfake, the fake broker of franz-go: a program in Go that keeps everything in memory.

`kfake_program/` pins its version and makes a program of it, which Go builds into `build/`.
"""

import shutil
import subprocess
from pathlib import Path

from benchmarks import runner
from tests.interop import process

__all__ = ["Kfake", "NotBuiltError", "build"]

SOURCE = Path(__file__).parent / "kfake_program"
PROGRAM = runner.ROOT / "build" / "kfake"
BUILD_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 10.0


class NotBuiltError(RuntimeError):
    """There is no Go, or it could not build the program."""


def build() -> None:
    """Make the program; Go does nothing if it is up to date."""
    go = shutil.which("go")
    if go is None:
        raise NotBuiltError("Go is not installed")
    command = [go, "build", "-o", str(PROGRAM), "."]
    try:
        subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=True)
    except subprocess.CalledProcessError as error:
        raise NotBuiltError(f"Go could not build it: {error.stderr.strip()}") from None
    except subprocess.TimeoutExpired:
        raise NotBuiltError(f"Go did not build it within {BUILD_TIMEOUT_S:g} s") from None


class Kfake:
    """kfake with one broker. It has no settings and no directory; what it prints goes to `serve.log`."""

    name = "kfake"

    def __init__(self, directory: Path, port: int) -> None:
        self.directory, self.port, self.pid = directory, port, 0
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.directory.mkdir(parents=True)

    def exec(self) -> None:
        with (self.directory / "serve.log").open("wb") as output:
            self._process = process.start([str(PROGRAM), str(self.port)], output)
        self.pid = self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            process.stop(self._process, timeout_s=STOP_TIMEOUT_S)
