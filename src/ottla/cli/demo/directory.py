"""The directory of a demo: its layout, and how an earlier one is replaced safely."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from ottla.cli.failure import Failure

__all__ = ["DemoDirectory"]

MARK: Final = ".ottla-demo"
"""A directory with this file was created by a demo, and the next one may replace it."""


class DemoDirectory:
    """`data` is the nodes', `journal` has the journals of the workloads, `said` the output of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.journal = path / "journal"
        self.said = path / "said"
        self.streams_state = path / "streams-state"
        self.truth = path / "truth.json"
        self.report_json = path / "report.json"
        self.report_html = path / "report.html"

    def prepare(self) -> None:
        """Create it, empty. Raises Failure if it holds other files than a demo's."""
        if self.path.exists() and not self.path.is_dir():
            raise Failure(f"{self.path} is a file", "--out takes a directory")
        if self.path.exists() and any(self.path.iterdir()):
            if not (self.path / MARK).is_file():
                raise Failure(f"{self.path} is not empty and was not made by the demo", "--out takes another directory")
            self._replace()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / MARK).write_text("Made by `ottla demo`; the next run replaces this directory.\n")
            self.journal.mkdir()
        except OSError as error:
            raise Failure(f"cannot write to {self.path}: {error.strerror}", "--out takes a directory") from None

    def _replace(self) -> None:
        """Rename it first: a process that still writes there then does not write into the new one."""
        old = self.path.with_name(f"{self.path.name}.old")
        if old.exists():
            if not (old / MARK).is_file():
                raise Failure(f"{old} exists and was not made by the demo", "remove it, or choose another --out")
            shutil.rmtree(old)
        self.path.rename(old)
        shutil.rmtree(old, ignore_errors=True)

    def journal_of(self, name: str) -> Path:
        return self.journal / f"{name}.jsonl"
