"""The rules of health: facts in, findings out.

An `Engine` takes facts (`ottla.health.facts`) one by one with their times. It keeps a bounded history for the rules,
and returns the changes of findings: opened, changed, resolved. The observer, the console, the report and the command
line use the same rules with the same texts.
"""

from ottla.health.coverage import Unseen
from ottla.health.engine import Engine
from ottla.health.finding import Change, ChangeType, Finding, NextStep, Severity, State, Subject, Tier
from ottla.health.history import Bounds
from ottla.health.rule import RULES, Rule, ThresholdError, parse_thresholds

__all__ = [
    "RULES",
    "Bounds",
    "Change",
    "ChangeType",
    "Engine",
    "Finding",
    "NextStep",
    "Rule",
    "Severity",
    "State",
    "Subject",
    "ThresholdError",
    "Tier",
    "Unseen",
    "parse_thresholds",
]
