"""The loggers of a node and their levels, which can be changed while it runs.

`root` is the logger above all of ottla's; the others have the names of packages (`ottla.core.groups`) and modules. A
logger without a level of its own has that of the next one above it. Levels are Kafka's, they are not kept over a
restart. Two loggers are switches, which cost nothing while they are off: `ottla.requests` at INFO for the lines of
single requests, `ottla.audit` at DEBUG for what was allowed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.core.metadata.configs import APPEND, DELETE, SET, SUBTRACT
from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

__all__ = ["AUDIT", "LEVELS", "REQUESTS", "ROOT", "LevelStep", "Loggers"]

ROOT: Final = "root"
REQUESTS: Final = "ottla.requests"
AUDIT: Final = "ottla.audit"
_SWITCHES: Final = {REQUESTS: logging.INFO, AUDIT: logging.DEBUG}
LEVELS: Final = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
_PACKAGE: Final = "ottla"
_FAMILIES: Final = tuple(
    f"{_PACKAGE}.{name}"
    for name in ("broker", "core", "core.groups", "core.metadata", "core.quorum", "core.share", "core.txn", "log")
)
"""Loggers above those of modules, which may not be loaded yet."""
_NOT_FOR_LOGGERS: Final = {APPEND: "appended to", SUBTRACT: "subtracted from"}


class LevelStep(NamedTuple):
    """What is to be done with the level of one logger."""

    logger: str
    operation: int
    level: str | None


class Loggers:
    """The levels of this process. `on_change` has a function for each switch: it is told after every change."""

    def __init__(self, on_change: Mapping[str, Callable[[bool], None]]) -> None:
        self._on_change = on_change

    def levels(self) -> dict[str, str]:
        """Every logger and the level that holds for it, by name."""
        names = {name for name in list(logging.root.manager.loggerDict) if name.startswith(f"{_PACKAGE}.")}
        return {name: _level_text(name) for name in sorted({ROOT, *_SWITCHES, *_FAMILIES, *names})}

    def check(self, steps: Iterable[LevelStep]) -> None:
        """Reject what cannot be done."""
        known = self.levels()
        for step in steps:
            if step.operation in _NOT_FOR_LOGGERS:
                verb = _NOT_FOR_LOGGERS[step.operation]
                raise Reject(ErrorCode.INVALID_REQUEST, f"Nothing can be {verb} the level of a logger.")
            if step.logger not in known:
                raise Reject(ErrorCode.INVALID_CONFIG, f"Unknown logger '{step.logger}'.")
            if step.operation == DELETE and step.logger == ROOT:
                raise Reject(ErrorCode.INVALID_REQUEST, "The root logger must have a level.")
            if step.operation == SET and step.level not in LEVELS:
                levels = ", ".join(LEVELS)
                raise Reject(ErrorCode.INVALID_CONFIG, f"'{step.level}' is not a log level; known: {levels}.")

    def apply(self, steps: Iterable[LevelStep]) -> None:
        """Act on steps that were checked."""
        for step in steps:
            is_set = step.operation == SET and step.level is not None
            _logger(step.logger).setLevel(LEVELS[step.level or ""] if is_set else logging.NOTSET)
        self.changed()

    def changed(self) -> None:
        """Levels were changed."""
        for name, switch in self._on_change.items():
            switch(logging.getLogger(name).isEnabledFor(_SWITCHES[name]))


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_PACKAGE if name == ROOT else name)


def _level_text(name: str) -> str:
    number = _logger(name).getEffectiveLevel()
    return next((text for text, level in LEVELS.items() if number <= level), "FATAL")
