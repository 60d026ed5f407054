"""`run.json`: what a run read, what it wrote, and what it could not see."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any, Final

from ottla import __version__

__all__ = ["RUN_FILE", "read_run", "versions", "write_run"]

RUN_FILE: Final = "run.json"


def versions() -> dict[str, str]:
    from importlib.metadata import version

    return {"ottla": __version__, "spark": version("pyspark"), "python": platform.python_version()}


def write_run(out: Path, run: dict[str, Any]) -> None:
    """Replace the file atomically: it may be read at any time."""
    new = out / f".{RUN_FILE}.new"
    new.write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n")
    os.replace(new, out / RUN_FILE)


def read_run(out: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((out / RUN_FILE).read_text())
    except FileNotFoundError:
        return None
    return found
