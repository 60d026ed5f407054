"""Reads the files of a cluster as events."""

from __future__ import annotations

from pathlib import Path

from ottla.spark.pipeline.ingest import EventFiles, Ingestion, Starts
from ottla.spark.pipeline.observations import ObservationFiles
from ottla.spark.pipeline.origins import directory_origin

TOPIC = "ottla.observations"


def read(
    cluster: Path, path: Path, *files: str, starts: Starts | None = None, commit_window_ms: int | None = None
) -> EventFiles:
    origin, observations = directory_origin([str(cluster)], TOPIC), ObservationFiles(files)
    ingestion = Ingestion(origin, observations, starts or Starts(), [], commit_window_ms=commit_window_ms)
    found = ingestion.in_process(path)
    assert found is not None, "it is small"
    return found
