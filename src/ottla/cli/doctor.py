"""`ottla doctor`: checks whether this machine has what ottla needs, and says what would help."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Final, NamedTuple

import click

from ottla.cli.failure import EXIT_REFUSED
from ottla.spark.spark_home import java_program

__all__ = ["CHECKS", "Check", "check_all", "doctor"]

PYTHON_MIN: Final = (3, 11)
JAVA_MIN: Final = 17
PORTS: Final = (9092, 9093)
DISK_MIN_BYTES: Final = 2 * 1024**3
FILES_MIN: Final = 1024
CLOCK_SKEW_MAX_S: Final = 2.0
TOOL_S: Final = 20.0
BROWSERS: Final = ("xdg-open", "open", "firefox", "chromium", "chromium-browser", "google-chrome")
GIB: Final = 1024**3


class Check(NamedTuple):
    """`state` is ok, missing (something optional) or bad."""

    name: str
    state: str
    found: str
    advice: str = ""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="JSON instead of lines.")
def doctor(as_json: bool) -> int:
    """Check this machine: Python, Java, Maven, ports, disk, clock, file limit, browser.

    The exit code is 1 if something that ottla requires is missing or unusable. Optional parts may be missing.
    """
    found = check_all()
    if as_json:
        import json

        click.echo(json.dumps({"rows": [each._asdict() for each in found]}))
    else:
        _print(found)
    return EXIT_REFUSED if any(each.state == "bad" for each in found) else 0


def check_all() -> list[Check]:
    return [check() for check in CHECKS.values()]


def _print(found: list[Check]) -> None:
    from ottla.cli import colour
    from ottla.cli.cluster import print_line

    plain = colour.console().options.ascii_only
    marks = {
        "ok": click.style("ok" if plain else "✓", fg="green"),
        "missing": click.style("-" if plain else "○", fg="yellow"),
        "bad": click.style("X" if plain else "✗", fg="red", bold=True),
    }
    for each in found:
        print_line(f"{marks[each.state]} {each.name:<10} {each.found}")
        if each.advice:
            print_line(click.style(f"  {'->' if plain else '→'} {each.advice}", dim=True))


def python() -> Check:
    is_new = sys.version_info >= PYTHON_MIN
    advice = "" if is_new else f"ottla needs Python {'.'.join(map(str, PYTHON_MIN))} or newer"
    return Check("Python", "ok" if is_new else "bad", f"{platform.python_version()} in {sys.executable}", advice)


def spark() -> Check:
    try:
        return Check("Spark", "ok", installed_version("pyspark"))
    except PackageNotFoundError:
        advice = 'the pipeline needs it: pip install "ottla[spark]"; without it, use ottla demo --no-spark'
        return Check("Spark", "missing", "not installed (pyspark)", advice)


def java() -> Check:
    home = os.environ.get("JAVA_HOME")
    program = java_program()
    said = _said([str(program), "-version"]) if program else None
    if program is None or said is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java on the PATH"
        return Check("Java", "missing", where, f"Spark and Kafka Streams need Java {JAVA_MIN} or newer")
    version = java_version(said)
    if version is None or version < JAVA_MIN:
        advice = f"Spark and Kafka Streams need Java {JAVA_MIN} or newer: set JAVA_HOME"
        return Check("Java", "missing", f"{said.splitlines()[0]} ({program})", advice)
    kit = "" if shutil.which("javac") else ", without javac"
    return Check("Java", "ok", f"{version} in {program}{kit}")


def java_version(said: str) -> int | None:
    """The major version in the output of `java -version`: 17 of "17.0.15", 8 of "1.8.0_392"."""
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else None


def maven() -> Check:
    program = shutil.which("mvn")
    said = _said([program, "-v"]) if program else None
    match = re.search(r"Apache Maven (\d[\w.-]*)", said or "")
    if match is None:
        advice = "the demo uses it to fetch Kafka Streams; without it, a member written in Python stands in"
        return Check("Maven", "missing", "not found (mvn)", advice)
    return Check("Maven", "ok", f"{match[1]} in {program}")


def _said(command: list[str]) -> str | None:
    """The output of a program, on either stream; None if it cannot be run."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout + ran.stderr


def ports() -> Check:
    taken = [port for port in PORTS if not _is_free(port)]
    if not taken:
        return Check("ports", "ok", f"{' and '.join(map(str, PORTS))} free")
    found = f"{' and '.join(map(str, taken))} taken"
    return Check("ports", "missing", found, "ottla serve --port 0 uses any free port, and so does the demo")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def disk() -> Check:
    free = shutil.disk_usage(".").free
    found = f"{free / GIB:.1f} GiB free here"
    if free < DISK_MIN_BYTES:
        return Check("disk", "bad", found, f"the demo needs {DISK_MIN_BYTES / GIB:.0f} GiB; choose another directory")
    return Check("disk", "ok", found)


def clock() -> Check:
    """Brokers compare timestamps and files with the clock: check that this clock agrees with the disk's."""
    with tempfile.NamedTemporaryFile() as file:
        skew_s = os.stat(file.name).st_mtime - time.time()
    if abs(skew_s) > CLOCK_SKEW_MAX_S:
        found = f"files are {abs(skew_s):.1f} s {'ahead of' if skew_s > 0 else 'behind'} the clock"
        return Check("clock", "bad", found, "synchronise this machine's clock with that of its file server")
    return Check("clock", "ok", f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')}, the same for files")


def file_limit() -> Check:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return Check("files", "ok", "no limit")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES_MIN:
        advice = f"a broker keeps a file open for each segment: ulimit -n {min(hard, 65_536)}"
        return Check("files", "missing", f"{soft} may be open at once", advice)
    return Check("files", "ok", f"{soft:,} may be open at once")


def browser() -> Check:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        return Check("browser", "missing", "none found", "the report is one file: open it on another machine")
    return Check("browser", "ok", found)


CHECKS: dict[str, Callable[[], Check]] = {
    "python": python,
    "spark": spark,
    "java": java,
    "maven": maven,
    "ports": ports,
    "disk": disk,
    "clock": clock,
    "files": file_limit,
    "browser": browser,
}
