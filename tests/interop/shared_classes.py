"""Classes as they are in memory, in a file beside the jars: Java starts in half of the time with it.

A program that lives for a second spends most of it on reading and checking thousands of classes. `process.java` uses
the file wherever it lies; the JVM ignores one that another release of Java has written.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from unittest.mock import patch

from ottla.user_cache import user_cache
from tests.interop import process
from tests.interop.apache import ApacheKafka
from tests.interop.jars import APACHE_KAFKA, CLIENTS_4_2, CLIENTS_4_4, Report, classpath, libraries, locked
from tests.interop.jars import program as installed
from tests.interop.process import SHARED_CLASSES
from tests.interop.programs import PROGRAMS, compiled, run_program

SHARING = (APACHE_KAFKA, CLIENTS_4_4, CLIENTS_4_2)
RELEASE = "4.3.1"
DUMP_TIMEOUT_S = 300


def share_classes(report: Report) -> None:
    """Write the file for each set of jars, unless the Java that is installed has written it already."""
    with locked(user_cache() / "shared-classes.lock"):
        java = _version()
        missing = [name for name in SHARING if not _is_current(name, java)]
        if not missing:
            return
        report("interop: writing Java's classes down as they are in memory (once; about a minute)\n")
        with tempfile.TemporaryDirectory() as place:
            classes = _loaded(Path(place))
            for name in missing:
                _write(name, classes)
                _stamp(name).write_text(java)


def _version() -> str:
    return subprocess.run([installed("java", "Java 17"), "-version"], capture_output=True, text=True, check=True).stderr


def _stamp(name: str) -> Path:
    return libraries(name) / f"{SHARED_CLASSES}.version"


def _is_current(name: str, java: str) -> bool:
    return _stamp(name).is_file() and _stamp(name).read_text() == java


def _loaded(place: Path) -> Path:
    """The names of the classes that a broker and clients of all kinds load."""
    compiled(RELEASE)
    with (
        patch.dict(os.environ, {"JAVA_TOOL_OPTIONS": f"-XX:DumpLoadedClassList={place}/%p.classes"}),
        ApacheKafka(place / "node") as kafka,
    ):
        for name in PROGRAMS:
            run_program(name, RELEASE, kafka.bootstrap_servers)
    lines = [line for path in sorted(place.glob("*.classes")) for line in path.read_text().splitlines()]
    classes = place / "all"
    classes.write_text("\n".join(dict.fromkeys(lines)))
    return classes


def _write(name: str, classes: Path) -> None:
    """Those of the classes that are in these jars; the others are left out."""
    archive = libraries(name) / SHARED_CLASSES
    unfinished = archive.with_suffix(".new")
    words = ("-Xshare:dump", "-Xlog:disable", f"-XX:SharedClassListFile={classes}")
    written = (f"-XX:SharedArchiveFile={unfinished}", "-cp", classpath(name))
    command = [installed("java", "Java 17"), *words, *written]
    process.run(command, timeout_s=DUMP_TIMEOUT_S)
    unfinished.rename(archive)
