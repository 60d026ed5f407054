"""Class files of our own Java sources, compiled once for each state of the sources."""

import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from ottla.user_cache import user_cache
from tests.interop import process
from tests.interop.jars import libraries, locked, program

KEPT_S = 7 * 24 * 3600
"""How long class files of other sources stay in the cache."""
TIMEOUT_S = 300
"""It takes seconds, where a machine has nothing else to do."""


def class_files(name: str, sources: Sequence[Path], jars: str) -> Path:
    """The folder of class files. Each state of the sources has one of its own, for two checkouts may be at work."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    folder = user_cache() / name / digest[:16]
    with locked(user_cache() / f"{name}.lock"):
        if not folder.is_dir():
            unfinished = folder.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            javac = program("javac", "a Java development kit")
            options = ["-Xlint:all", "-Werror", "--release", "17", "-cp", f"{libraries(jars)}/*", "-d", str(unfinished)]
            process.run([javac, *options, *map(str, sources)], timeout_s=TIMEOUT_S)
            unfinished.rename(folder)
            _forget_old(folder)
    return folder


def _forget_old(newest: Path) -> None:
    for other in newest.parent.iterdir():
        if other != newest and time.time() - other.stat().st_mtime > KEPT_S:
            shutil.rmtree(other, ignore_errors=True)
