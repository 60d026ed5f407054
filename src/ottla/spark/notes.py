"""What is said besides rows: warnings, and how much each task has done. Spark collects what workers log."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Final

__all__ = ["progress", "warn", "warn_once", "warn_seldom"]

MINUTE_S: Final = 60.0
_LOG: Final = logging.getLogger("ottla.spark")
_PROGRESS: Final = logging.getLogger("ottla.spark.progress")
_warned_at_s: dict[str, float] = {}


def warn(text: str) -> None:
    _prepare(_LOG)
    _LOG.warning(text)


def warn_once(text: str) -> None:
    """Warn, but say the same only once in a process."""
    warn_seldom(text, every_s=float("inf"))


def warn_seldom(text: str, every_s: float = MINUTE_S) -> None:
    """Warn, but say the same only once in a while."""
    now_s = time.monotonic()
    if now_s - _warned_at_s.get(text, float("-inf")) >= every_s:
        _warned_at_s[text] = now_s
        warn(text)


def progress(**figures: object) -> None:
    """One line of JSON: what a task has done."""
    _prepare(_PROGRESS)
    _PROGRESS.info(json.dumps(figures))


def _prepare(log: logging.Logger) -> None:
    """Without a handler anywhere, say it on standard error, where the executor's own log is."""
    log.setLevel(logging.INFO)
    if not log.hasHandlers():
        logging.getLogger("ottla.spark").addHandler(logging.StreamHandler(sys.stderr))
