"""Spark's home on this machine, made so that Spark starts sooner. It is in the user's cache, and stays.

Workers, planners and the runner of each stream prefer a zip of PySpark's modules in Spark's home. It has no compiled
code, so each of them compiles PySpark anew: a second of processor time before its first row. This home has no zip.

Beside it is a file with Java's classes as they are in memory (class data sharing), 170 MB. The first JVM writes it at
its end, for some seconds in which nobody waits for it; those after it map the file instead of reading and checking
fifteen thousand classes, and start a quarter sooner. The file holds for one Java and one list of jars, at one place: a
home has both in its name. A JVM that finds that it does not fit starts without it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import time
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from ottla.user_cache import user_cache

__all__ = ["class_options", "java_program", "spark_home"]

FOLDERS: Final = ("bin", "conf", "jars", "sbin")
ON_CLASS_PATH: Final = ("CLASSPATH", "HADOOP_CONF_DIR", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "YARN_CONF_DIR")
"""Environment variables that Spark puts on Java's class path."""
ARCHIVE: Final = "classes.jsa"
BEGUN_S: Final = 60
"""An unfinished archive of that age is not written any more: its JVM was killed."""
UNUSED_S: Final = 30 * 86_400
"""Homes that were not used for so long are deleted when another is made."""
_MAGIC_BYTES: Final = 4
_QUIET: Final = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:cds=off -Xlog:cds+dynamic=off"


def spark_home(installed: Path) -> Path | None:
    """A home with the programs and jars of an installed PySpark; None if the cache cannot be written."""
    place = user_cache() / "spark" / _name(installed)
    try:
        if not place.is_dir():
            _make(installed, place)
        os.utime(place)  # it is in use
    except OSError:
        return None
    return place / "home"


def class_options(home: Path) -> str:
    """The options with which a JVM uses the archive of a home, or writes it."""
    archive = home.parent / ARCHIVE
    option = f"{_QUIET} -XX:{{}}={shlex.quote(str(archive))}"
    try:
        with archive.open("rb") as file:
            is_whole = any(file.read(_MAGIC_BYTES))  # its head is written last
            is_begun = time.time() - os.fstat(file.fileno()).st_mtime < BEGUN_S
    except OSError:
        is_whole = is_begun = False
    if is_whole:
        return option.format("SharedArchiveFile")
    return "" if is_begun else option.format("ArchiveClassesAtExit")


def java_program() -> Path | None:
    """The Java that Spark takes, whether it is there or not; None if there is none on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return None if found is None else Path(found)


def _name(installed: Path) -> str:
    """Differs for whatever an archive depends on."""
    parts: list[object] = [installed, (installed / "jars").stat().st_mtime_ns, *map(os.environ.get, ON_CLASS_PATH)]
    program = java_program()
    if program is not None and program.exists():
        program = program.resolve()
        parts += [program, program.stat().st_mtime_ns]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _make(installed: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    for old in place.parent.iterdir():
        if time.time() - old.stat().st_mtime > UNUSED_S:
            shutil.rmtree(old, ignore_errors=True)
    unfinished = Path(mkdtemp(dir=place.parent))
    home = unfinished / "home"
    home.mkdir()
    for folder in FOLDERS:
        if (installed / folder).is_dir():
            (home / folder).symlink_to(installed / folder)
    try:
        unfinished.rename(place)
    except OSError:  # another process has made it meanwhile
        shutil.rmtree(unfinished)
