"""Log messages: warnings, and on request how much each task has done. Spark collects the logs of workers."""

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
    """Log a warning, but the same one only once in a process."""
    warn_seldom(text, every_s=float("inf"))


def warn_seldom(text: str, every_s: float = MINUTE_S) -> None:
    """Log a warning, but the same one only once in a while."""
    now_s = time.monotonic()
    if now_s - _warned_at_s.get(text, float("-inf")) >= every_s:
        _warned_at_s[text] = now_s
        warn(text)


def progress(**figures: object) -> None:
    """Log what a task has done, as one line of JSON."""
    _prepare(_PROGRESS)
    _PROGRESS.info(json.dumps(figures))


def _prepare(log: logging.Logger) -> None:
    """If there is no handler, log to standard error, where the executor's own log is."""
    log.setLevel(logging.INFO)
    if not log.hasHandlers():
        logging.getLogger("ottla.spark").addHandler(logging.StreamHandler(sys.stderr))
