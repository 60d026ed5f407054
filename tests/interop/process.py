"""Java programs as child processes: bounded in time and memory, stopped by their own pid, gone when we are gone."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.interop.jars import program

TOOL_TIMEOUT_S = 60
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""For programs that live for seconds: less compiling, less memory, one collector thread."""
SHARED_CLASSES = "classes.jsa"
"""The file beside the jars that shared_classes writes."""


class ProgramFailed(AssertionError):
    """A program ended with an error or not at all; the message carries its output."""

    def __init__(self, what: str, why: str, output: str) -> None:
        super().__init__(f"{what} {why}\n{output.rstrip() or '(it printed nothing)'}")
        self.output = output


def java(
    classpath: str,
    main: str,
    *arguments: str,
    heap: str = "256m",
    options: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> list[str]:
    """The command line of a Java program."""
    defined = [f"-D{key}={value}" for key, value in (properties or {}).items()]
    archive = Path(classpath.partition("/*")[0]) / SHARED_CLASSES
    shared = ["-Xlog:disable", f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []
    words = [f"-Xmx{heap}", *shared, *options, *defined, "-cp", classpath, main, *arguments]
    return [program("java", "Java 17"), *words]


def run(command: Sequence[str], *, timeout_s: float = TOOL_TIMEOUT_S, stdin: str = "", check: bool = True) -> str:
    """Run a program to its end and give what it printed, standard error last. ProgramFailed if it fails or hangs."""
    process = subprocess.Popen(
        tied(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        output, errors = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise ProgramFailed(_name(command), f"did not end within {timeout_s:g} s", output + errors) from None
    if check and process.returncode:
        raise ProgramFailed(_name(command), f"ended with exit code {process.returncode}", output + errors)
    return output + errors


def start(command: Sequence[str], output: IO[bytes], *, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start a program that runs beside the tests; what it prints goes to `output`.

    It does not see our own variables, such as those that choose the brokers to test: a node takes them for settings.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OTTLA_")}
    return subprocess.Popen(tied(command), stdin=stdin, stdout=output, stderr=subprocess.STDOUT, env=environment)


def stop(process: subprocess.Popen[bytes], *, timeout_s: float) -> bool:
    """Ask a program to end; False if it had to be killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        kill(process)
        return False
    _close_input(process)
    return True


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program at once, as a crash would."""
    process.kill()
    process.wait()
    _close_input(process)


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()


def tied(command: Sequence[str]) -> list[str]:
    """The same command, ended by the kernel when our process dies without having stopped it (Linux only)."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else list(command)


def tail(path: Path, lines: int = 60) -> str:
    """The end of a log, for an error message."""
    if not path.is_file():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def _name(command: Sequence[str]) -> str:
    """What a person calls the program: the main class of a Java command, else its first word."""
    words = list(command)
    return words[words.index("-cp") + 2] if "-cp" in words else words[0]
