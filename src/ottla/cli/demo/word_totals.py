"""The streams application of the demo: a real Kafka Streams program, compiled here if there are Java and Maven.

Maven downloads the jars once into the user's cache; class files are beside them, by a hash of the source.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.narrator import Narrator
from ottla.cli.demo.plan import WORD_TOTALS, Plan
from ottla.user_cache import user_cache

__all__ = ["Application", "Missing", "kafka_streams"]

VERSION: Final = "4.3.1"
PROGRAM: Final = "WordTotals"
FETCH_S: Final = 600.0
COMPILE_S: Final = 120.0
JVM: Final = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Missing(Exception):
    """The real application cannot run here; the text says why."""


class Application:
    def __init__(self, java: str, jars: Path, classes: Path) -> None:
        self._java = java
        self._class_path = os.pathsep.join([str(classes), str(jars / "*")])

    def command(self, name: str, bootstrap: str, directory: DemoDirectory, plan: Plan) -> list[str]:
        settings = {
            "application.id": WORD_TOTALS,
            "client.id": name,
            "bootstrap.servers": bootstrap,
            "state.dir": str(directory.streams_state / name),
            "commit.interval.ms": "1000",
            "statestore.cache.max.bytes": "0",
            "consumer.auto.offset.reset": "earliest",
            "consumer.fetch.max.wait.ms": "200",
            "reconnect.backoff.max.ms": "500",
            "retry.backoff.max.ms": "500",
        }
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        words = [f"{key}={value}" for key, value in settings.items()]
        journal = str(directory.journal_of(name))
        return [self._java, *JVM, quiet, "-cp", self._class_path, PROGRAM, journal, *words]


async def kafka_streams(narrator: Narrator) -> Application:
    """The application, ready to run. Raises Missing if it cannot."""
    java, javac, mvn = (shutil.which(name) for name in ("java", "javac", "mvn"))
    if java is None or javac is None:
        raise Missing("no Java development kit on the PATH")
    cache = user_cache() / "demo"
    jars = cache / f"kafka-streams-{VERSION}"
    with as_file(files("ottla.cli.demo") / "java") as sources:
        if not jars.is_dir():
            if mvn is None:
                raise Missing("no Maven on the PATH to fetch Kafka Streams with")
            async with narrator.doing(f"fetching Kafka Streams {VERSION} with Maven, once"):
                await _fetch(mvn, sources / "pom.xml", jars)
        source = sources / f"{PROGRAM}.java"
        classes = cache / f"classes-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
        if not classes.is_dir():
            async with narrator.doing("compiling the streams application, once"):
                await _compile(javac, source, jars, classes)
    return Application(java, jars, classes)


async def _fetch(mvn: str, pom: Path, jars: Path) -> None:
    partial = _fresh(jars)
    goal = "dependency:copy-dependencies"
    await _run([mvn, "-B", "-q", "-f", str(pom), goal, f"-DoutputDirectory={partial}"], FETCH_S, "Maven")
    _take_over(partial, jars)


async def _compile(javac: str, source: Path, jars: Path, classes: Path) -> None:
    partial = _fresh(classes)
    options = ["-Xlint:all", "--release", "17", "-cp", str(jars / "*"), "-d", str(partial)]
    await _run([javac, *options, str(source)], COMPILE_S, "javac")
    _take_over(partial, classes)


def _fresh(folder: Path) -> Path:
    """A temporary directory for the result, which is then renamed, so that the final one is always complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    return partial


def _take_over(partial: Path, folder: Path) -> None:
    """Give the complete result its name, unless another demo was faster: then that one's is used."""
    try:
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(partial)


async def _run(command: list[str], timeout_s: float, what: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout_s)
    except BaseException as error:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if isinstance(error, TimeoutError):
            raise Missing(f"{what} did not finish within {timeout_s:.0f} s") from None
        raise
    if process.returncode:
        lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
        raise Missing(f"{what} failed: {lines[0] if lines else 'no output'}")
