"""Reads steps into an archive, one process after the other."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ottla.spark.pipeline.archive import Archive
from ottla.spark.pipeline.follow import Follower
from ottla.spark.pipeline.options import RunOptions
from ottla.spark.pipeline.origins import directory_origin
from tests.unit.spark.pipeline.ingesting import TOPIC


class NoSparkError(Exception):
    """Small inputs need no Spark."""


class NoSpark:
    def __getattr__(self, name: str) -> Any:
        raise NoSparkError(name)


def read(cluster: Path | None, out: Path, *directories: Path) -> Archive:
    """A process that reads one step and ends. Returns the archive as the next process finds it."""
    work = out / ".work-test"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    options = RunOptions(out=out, observations=tuple(map(str, directories)))
    find = (lambda: None) if cluster is None else (lambda: directory_origin([str(cluster)], TOPIC))
    Follower(find, options, work, lambda _: None).read(NoSpark())  # type: ignore[arg-type]
    return opened(out)


def opened(out: Path) -> Archive:
    archive = Archive(out)
    archive.open()
    return archive
