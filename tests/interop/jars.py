"""Java libraries by name: each pom in java/jars becomes a folder of jars in the user's cache, fetched once by Maven.

`python -m tests.interop.jars` fetches all of them and shows what is happening, and with names some, and prints their
folders; the fixtures fetch what they need by themselves.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ottla.user_cache import user_cache

POMS = Path(__file__).parent / "java" / "jars"
APACHE_KAFKA = "apache-kafka-4.3.1"
CLIENTS_4_4 = "kafka-clients-4.4.0"
CLIENTS_4_2 = "kafka-clients-4.2.1"
SPARK_KAFKA = "spark-kafka-4.2.0"
DELTA = "delta-spark-4.4.0"
ALL = (APACHE_KAFKA, CLIENTS_4_4, CLIENTS_4_2, SPARK_KAFKA, DELTA)
FETCH_TIMEOUT_S = 900

Report = Callable[[str], object]


class SetupError(RuntimeError):
    """What the interop tests need is not there: which thing, and what to do."""


def classpath(name: str, classes: Path | None = None, report: Report = sys.stderr.write) -> str:
    """The class path of the libraries that java/jars/NAME.pom.xml lists, fetched if they are not there yet.

    `classes` of our own come after them: the archive of shared_classes serves a class path that begins with the jars.
    """
    return f"{libraries(name, report)}/*" + (f":{classes}" if classes else "")


def libraries(name: str, report: Report = sys.stderr.write) -> Path:
    """The folder with the jars; a stamp in it says which pom they came from, so that a changed pom fetches anew."""
    pom = POMS / f"{name}.pom.xml"
    wanted = hashlib.sha256(pom.read_bytes()).hexdigest()
    folder = user_cache() / name
    with locked(user_cache() / f"{name}.lock"):
        stamp = folder / "pom.sha256"
        if not stamp.is_file() or stamp.read_text() != wanted:
            _fetch(pom, folder, report)
            stamp.write_text(wanted)
    return folder


def _fetch(pom: Path, folder: Path, report: Report) -> None:
    program("java", "Java 17 or newer")
    partial = folder.with_name(folder.name + ".partial")
    for stale in (partial, folder):
        shutil.rmtree(stale, ignore_errors=True)
    report(f"interop: fetching {folder.name} with Maven (once; about a minute)\n")
    goal = "dependency:copy-dependencies"
    command = [program("mvn", "Maven"), "-B", "-f", str(pom), goal, f"-DoutputDirectory={partial}"]
    _follow(command, report)
    partial.rename(folder)
    report(f"interop: {sum(1 for _ in folder.glob('*.jar'))} jars in {folder}\n")


def _follow(command: list[str], report: Report) -> None:
    """Run Maven and report each jar as it comes; its own words are shown only when it fails."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as maven:
        assert maven.stdout is not None
        lines = list(_reported(maven.stdout, report))
    if maven.returncode:
        problems = [line for line in lines if line.startswith("[ERROR]")] or lines
        raise SetupError("Maven could not fetch the jars:\n" + "".join(problems[:10]))


def _reported(output: IO[str], report: Report) -> Iterator[str]:
    for line in output:
        words = line.split()
        if line.startswith("Downloaded") and (jar := next((w for w in words if w.endswith(".jar")), None)):
            report(f"  fetched {jar.rpartition('/')[2]}\n")
        yield line


def program(name: str, what: str) -> str:
    """The path of a program that must be installed."""
    found = shutil.which(name)
    if found is None:
        raise SetupError(f"the interop tests need {what}: there is no '{name}' on the PATH")
    return found


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time: test workers start together and need the same files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        found = [libraries(each) for each in sys.argv[1:] or ALL]
        if sys.argv[1:]:
            sys.stdout.write("".join(f"{each}\n" for each in found))
        else:
            from tests.interop.shared_classes import share_classes  # which needs what this module has

            share_classes(sys.stderr.write)
    except SetupError as missing:
        sys.exit(f"interop: {missing}")
